#include "csi/csi_before_growth.h"

#include <algorithm>

#include "csi/csi_proof.h"

namespace volumed {
namespace {

// "/dev/sdb"; "/dev/sdb[/directory]" of a part of it, as findmnt has it.
std::string WithRoot(const std::string& source, const std::string& root) {
  return root == "/" ? source : source + "[" + root + "]";
}

std::optional<MountBeforeGrowth> RecordedAt(const CsiContext& context, const CsiVolumeId& volume,
                                            const std::string& path) {
  const std::optional<DeviceRecord> record =
      context.parts.devices.Find(CsiUniqueName(volume.driver, volume.handle));
  if (!record) return std::nullopt;
  const auto there =
      std::find_if(record->before_growth.begin(), record->before_growth.end(),
                   [&path](const MountBeforeGrowth& recorded) { return recorded.path == path; });
  if (there == record->before_growth.end()) return std::nullopt;
  return *there;
}

}  // namespace

MountBeforeGrowth BeforeGrowthOf(const std::string& path, const std::optional<MountEntry>& mount) {
  if (!mount) return {.path = path};
  return {.path = path,
          .source = mount->source.starts_with("/dev/") ? mount->source : mount->fs_type,
          .device_major = mount->device_major,
          .device_minor = mount->device_minor,
          .root = mount->root};
}

Status RememberBeforeGrowth(const CsiContext& context, const CsiVolumeId& volume,
                            const std::vector<MountBeforeGrowth>& places) {
  const UniqueVolumeName device = CsiUniqueName(volume.driver, volume.handle);
  if (!context.parts.devices.Find(device)) return OkStatus();
  return context.parts.devices.RememberBeforeGrowth(device, places);
}

std::optional<std::string> WhyNotAsBeforeGrowth(const CsiContext& context,
                                                const CsiVolumeId& volume, const std::string& path,
                                                const std::optional<MountEntry>& mount) {
  const std::optional<MountBeforeGrowth> before = RecordedAt(context, volume, path);
  if (!before) return std::nullopt;
  const bool was_mounted = !before->root.empty();
  if (!mount && !was_mounted) return std::nullopt;
  const std::string was = WithRoot(before->source, before->root);
  if (!mount) return "nothing is mounted at " + path + ", where " + was + " was before its growth";
  const MountBeforeGrowth now = BeforeGrowthOf(path, mount);
  const std::string is = WithRoot(now.source, now.root);
  if (!was_mounted) return is + " is mounted at " + path + ", where nothing was before its growth";
  const bool is_same = now.device_major == before->device_major &&
                       now.device_minor == before->device_minor && now.root == before->root;
  if (is_same) return std::nullopt;
  if (is == was) {
    return "what is mounted at " + path + " is another " + is + " than before its growth";
  }
  return "what is mounted at " + path + " is " + is + ", and not " + was +
         " that was there before its growth";
}

Status ForgetIfUnmounted(const CsiContext& context, const CsiVolumeId& volume,
                         const std::string& path, const CallOptions& call) {
  if (!RecordedAt(context, volume, path)) return OkStatus();
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers, MountLayers(context.kernel(), path, call));
  if (!layers.empty()) return OkStatus();
  return context.parts.devices.ForgetBeforeGrowth(CsiUniqueName(volume.driver, volume.handle),
                                                  {path});
}

}  // namespace volumed
