// What plugins of block devices share, in whatever folder they are: the device's one mount for the
// node, a pod's bind of it, and its growth. Source: kubernetes pkg/volume/local/local.go,
// pkg/volume/iscsi/disk_manager.go@v1.36.2.
//
// Threads: one at a time per volume. Blocks: until the call's deadline, except for mkfs, fsck and
// the growth of a filesystem, which are never cut short.
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

// Annotations of a PersistentVolume, which win over the settings: when it may be formatted
// ("never", "blank" or "full-scan"), and how it is checked ("never", "preen" or "report"). Another
// text fails the mount with InvalidArgument, not applied.
inline constexpr char kFormatPolicyAnnotation[] = "volumed.io/format-policy";
inline constexpr char kFsckPolicyAnnotation[] = "volumed.io/fsck-policy";

// The filesystem to make if neither the volume nor the disk names one.
inline constexpr char kDefaultFsType[] = "ext4";

struct DeviceVolumeSettings {
  // Outlives the plugin. Null: block devices are not mounted, since no format could be recorded.
  FormatIntents* format_intents = nullptr;
  // These hold if a volume's annotations do not say otherwise.
  FormatPolicy format_policy = FormatPolicy::kBlank;
  FsckPolicy fsck_policy = FsckPolicy::kPreen;
};

// Whether the volume's own mount options make it read-only for every pod. False for null, an inline
// volume.
bool IsReadOnlyVolume(const PersistentVolume* volume);

struct DeviceMountRequest {
  std::string plugin;  // "local": for messages
  std::string key;     // of the volume, for its format intent
  // Its mount options and annotations are used; null for an inline volume.
  const PersistentVolume* volume = nullptr;
  std::string device;  // a path
  // The device to which the path must lead, if that was found out before.
  std::optional<DeviceIdentity> expected = std::nullopt;
  SafePath place;                       // an existing directory
  std::string fs_type;                  // empty: kDefaultFsType
  std::vector<std::string> options;     // of the plugin, besides the volume's
  bool for_readers = false;             // no pod is to write to it
  bool read_only_if_protected = false;  // see SafeMountRequest
  bool needs_whole = false;             // likewise
  std::string fs_uuid = {};             // see SafeMountRequest
  // What the plugin knows of the volume wins over annotation and settings.
  std::optional<FormatPolicy> format_policy = std::nullopt;
  std::vector<std::string> format_options = {};  // of mkfs
};

// What is mounted by now.
struct MountedFilesystem {
  std::string fs_type;
  std::string fs_uuid;  // empty if the filesystem has none
};

// Proves, formats, checks and mounts the device. Notices go to args.event; that the filesystem is
// another one than the wanted one goes to the PersistentVolume. Errors: Unimplemented, not applied,
// without format intents; those of SafeFormatAndMount; InvalidArgument, not applied, for an
// annotation that names no policy. A mkfs or an fsck that has begun is not ended by the deadline;
// progress in bytes goes to args.call.progress.
Result<MountedFilesystem> MountDeviceVolume(VolumeHost& host, const DeviceVolumeSettings& settings,
                                            const DeviceMountRequest& request,
                                            const DeviceMounterArgs& args);

// Errors: FailedPrecondition, not applied, if the mount of `device` at `source` takes no writes. A
// pod that writes must not get a read-only filesystem without an error. If nothing is mounted at
// `source` it says OK: whoever binds notices that.
Status CheckTakesWrites(VolumeHost& host, const std::string& device, const SafePath& source,
                        const CallOptions& call);

// Makes the pod's directory and binds `source` there; if `expected` has an inode, only that
// directory is bound, and with `part` only the mount that shows it. After an error that was not
// applied, the directory does not exist either. Errors: those of MakePlace and BindMount.
Status BindForPod(VolumeHost& host, const SafePath& source, const SafePath& dir, bool read_only,
                  const CallOptions& call, const StorageObject& expected = {},
                  const std::optional<FilesystemPart>& part = std::nullopt);

struct DeviceGrowth {
  std::string plugin;  // for messages
  std::string device;
  SafePath mounted_at;    // if it is a filesystem
  bool is_block = false;  // pods get the device itself
  int64_t target_bytes = 0;
  std::function<void(const std::string&)> note;  // may be empty
};

// Makes the filesystem as large as its device, proves that the volume has its new size, and returns
// true. Errors, besides those of ResizeFs: ResourceExhausted, not applied, naming both sizes, if
// the device is smaller than the new size; Internal, maybe applied, if the filesystem did not grow;
// DataLoss, not applied, if the device has no filesystem. With `is_block` only the device's size is
// looked at. What was found goes to `note` as a text for people.
Result<bool> GrowDeviceVolume(VolumeHost& host, const DeviceGrowth& growth,
                              const CallOptions& call);

}  // namespace volumed
