// A subPath or subPathExpr in the first line, the container's variables in the others (NAME=value).
// Whatever comes of it lies in the volume, and its bind in the pod's directory.
#include "mounter/subpath.h"

#include "fuzz/fuzz.h"
#include "kube/expansion.h"
#include "kube/field_rules.h"
#include "os/safe_open.h"

namespace volumed::sub_path_fuzz {
namespace {

constexpr const char* kVolume = "/var/lib/volumed/pods/uid-1/volumes/kubernetes.io~empty-dir/cache";

void CheckEffect(const std::string& sub_path) {
  const SafeSubpathRequest request{PodUid("uid-1"),       SpecName("cache"), "main", 3,
                                   SafePath{kVolume, ""}, sub_path};
  const Result<PrepareSubPath> effect = SubPathEffect(KubeletPaths("/var/lib/volumed"), request);
  if (!rules::kSubPath.broken(sub_path)) FUZZ_CHECK(effect.ok() == !sub_path.empty());
  if (!effect.ok()) return fuzz::CheckError(effect.error());
  FUZZ_CHECK(effect->volume == request.volume);
  const Status valid = ValidateSafePath({kVolume, effect->sub_path});
  FUZZ_CHECK(valid.ok() == fuzz::StaysInside(effect->sub_path));
  FUZZ_CHECK(ValidateSafePath(effect->target).ok() && ValidateSafePath(effect->parent).ok());
}

Container ReadContainer(std::string_view lines) {
  Container container;
  container.name = "main";
  while (const std::optional<std::string_view> line = fuzz::TakeLine(lines)) {
    const fuzz::Halves halves = fuzz::Cut(*line, '=');
    EnvVar& variable = container.env.emplace_back();
    variable.name = std::string(halves.before);
    variable.value = std::string(halves.behind);
  }
  return container;
}

void CheckExpanded(std::string_view expression, const Container& container) {
  Pod pod;
  pod.metadata.name = "web";
  pod.spec.containers = {container};
  const Result<std::string> path = ExpandSubPathExpr(
      pod, container, expression, [](std::string_view, std::string_view) { return nullptr; }, {});
  if (!path.ok()) return fuzz::CheckError(path.error());
  FUZZ_CHECK(fuzz::StaysInside(*path));
  FUZZ_CHECK(!rules::kSubPath.broken(*path));
  CheckEffect(*path);
}

}  // namespace

FUZZ_TARGET(sub_path)(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::TextOf(data, size);
  const std::string_view first = fuzz::TakeLine(rest).value_or("");
  CheckEffect(std::string(first));
  if (first.find('$') == std::string_view::npos) {
    FUZZ_CHECK(ExpandVariables(first, [](std::string_view) { return std::nullopt; }) == first);
  }
  CheckExpanded(first, ReadContainer(rest));
  return 0;
}

}  // namespace volumed::sub_path_fuzz
