#include "csi/csi_expand.h"

#include <sys/sysmacros.h>

#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "csi/csi_before_growth.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_devices.h"
#include "csi/csi_names.h"
#include "csi/csi_node_requests.h"
#include "csi/csi_proof.h"
#include "mounter/host_directory.h"
#include "mounter/resize_fs.h"

namespace volumed {
namespace {

using NodeCan = ::csi::v1::NodeServiceCapability_RPC;

// The source of a mount of a disk; "" of any other mount. A filesystem of several disks (btrfs) has
// a number of its own, and counts as none: what its size is, no single disk tells. Nor does the
// node's own disk say how large a directory on it may become.
std::string DiskOf(const MountEntry& mount) {
  const bool is_disk =
      mount.device_major != 0 && mount.source.starts_with('/') && mount.root == "/";
  return is_disk ? mount.source : "";
}

// What a growth changes nothing of: the mounts at a path that the driver is given, and which device
// a raw volume is.
struct ShownPlace {
  std::string path;
  std::vector<MountEntry> layers = {};
  uint64_t device_number = 0;  // 0: it is no device, or not a raw volume's
};

std::optional<MountEntry> TopOf(const ShownPlace& shown) {
  if (shown.layers.empty()) return std::nullopt;
  return shown.layers.back();
}

// The number of a mount that is gone may come again, and so may a device's that no disk has.
bool IsSameMount(const MountEntry& a, const MountEntry& b) {
  return a.mount_id == b.mount_id && a.device_major == b.device_major &&
         a.device_minor == b.device_minor && a.root == b.root;
}

std::optional<std::string> WhatChanged(const ShownPlace& before, const ShownPlace& after) {
  if (after.layers.size() != before.layers.size()) {
    return std::to_string(after.layers.size()) + " mounts are at " + after.path +
           ", where there were " + std::to_string(before.layers.size());
  }
  for (size_t i = 0; i < after.layers.size(); ++i) {
    if (IsSameMount(before.layers[i], after.layers[i])) continue;
    return "what is mounted at " + after.path + " is " + after.layers[i].source +
           ", and not what was mounted there before";
  }
  if (after.device_number == before.device_number) return std::nullopt;
  return after.path + " is another device than before";
}

class CsiExpander final : public NodeExpandableVolumePlugin {
 public:
  CsiExpander(const CsiContext& context, VolumePlugin& plugin)
      : context_(context), plugin_(plugin) {}

  VolumePlugin& plugin() override { return plugin_; }
  bool RequiresFsResize() const override { return true; }
  // As kubelet, which names the pod's path: not every driver finds a volume by where it is staged,
  // and some stage none.
  bool NeedsPod(const VolumeSpec& /*spec*/) const override { return true; }
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;

 private:
  Result<::csi::v1::NodeExpandVolumeRequest> RequestOf(const CsiDriverFacts& driver,
                                                       const CsiVolume& volume,
                                                       const NodeResizeOptions& options,
                                                       const SafePath& place) const;
  SafePath PlaceOf(const CsiVolume& volume, const NodeResizeOptions& options) const;
  Result<std::vector<ShownPlace>> PlacesOf(const CsiVolume& volume, const SafePath& place,
                                           const ::csi::v1::NodeExpandVolumeRequest& request,
                                           const CallOptions& call) const;
  Status Remember(const CsiVolume& volume, const std::vector<ShownPlace>& before) const;
  std::optional<std::string> WhyNotAsBefore(const CsiVolume& volume,
                                            const std::vector<ShownPlace>& now) const;
  void ForgetIfAsBefore(const CsiVolume& volume, const std::vector<ShownPlace>& now) const;
  Result<std::optional<std::string>> WhyNotThere(const CsiVolume& volume, const SafePath& place,
                                                 const std::vector<ShownPlace>& before,
                                                 const std::vector<ShownPlace>& after,
                                                 const CallOptions& call) const;
  Result<FileInfo> NodeAt(const SafePath& place, const CallOptions& call) const;
  Result<std::optional<std::string>> WhyNotOfRecord(const CsiVolume& volume, const SafePath& place,
                                                    const ShownPlace& shown,
                                                    const CallOptions& call) const;
  Status LookAtDisk(const SafePath& place, const CallOptions& call, CsiGrowth& growth) const;
  Status LookAtDevice(const SafePath& place, const CallOptions& call, CsiGrowth& growth) const;
  Status LookAtFilesystem(const std::string& disk, const SafePath& place, const CallOptions& call,
                          CsiGrowth& growth) const;

  const CsiContext& context_;
  VolumePlugin& plugin_;
};

SafePath CsiExpander::PlaceOf(const CsiVolume& volume, const NodeResizeOptions& options) const {
  if (!volume.is_block) return options.device_mount_path;
  return CsiBlockPublishPath(context_.host.paths, options.spec.name(), options.pod);
}

Result<::csi::v1::NodeExpandVolumeRequest> CsiExpander::RequestOf(const CsiDriverFacts& driver,
                                                                  const CsiVolume& volume,
                                                                  const NodeResizeOptions& options,
                                                                  const SafePath& place) const {
  CsiNodeExpandWish wish;
  ASSIGN_OR_RETURN(CsiStaging staging, StagingOf(context_, volume));
  // That of a mount is on record; a block volume's has one place alone.
  if (volume.is_block) {
    staging.path = CsiBlockStagingPath(context_.host.paths, options.spec.name());
  }
  wish.staging_path = StagingPathFor(driver, staging);
  wish.volume_path = place.Display();
  wish.required_bytes = options.new_size.Value();
  ASSIGN_OR_RETURN(wish.secrets,
                   ReadSecret(context_, volume.node_expand_secret, "node expand secret"));
  return NodeExpandRequest(driver, volume, wish);
}

Result<bool> CsiExpander::NodeExpand(const NodeResizeOptions& options, const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(options.spec));
  ASSIGN_OR_RETURN(const CsiDriverFacts driver, FactsOf(context_, volume.driver));
  if (!driver.HasNode(NodeCan::EXPAND_VOLUME)) {
    return Error::NotApplied(Code::kUnimplemented,
                             "NodeExpand is not supported by the CSI driver " + volume.driver);
  }
  if (options.csi_volume_phase != CsiVolumePhase::kPublished || options.pod.empty()) {
    return Error::NotApplied(Code::kUnavailable, "no pod has " + options.spec.Display() + " yet");
  }
  const SafePath place = PlaceOf(volume, options);
  ASSIGN_OR_RETURN(const ::csi::v1::NodeExpandVolumeRequest request,
                   RequestOf(driver, volume, options, place));
  ASSIGN_OR_RETURN(const std::vector<ShownPlace> before, PlacesOf(volume, place, request, call));
  RETURN_IF_ERROR(Remember(volume, before));
  const auto answer = CallDriver<::csi::v1::NodeExpandVolumeResponse>(
      context_, volume.driver, request, call, volume.migrated);
  if (!answer.ok() && answer.error().maybe_applied()) return answer.error();
  const Result<std::vector<ShownPlace>> after = PlacesOf(volume, place, request, call);
  if (!answer.ok()) {
    if (after.ok()) ForgetIfAsBefore(volume, *after);
    return answer.error();
  }
  if (!after.ok()) return after.error().AsMaybeApplied();
  const auto not_there = WhyNotThere(volume, place, before, *after, call);
  if (!not_there.ok()) return not_there.error().AsMaybeApplied();
  if (*not_there) {
    return DriverLied(context_, {volume.driver, "NodeExpandVolume", volume.handle},
                      volume.handle + " has grown", **not_there);
  }
  CsiGrowth growth{.old_bytes = options.old_size.Value(),
                   .wanted_bytes = options.new_size.Value(),
                   .said_bytes = answer->capacity_bytes()};
  const Status looked =
      volume.is_block ? LookAtDevice(place, call, growth) : LookAtDisk(place, call, growth);
  // The driver may have grown it, whatever the node can be asked.
  if (!looked.ok()) return looked.error().AsMaybeApplied();
  if (const auto why = WhyNotGrown(growth)) {
    return DriverLied(context_, {volume.driver, "NodeExpandVolume", volume.handle},
                      volume.handle + " has " + BytesForPeople(growth.wanted_bytes) + " now", *why);
  }
  return true;
}

Result<std::vector<ShownPlace>> CsiExpander::PlacesOf(
    const CsiVolume& volume, const SafePath& place,
    const ::csi::v1::NodeExpandVolumeRequest& request, const CallOptions& call) const {
  std::vector<ShownPlace> places;
  for (const std::string& path : {request.volume_path(), request.staging_target_path()}) {
    if (path.empty()) continue;
    ShownPlace shown{path};
    ASSIGN_OR_RETURN(shown.layers, MountLayers(context_.kernel(), path, call));
    places.push_back(std::move(shown));
  }
  if (!volume.is_block) return places;
  ASSIGN_OR_RETURN(const FileInfo device, NodeAt(place, call));
  if (device.type == FileType::kBlockDevice) places.front().device_number = device.device_number;
  return places;
}

// A raw volume's device is on record anyway.
Status CsiExpander::Remember(const CsiVolume& volume, const std::vector<ShownPlace>& before) const {
  if (volume.is_block) return OkStatus();
  std::vector<MountBeforeGrowth> places;
  for (const ShownPlace& shown : before) {
    places.push_back(BeforeGrowthOf(shown.path, TopOf(shown)));
  }
  return RememberBeforeGrowth(context_, {volume.driver, volume.handle}, places);
}

std::optional<std::string> CsiExpander::WhyNotAsBefore(const CsiVolume& volume,
                                                       const std::vector<ShownPlace>& now) const {
  for (const ShownPlace& shown : now) {
    std::optional<std::string> why =
        WhyNotAsBeforeGrowth(context_, {volume.driver, volume.handle}, shown.path, TopOf(shown));
    if (why) return why;
  }
  return std::nullopt;
}

// A growth that was refused has ended, and is held against nothing that comes later: the volume's
// driver may mount it anew by right. If that cannot be written, it is.
void CsiExpander::ForgetIfAsBefore(const CsiVolume& volume,
                                   const std::vector<ShownPlace>& now) const {
  if (volume.is_block || WhyNotAsBefore(volume, now)) return;
  std::vector<std::string> paths;
  for (const ShownPlace& shown : now) paths.push_back(shown.path);
  (void)context_.parts.devices.ForgetBeforeGrowth(CsiUniqueName(volume.driver, volume.handle),
                                                  paths);
}

// A lie is told once: after it the same call follows, before which the wrong mount is there
// already. So it has to be of what is staged, and what is on record, too.
Result<std::optional<std::string>> CsiExpander::WhyNotThere(const CsiVolume& volume,
                                                            const SafePath& place,
                                                            const std::vector<ShownPlace>& before,
                                                            const std::vector<ShownPlace>& after,
                                                            const CallOptions& call) const {
  for (size_t i = 0; i < after.size(); ++i) {
    std::optional<std::string> changed = WhatChanged(before[i], after[i]);
    if (changed) return changed;
  }
  if (volume.is_block) return WhyNotOfRecord(volume, place, after.front(), call);
  ASSIGN_OR_RETURN(const CsiStaging staging, StagingOf(context_, volume));
  PublishedLook look{volume.driver, place};
  if (staging.staged == StagedState::kStaged) look.staging = staging.path;
  ASSIGN_OR_RETURN(CsiFinding found, LookAtPublished(context_, look, call));
  if (found.wrong) return std::move(found.wrong);
  return WhyNotAsBefore(volume, after);
}

// What a driver has published: a device, or a link to one.
Result<FileInfo> CsiExpander::NodeAt(const SafePath& place, const CallOptions& call) const {
  Kernel& kernel = context_.kernel();
  ASSIGN_OR_RETURN(const FileInfo there, kernel.Call(Stat{.path = place}, call));
  if (there.type != FileType::kSymlink) return there;
  return kernel.Call(Stat{.path = HostPath(place.Display()), .follow = true}, call);
}

// Nullopt if the raw volume is the device that pods were given.
Result<std::optional<std::string>> CsiExpander::WhyNotOfRecord(const CsiVolume& volume,
                                                               const SafePath& place,
                                                               const ShownPlace& shown,
                                                               const CallOptions& call) const {
  ASSIGN_OR_RETURN(CsiFinding found, LookAtPublishedDevice(context_, place, call));
  if (found.wrong) return std::move(found.wrong);
  const auto record = context_.parts.devices.Find(CsiUniqueName(volume.driver, volume.handle));
  // A device's number is a boot's own.
  if (!record || !record->mapped || record->mapped->boot_id != record->boot_id) {
    return std::optional<std::string>();
  }
  const DeviceIdentity& given = record->mapped->device;
  const bool is_it = shown.device_number == ::makedev(given.device_major, given.device_minor);
  if (is_it) return std::optional<std::string>();
  return std::make_optional(shown.path + " is another device than " + record->mapped->path +
                            ", which pods were given");
}

// The size of what is mounted at the place, if that is a disk.
Status CsiExpander::LookAtDisk(const SafePath& place, const CallOptions& call,
                               CsiGrowth& growth) const {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers,
                   MountLayers(context_.kernel(), place.Display(), call));
  if (layers.empty()) return OkStatus();  // a plain directory: its driver alone knows its size
  const std::string disk = DiskOf(layers.back());
  if (disk.empty()) return OkStatus();
  return LookAtFilesystem(disk, place, call, growth);
}

Status CsiExpander::LookAtFilesystem(const std::string& disk, const SafePath& place,
                                     const CallOptions& call, CsiGrowth& growth) const {
  Kernel& kernel = context_.kernel();
  const Result<DeviceProbe> probe = kernel.Call(ProbeDevice{.device = disk}, call);
  // The mount table's source is a text of whoever mounted: what is no device is no disk.
  if (!probe.ok() && (probe.error().code() == Code::kNotFound ||
                      probe.error().code() == Code::kFailedPrecondition)) {
    return OkStatus();
  }
  if (!probe.ok()) return probe.error();
  growth.device_bytes = probe->identity.size_bytes;
  const Result<bool> smaller =
      ResizeFs(kernel).NeedResize({.device = disk, .mounted_at = place}, call);
  // A filesystem that cannot be measured is taken by its disk alone.
  if (!smaller.ok() && smaller.error().code() == Code::kInvalidArgument) return OkStatus();
  ASSIGN_OR_RETURN(growth.filesystem_is_smaller, smaller);
  return OkStatus();
}

Status CsiExpander::LookAtDevice(const SafePath& place, const CallOptions& call,
                                 CsiGrowth& growth) const {
  ASSIGN_OR_RETURN(const FileInfo device, NodeAt(place, call));
  if (device.type == FileType::kBlockDevice && device.size_bytes > 0) {
    growth.device_bytes = device.size_bytes;
  }
  return OkStatus();
}

}  // namespace

std::optional<std::string> WhyNotGrown(const CsiGrowth& growth) {
  if (!growth.device_bytes) {
    const bool says_less = growth.said_bytes != 0 && growth.said_bytes < growth.wanted_bytes;
    if (!says_less) return std::nullopt;
    return "said in the same answer that it has " + BytesForPeople(growth.said_bytes);
  }
  const bool is_less = *growth.device_bytes < growth.wanted_bytes;
  const bool is_vouched_for =
      growth.said_bytes >= growth.wanted_bytes && *growth.device_bytes > growth.old_bytes;
  if (is_less && !is_vouched_for) return "its disk has " + BytesForPeople(*growth.device_bytes);
  if (!growth.filesystem_is_smaller) return std::nullopt;
  return "the filesystem does not fill its disk of " + BytesForPeople(*growth.device_bytes);
}

std::unique_ptr<NodeExpandableVolumePlugin> MakeCsiExpander(const CsiContext& context,
                                                            VolumePlugin& plugin) {
  return std::make_unique<CsiExpander>(context, plugin);
}

}  // namespace volumed
