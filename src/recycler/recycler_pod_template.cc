#include "recycler/recycler_pod_template.h"

#include <algorithm>
#include <variant>

#include "base/regular_file.h"
#include "base/strings.h"
#include "kube/decode.h"

namespace volumed {
namespace {

constexpr int64_t kDefaultActiveDeadlineSeconds = 60;
constexpr int64_t kGibi = int64_t{1} << 30;
constexpr char kImage[] = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6";
// -mindepth keeps the directory itself; the listing afterwards is what proves the result.
constexpr char kScript[] =
    "test -e /scrub && find /scrub -mindepth 1 -delete && test -z \"$(ls -A /scrub)\" || exit 1";

}  // namespace

Pod NewPersistentVolumeRecyclerPodTemplate() {
  Pod pod;
  pod.metadata.generate_name = "pv-recycler-";
  pod.metadata.name_space = "default";
  pod.spec.active_deadline_seconds = kDefaultActiveDeadlineSeconds;
  pod.spec.restart_policy = RestartPolicy::kNever;
  pod.spec.volumes.push_back({"vol", EmptyDirVolumeSource{}});
  Container scrub;
  scrub.name = "pv-recycler";
  scrub.image = kImage;
  scrub.command = {"/bin/sh"};
  scrub.args = {"-c", kScript};
  VolumeMount mount;
  mount.name = "vol";
  mount.mount_path = "/scrub";
  scrub.volume_mounts.push_back(mount);
  pod.spec.containers.push_back(scrub);
  return pod;
}

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

Result<Pod> LoadRecyclerPodTemplate(const std::string& path) {
  if (path.empty()) return NewPersistentVolumeRecyclerPodTemplate();
  ASSIGN_OR_RETURN(const std::string text,
                   ReadRegularFile(path, kMaxTemplateBytes).With("recycler pod template"));
  const auto refuse = [](const std::string& why) {
    return Error::NotApplied(Code::kInvalidArgument, why);
  };
  if (TrimSpace(text).empty()) return refuse("file was empty: " + path);
  const ManifestDecode decoded = DecodeManifest(path, text);
  if (!decoded.problems.empty()) return refuse(decoded.problems.front().ToString());
  if (decoded.objects.size() != 1 || KindOf(decoded.objects[0].object) != ObjectKind::kPod) {
    return refuse(path + ": must hold one Pod and nothing else");
  }
  Pod pod = std::get<Pod>(decoded.objects[0].object);
  RETURN_IF_ERROR(ValidateRecyclerPodTemplate(pod).With("recycler pod template " + path));
  return pod;
}

Status ValidateRecyclerPodTemplate(const Pod& pod) {
  if (!pod.spec.volumes.empty()) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument, "does not contain any volume(s)");
}

bool ScrubsLikeTemplate(const Pod& pod) {
  const Pod like = NewPersistentVolumeRecyclerPodTemplate();
  return pod.spec.volumes.size() == 1 && pod.spec.volumes[0].name == like.spec.volumes[0].name &&
         pod.spec.init_containers.empty() && pod.spec.containers == like.spec.containers;
}

int64_t CalculateTimeoutForVolume(int minimum_seconds, int increment_seconds,
                                  const Quantity& capacity) {
  const int64_t gibis = std::max<int64_t>(capacity.Value(), 0) / kGibi;
  int64_t by_size = 0;
  if (__builtin_mul_overflow(gibis, static_cast<int64_t>(increment_seconds), &by_size)) {
    by_size = INT64_MAX;
  }
  return std::max<int64_t>(minimum_seconds, by_size);
}

}  // namespace volumed
