// What plugins of block devices have in common: the device's one mount for the node, a pod's bind
// of it, and its growth. Private to plugins. Source: kubernetes pkg/volume/local/local.go,
// pkg/volume/iscsi/disk_manager.go@v1.36.2.
//
// Threads: one at a time per volume. Blocks: until the call's deadline, but for mkfs, fsck and the
// growth of a filesystem, which are never cut short.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "base/result.h"
#include "mounter/format_decision.h"
#include "mounter/format_intents.h"
#include "mounter/safe_format_and_mount.h"
#include "volumehost/volume_host.h"

namespace volumed {

// On a PersistentVolume: "never", "blank" or "full-scan"; "never", "preen" or "report".
inline constexpr char kFormatPolicyAnnotation[] = "volumed.io/format-policy";
inline constexpr char kFsckPolicyAnnotation[] = "volumed.io/fsck-policy";

// Of a filesystem, when neither the volume nor the disk names one.
inline constexpr char kDefaultFsType[] = "ext4";

struct DeviceVolumeSettings {
  // Outlives the plugin. Null: block devices are not mounted, as no format could be recorded.
  FormatIntents* format_intents = nullptr;
  // Where a volume's annotations say nothing.
  FormatPolicy format_policy = FormatPolicy::kBlank;
  FsckPolicy fsck_policy = FsckPolicy::kPreen;
};

// The volume itself says so by its mount options, to every pod. Null, an inline volume: no.
bool IsReadOnlyVolume(const PersistentVolume* volume);

struct DeviceMountRequest {
  std::string plugin;                        // "local": for messages
  std::string key;                           // of the volume, for its format intent
  const PersistentVolume* volume = nullptr;  // for its options and annotations; null: inline
  std::string device;                        // a path
  // What the path must lead to, where that was found out before.
  std::optional<DeviceIdentity> expected = std::nullopt;
  SafePath place;                       // an existing directory
  std::string fs_type;                  // empty: kDefaultFsType
  std::vector<std::string> options;     // of the plugin, besides the volume's
  bool for_readers = false;             // nobody is to write to it
  bool read_only_if_protected = false;  // see SafeMountRequest
};

// Proves, formats, checks and mounts; the notices go to args.event, another filesystem than the
// wanted one to the PersistentVolume. Errors: Unimplemented, not applied, without format intents;
// those of SafeFormatAndMount.
Status MountDeviceVolume(VolumeHost& host, const DeviceVolumeSettings& settings,
                         const DeviceMountRequest& request, const DeviceMounterArgs& args);

// FailedPrecondition, not applied, when the mount of `device` at `source` takes no writes: a pod
// that writes never gets a read-only filesystem without a word.
Status CheckTakesWrites(VolumeHost& host, const std::string& device, const SafePath& source,
                        const CallOptions& call);

// Makes the pod's directory and binds `source` there; only `expected` if that has an inode. Not
// applied: not even the directory is there.
Status BindForPod(VolumeHost& host, const SafePath& source, const SafePath& dir, bool read_only,
                  const CallOptions& call, const StorageObject& expected = {});

struct DeviceGrowth {
  std::string plugin;  // for messages
  std::string device;
  SafePath mounted_at;    // of a filesystem
  bool is_block = false;  // pods have the device itself
  int64_t target_bytes = 0;
  std::function<void(const std::string&)> note;  // may be empty
};

// Makes the filesystem as large as its device, and proves that the volume has its new size. True.
// Errors, besides those of ResizeFs: ResourceExhausted, not applied, for a device that is smaller
// than the new size, naming both; Internal, maybe applied, for a filesystem that did not grow.
Result<bool> GrowDeviceVolume(VolumeHost& host, const DeviceGrowth& growth,
                              const CallOptions& call);

}  // namespace volumed
