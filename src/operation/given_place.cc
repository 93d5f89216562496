#include "operation/given_place.h"

#include <string_view>

#include "base/strings.h"
#include "kube/digest.h"
#include "kube/target_uid.h"

namespace volumed {
namespace {

// REQUIRES: a root. Every row that is decoded has its place below that.
SafePath PlaceBelow(const std::string& root, const std::string& path) {
  const std::optional<std::string_view> rest = StripPrefix(path, root + "/");
  return {root, std::string(rest.value_or("")), Resolve::kNoSymlinks};
}

}  // namespace

PodVolumeKey TargetKey(const std::string& target_path, const std::string& id) {
  return {PodUid(kTargetUidPrefix + HalfSha256Hex(target_path)), SpecName(id)};
}

Status CheckGivenPlace(const SafePath& place) {
  const bool can_be_kept = place.root.starts_with('/') && place.root.size() > 1 &&
                           !place.relative.empty() && !place.relative.ends_with('/') &&
                           place.resolve == Resolve::kNoSymlinks;
  if (can_be_kept) return OkStatus();
  return Error::NotApplied(
      Code::kInvalidArgument,
      "\"" + place.Display() + "\" is no place below a directory in which volumes may be put");
}

std::optional<SafePath> GivenPlaceOf(const PodVolumeRecord& record) {
  if (record.place_root.empty()) return std::nullopt;
  return PlaceBelow(record.place_root, record.place);
}

std::optional<SafePath> GivenPlaceOf(const DeviceRecord& record) {
  if (record.place_root.empty()) return std::nullopt;
  return PlaceBelow(record.place_root, record.device_mount_path);
}

std::string HolderOf(const PodVolumeRecord& record) {
  if (!record.place_root.empty()) return "the target " + record.place;
  return "pod " + record.pod_namespace + "/" + record.pod_name;
}

Result<SafePath> PlaceOfDevice(const KubeletPaths& paths, const DeviceRecord& record) {
  if (std::optional<SafePath> given = GivenPlaceOf(record)) return *std::move(given);
  return paths.BelowRoot(record.device_mount_path);
}

}  // namespace volumed
