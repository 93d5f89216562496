#include "csidriver/volume_health.h"

#include <algorithm>
#include <optional>

#include "base/failed_filesystem.h"
#include "csidriver/place_looks.h"
#include "mounter/mount_refs.h"
#include "operation/call_options.h"
#include "os/place_names.h"

namespace volumed {
namespace {

using ::csi::v1::NodeGetStorageHealthResponse;
using ::csi::v1::VolumeHealth;

constexpr char kFileLost[] = "FileLost";
constexpr char kDeviceAway[] = "DeviceAway";
constexpr char kLimitLost[] = "LimitLost";
constexpr char kMountLost[] = "MountLost";
constexpr char kReadOnly[] = "ReadOnly";
constexpr char kServerUnreachable[] = "ServerUnreachable";

// No two conditions have the same status and reason: the texts are joined.
template <typename Entries, typename Type>
void AddCondition(Entries& entries, Type status, const char* reason, const std::string& text) {
  const auto there = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.status() == status && entry.reason() == reason;
  });
  if (there != entries.end()) {
    there->set_message(there->message() + "; " + text);
    return;
  }
  auto& entry = *entries.Add();
  entry.set_status(status);
  entry.set_reason(reason);
  entry.set_message(text);
}

// Source: Linux 6.18 fs/ext4/super.c (errors=remount-ro, emergency_ro, shutdown), fs/btrfs/fs.c (a
// filesystem that has failed is "ro").
bool HasStoppedWrites(const MountEntry& mount) {
  return std::any_of(mount.super_options.begin(), mount.super_options.end(),
                     [](const std::string& option) {
                       return option == "ro" || option == "emergency_ro" || option == "shutdown";
                     });
}

// An xfs that was shut down says so to whoever asks for the attributes of a file, and in no word of
// the mount table. Source: Linux 6.18 fs/xfs/xfs_iops.c (xfs_vn_getattr).
bool IsShutDown(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  if (!CheckPlaceAnswers(kernel, ParentOf(place), call).ok()) return false;
  const Result<FileInfo> root = kernel.Call(Stat{.path = place}, OnPath(call, place));
  return !root.ok() && IsFailedFilesystem(root.error().sys_errno());
}

}  // namespace

void TellVolumeHealth(const PoolVolumeRecord& volume, const PoolHealth& pool,
                      VolumeHealth& health) {
  auto& entries = *health.mutable_health_statuses();
  if (volume.backend == PoolBackendKind::kExport) return;
  if (!pool.reachable.ok()) {
    return AddCondition(entries, ::csi::v1::INACCESSIBLE, kPoolUnreachableReason,
                        "pool " + volume.pool + ": " + pool.reachable.error().message());
  }
  const auto lost = pool.lost.find(volume.id);
  if (lost != pool.lost.end()) {
    // The data of a device that is away is where the device is.
    const bool is_device = volume.backend == PoolBackendKind::kStatic;
    AddCondition(entries, is_device ? ::csi::v1::INACCESSIBLE : ::csi::v1::DATA_LOSS,
                 is_device ? kDeviceAway : kFileLost, lost->second);
  }
  const auto unbounded = pool.unbounded.find(volume.id);
  if (unbounded != pool.unbounded.end()) {
    AddCondition(entries, ::csi::v1::DEGRADED, kLimitLost,
                 "its directory is not bounded by its size: " + unbounded->second);
  }
  if (!pool.is_short) return;
  AddCondition(entries, ::csi::v1::DEGRADED, kPoolShortReason,
               "pool " + volume.pool + ": " + kPoolShortText);
}

Status TellPlacesHealth(Kernel& kernel, const std::vector<NodePlace>& places, bool writes,
                        const CallOptions& call, VolumeHealth& health) {
  auto& entries = *health.mutable_health_statuses();
  for (const NodePlace& place : places) {
    // Nothing is mounted at the place of a staged device.
    if (!place.is_finished || (place.is_block && place.is_staging)) continue;
    const std::string path = place.place.Display();
    ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountAt(kernel, path, call));
    if (!mount) {
      AddCondition(entries, ::csi::v1::INACCESSIBLE, kMountLost,
                   "nothing is mounted at " + ShownPath(path) + " any more");
    } else if (writes && place.is_staging && HasStoppedWrites(*mount)) {
      AddCondition(entries, ::csi::v1::DEGRADED, kReadOnly,
                   "its filesystem takes no writes since an error: the kernel's log says which");
    } else if (!place.is_block && place.is_staging && IsShutDown(kernel, place.place, call)) {
      AddCondition(entries, ::csi::v1::DEGRADED, kReadOnly,
                   "its filesystem answers everything with an error, as the kernel has shut it "
                   "down: the kernel's log says why");
    }
  }
  return OkStatus();
}

void TellServerHealth(Kernel& kernel, const std::vector<NodePlace>& places, const CallOptions& call,
                      VolumeHealth& health) {
  for (const NodePlace& place : places) {
    if (!place.is_finished) continue;
    CallOptions at_server = call;
    at_server.domain = place.fault_domain;
    const Result<FsInfo> info = kernel.Call(StatFs{place.place}, at_server);
    if (info.ok()) return;
    return AddCondition(*health.mutable_health_statuses(), ::csi::v1::INACCESSIBLE,
                        kServerUnreachable, info.error().message());
  }
}

void TellStorageHealth(const std::string& pool_name, const PoolHealth& pool,
                       NodeGetStorageHealthResponse& response) {
  auto& entries = *response.mutable_backend_health();
  const std::string of = "pool " + pool_name + ": ";
  if (!pool.reachable.ok()) {
    AddCondition(entries, ::csi::v1::STORAGE_UNREACHABLE, kPoolUnreachableReason,
                 of + pool.reachable.error().message());
  } else if (pool.is_short) {
    AddCondition(entries, ::csi::v1::STORAGE_DEGRADED, kPoolShortReason, of + kPoolShortText);
  }
}

}  // namespace volumed
