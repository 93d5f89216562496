#include "csidriver/volume_health.h"

#include <algorithm>
#include <optional>

#include "mounter/mount_refs.h"

namespace volumed {
namespace {

using ::csi::v1::NodeGetStorageHealthResponse;
using ::csi::v1::VolumeHealth;

constexpr char kPoolUnreachable[] = "PoolUnreachable";
constexpr char kPoolShort[] = "PoolShort";
constexpr char kFileLost[] = "FileLost";
constexpr char kMountLost[] = "MountLost";
constexpr char kReadOnly[] = "ReadOnly";
constexpr char kServerUnreachable[] = "ServerUnreachable";

constexpr char kShortText[] =
    "its filesystem has less left than its volumes were promised, as something else has filled it";

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

}  // namespace

void TellVolumeHealth(const PoolVolumeRecord& volume, const PoolHealth& pool,
                      VolumeHealth& health) {
  auto& entries = *health.mutable_health_statuses();
  if (volume.backend == PoolBackendKind::kExport) return;
  if (!pool.reachable.ok()) {
    return AddCondition(entries, ::csi::v1::INACCESSIBLE, kPoolUnreachable,
                        "pool " + volume.pool + ": " + pool.reachable.error().message());
  }
  const auto lost = pool.lost.find(volume.id);
  if (lost != pool.lost.end()) {
    AddCondition(entries, ::csi::v1::DATA_LOSS, kFileLost, lost->second);
  }
  if (!pool.is_short) return;
  AddCondition(entries, ::csi::v1::DEGRADED, kPoolShort, "pool " + volume.pool + ": " + kShortText);
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
    AddCondition(entries, ::csi::v1::STORAGE_UNREACHABLE, kPoolUnreachable,
                 of + pool.reachable.error().message());
  } else if (pool.is_short) {
    AddCondition(entries, ::csi::v1::STORAGE_DEGRADED, kPoolShort, of + kShortText);
  }
}

}  // namespace volumed
