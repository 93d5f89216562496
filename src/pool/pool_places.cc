#include "pool/pool_places.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/printable_text.h"
#include "mounter/mount_refs.h"
#include "pool/pool_id.h"
#include "pool/static_backend.h"
#include "pool/static_export.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr char kDevDirectory[] = "/dev";
constexpr size_t kShownMount = 4096;  // bytes of a path in a message

// The devices that the volume has in its pool. Of one without a row it is not known which backend
// has it.
Result<std::vector<std::string>> DevicesOf(const PoolVolumes& volumes, const std::string& id,
                                           const CallOptions& call) {
  std::vector<std::string> devices;
  const std::optional<PoolId> parsed = ParsePoolId(id);
  if (!parsed || parsed->object != PoolObject::kVolume) return devices;
  const Result<PoolVolumeRecord> volume = volumes.Find(id);
  for (const std::unique_ptr<Pool>& pool : volumes.pools()) {
    if (pool->tag() != parsed->pool_tag) continue;
    const Pool::Opened* const opened = pool->opened();
    if (opened == nullptr) {
      return Error::NotApplied(
          Code::kUnavailable,
          "pool " + pool->name() + " is not open: the devices of volume " + id + " are not known");
    }
    for (const auto& [kind, backend] : opened->backends) {
      if (volume.ok() && volume->backend != kind) continue;
      ASSIGN_OR_RETURN(const std::vector<std::string> some, backend->ListDevices(*parsed, call));
      devices.insert(devices.end(), some.begin(), some.end());
    }
  }
  return devices;
}

// Of the volume's pool; null: it is not open.
const Pool::Opened* OpenedOf(const PoolVolumes& volumes, const std::string& id) {
  const std::optional<PoolId> parsed = ParsePoolId(id);
  if (!parsed || parsed->object != PoolObject::kVolume) return nullptr;
  for (const std::unique_ptr<Pool>& pool : volumes.pools()) {
    const Pool::Opened* const opened = pool->opened();
    if (pool->tag() == parsed->pool_tag && opened != nullptr) return opened;
  }
  return nullptr;
}

// Where the volume's directory is, if it is one; nullopt: its pool is not open.
std::optional<SafePath> TreeOf(const PoolVolumes& volumes, const std::string& id) {
  const Pool::Opened* const opened = OpenedOf(volumes, id);
  if (opened == nullptr) return std::nullopt;
  return opened->layout.Data(*ParsePoolId(id));
}

// A bind of a volume that is a directory. Which it is, is told by the place in its filesystem, so
// that a volume without a row is known, too.
Result<bool> ShowsTree(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                       const MountEntry& mount, const CallOptions& call) {
  const std::optional<SafePath> tree = TreeOf(volumes, id);
  if (!tree || !BindsVolume(mount, id)) return false;
  return ShowsWhatIsAt(kernel, mount, tree->Display(), call);
}

// A bind of the device's node, from the filesystem of /dev or from a disk that has that directory.
bool ShowsNode(const MountEntry& mount, const std::string& device) {
  if (mount.root == device) return true;
  const bool is_of_dev = mount.fs_type == "devtmpfs" || mount.fs_type == "tmpfs";
  return is_of_dev && kDevDirectory + mount.root == device;
}

// A filesystem without a device has a major number of 0, and its source is any text that whoever
// mounted it liked. A btrfs has such a number as well, although it has a device.
bool ShowsFilesystemOf(const MountEntry& mount, const std::string& device) {
  const bool has_device = mount.device_major != 0 || mount.fs_type == "btrfs";
  return has_device && mount.source == device;
}

// Where the volume's device is; nullopt: it is none, or is away.
Result<std::optional<std::string>> StaticDeviceOf(const PoolVolumes& volumes, Kernel& kernel,
                                                  const std::string& id, const CallOptions& call) {
  std::optional<std::string> path;
  const Result<PoolVolumeRecord> volume = volumes.Find(id);
  if (!volume.ok() || volume->backend != PoolBackendKind::kStatic) return path;
  const Result<IdentifiedDevice> device = FindStaticDevice(kernel, *volume, call);
  if (device.ok()) return std::optional(device->path);
  const bool is_away = device.error().code() == Code::kNotFound ||
                       device.error().code() == Code::kFailedPrecondition;
  if (is_away) return path;
  return device.error();
}

// An export is what the mount table says, and its server is not asked.
bool ShowsExport(const PoolVolumes& volumes, const std::string& id, const MountEntry& mount) {
  const Result<PoolVolumeRecord> volume = volumes.Find(id);
  return volume.ok() && volume->backend == PoolBackendKind::kExport && IsNfsType(mount.fs_type) &&
         IsShownExport(mount.source, volume->source);
}

}  // namespace

Result<ShownAt> FindShownAt(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                            const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(kernel, place.Display(), call));
  if (!mount) return ShownAt::kNothing;
  return WhatShows(volumes, kernel, id, *mount, call);
}

Result<ShownAt> FindShownAtAnew(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                                const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAtAnew(kernel, place.Display(), call));
  if (!mount) return ShownAt::kNothing;
  return WhatShows(volumes, kernel, id, *mount, call);
}

bool BindsVolume(const MountEntry& mount, const std::string& id) {
  const std::optional<PoolId> parsed = ParsePoolId(id);
  return parsed && mount.root.ends_with(PoolLayout("").Data(*parsed).Display());
}

Result<ShownAt> WhatShows(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                          const MountEntry& mount, const CallOptions& call) {
  if (ShowsExport(volumes, id, mount)) return ShownAt::kFilesystem;
  ASSIGN_OR_RETURN(const bool is_tree, ShowsTree(volumes, kernel, id, mount, call));
  if (is_tree) return ShownAt::kFilesystem;
  ASSIGN_OR_RETURN(const std::optional<std::string> device,
                   StaticDeviceOf(volumes, kernel, id, call));
  if (device && ShowsNode(mount, *device)) return ShownAt::kDevice;
  if (device && ShowsFilesystemOf(mount, *device)) return ShownAt::kFilesystem;
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, DevicesOf(volumes, id, call));
  for (const std::string& its : devices) {
    if (ShowsNode(mount, its)) return ShownAt::kDevice;
    if (ShowsFilesystemOf(mount, its)) return ShownAt::kFilesystem;
  }
  return ShownAt::kElse;
}

Status CheckShowsVolume(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                        const MountEntry& mount, const CallOptions& call) {
  ASSIGN_OR_RETURN(const ShownAt shown, WhatShows(volumes, kernel, id, mount, call));
  if (shown == ShownAt::kFilesystem) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "something else than volume " + id +
                                                          " is mounted at " +
                                                          Quoted(mount.mount_point, kShownMount));
}

Result<bool> HasNoDevice(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                         const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, volumes.Find(id));
  if (volume.backend == PoolBackendKind::kStatic) return false;
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, DevicesOf(volumes, id, call));
  const Pool::Opened* const opened = OpenedOf(volumes, id);
  if (!devices.empty() || opened == nullptr) return false;
  if (volume.backend != PoolBackendKind::kImage) return true;
  // Loop devices are found by the file.
  CallOptions in_pool = call;
  in_pool.domain = volumes.DomainOf(id);
  ASSIGN_OR_RETURN(const FileInfo file,
                   kernel.Call(Stat{opened->layout.Image(*ParsePoolId(id))}, in_pool));
  return file.type == FileType::kRegular && file.inode == volume.object.inode;
}

Result<bool> IsShownAnywhere(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                             const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, DevicesOf(volumes, id, call));
  ASSIGN_OR_RETURN(const MountListing all, kernel.Call(ListMounts{}, call));
  for (const MountEntry& mount : all.mounts) {
    for (const std::string& its : devices) {
      if (ShowsNode(mount, its) || mount.source == its) return true;
    }
    if (ShowsExport(volumes, id, mount)) return true;
  }
  const std::optional<SafePath> tree = TreeOf(volumes, id);
  if (!tree) return false;
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   FindMountsOfTree(kernel, tree->Display(), call));
  return !places.empty();
}

Result<std::vector<std::string>> FindMountsOf(const PoolVolumes& volumes, Kernel& kernel,
                                              const std::string& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> devices, DevicesOf(volumes, id, call));
  std::vector<std::string> places;
  if (devices.empty()) return places;
  ASSIGN_OR_RETURN(const MountListing all, kernel.Call(ListMounts{}, call));
  for (const MountEntry& mount : all.mounts) {
    if (std::find(devices.begin(), devices.end(), mount.source) == devices.end()) continue;
    places.push_back(mount.mount_point);
  }
  return places;
}

}  // namespace volumed
