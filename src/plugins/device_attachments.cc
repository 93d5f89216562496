#include "plugins/device_attachments.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "operation/call_options.h"

namespace volumed {
namespace {

using MountsByPath = std::map<std::string, MountEntry>;  // the topmost of each

// The devices by which the node has what is at the place; or, where pods have the device itself,
// directly below it.
Result<std::vector<std::string>> DevicesUsedAt(Kernel& kernel, ScsiDevices& scsi,
                                               const MountsByPath& mounts, const SafePath& place,
                                               const CallOptions& call) {
  std::vector<std::string> devices;
  const std::string path = place.Display();
  if (const auto mount = mounts.find(path); mount != mounts.end()) {
    devices.push_back(mount->second.source);
    return devices;  // what somebody has mounted inside is not looked at: it may hang
  }
  const std::string below = path + "/";
  for (auto node = mounts.lower_bound(below);
       node != mounts.end() && node->first.starts_with(below); ++node) {
    ASSIGN_OR_RETURN(
        const FileInfo info,
        kernel.Call(Stat{.path = place.Below(node->first.substr(below.size()))}, call));
    if (info.type != FileType::kBlockDevice) continue;
    ASSIGN_OR_RETURN(const std::optional<std::string> device,
                     scsi.NodeOf(info.device_number, call));
    devices.push_back(device.value_or(""));
  }
  return devices;
}

// The SCSI disks that a device is, or is made of, as far as they are on the node.
Result<std::vector<ScsiDisk>> DisksOf(ScsiDevices& scsi, const std::string& device,
                                      const CallOptions& call) {
  std::vector<ScsiDisk> disks;
  if (device.empty()) return disks;
  ASSIGN_OR_RETURN(std::vector<std::string> nodes, scsi.PathsOf(device, call));
  if (nodes.empty()) nodes.push_back(device);
  for (const std::string& node : nodes) {
    Result<std::optional<ScsiDisk>> disk = scsi.FindDisk(node, call);
    // A map that has lost its paths, and whatever else is no disk.
    if (!disk.ok() && disk.error().code() == Code::kFailedPrecondition) continue;
    if (!disk.ok()) return disk.error();
    if (*disk) disks.push_back(std::move(**disk));
  }
  return disks;
}

}  // namespace

Result<std::vector<bool>> AreDevicesAttached(VolumeHost& host, ScsiDevices& scsi,
                                             const std::string& plugin_name,
                                             const std::vector<SafePath>& places,
                                             const IsDiskOfVolume& is_disk_of,
                                             const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  ASSIGN_OR_RETURN(
      MountListing listing,
      host.kernel.Call(ListMounts{.below = host.paths.GetPluginDir(plugin_name).Display()}, own));
  MountsByPath mounts;
  for (MountEntry& mount : listing.mounts) {
    std::string path = mount.mount_point;
    mounts.insert_or_assign(std::move(path), std::move(mount));
  }
  std::vector<bool> attached;
  for (size_t i = 0; i < places.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<std::string> devices,
                     DevicesUsedAt(host.kernel, scsi, mounts, places[i], own));
    bool all_there = true;
    for (const std::string& device : devices) {
      ASSIGN_OR_RETURN(const std::vector<ScsiDisk> disks, DisksOf(scsi, device, own));
      bool is_there = false;
      for (const ScsiDisk& disk : disks) {
        ASSIGN_OR_RETURN(const bool is_of, is_disk_of(i, disk, own));
        is_there = is_there || is_of;
      }
      all_there = all_there && is_there;
    }
    attached.push_back(all_there);
  }
  return attached;
}

Result<BulkVolumeVerifier::AttachedByNode> NodeByNodeVerifier::BulkVerifyVolumes(
    const SpecsByNode& specs, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Attacher> attacher, plugin_.NewAttacher());
  AttachedByNode answers;
  for (const auto& [node, of_node] : specs) {
    ASSIGN_OR_RETURN(answers[node], attacher->VolumesAreAttached(of_node, node, call));
  }
  return answers;
}

Status CheckIsThisNode(const VolumeHost& host, const NodeName& node) {
  const NodeName own = host.node.GetNodeName();
  if (node == own) return OkStatus();
  return Error::NotApplied(Code::kInvalidArgument, "the disks of node " + node.str() +
                                                       " are not seen from node " + own.str());
}

}  // namespace volumed
