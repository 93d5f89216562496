// Mounting a volume's device for the node, by the rules of docs/FORMATTING.md: what the plugins of
// block devices have in common.
#pragma once

#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "mounter/format_decision.h"
#include "mounter/format_intents.h"
#include "volume/volume_spec.h"
#include "volumehost/volume_host.h"

namespace volumed {

// On a PersistentVolume: "never", "blank" or "full-scan"; "never", "preen" or "report".
inline constexpr char kFormatPolicyAnnotation[] = "volumed.io/format-policy";
inline constexpr char kFsckPolicyAnnotation[] = "volumed.io/fsck-policy";

struct DeviceMountSettings {
  // Outlives the plugin. Null: block devices are not mounted, as no format could be recorded.
  FormatIntents* format_intents = nullptr;
  // Where a volume's annotations say nothing.
  FormatPolicy format_policy = FormatPolicy::kBlank;
  FsckPolicy fsck_policy = FsckPolicy::kPreen;
};

struct DeviceToMount {
  std::string key;                   // of the volume, for its format intent
  std::string path;                  // of the device
  SafePath place;                    // an existing directory
  std::string fs_type;               // empty: ext4
  std::vector<std::string> options;  // "ro" alone makes it read-only
  bool for_readers = false;          // no pod writes: nothing is formatted
};

// Notices go to args.event; a filesystem of another type is told to the PersistentVolume as well.
// Threads: one call at a time per volume. Blocks: until the deadline, but for mkfs and fsck.
// Errors: Unimplemented, not applied, where nothing keeps the intents of formats; InvalidArgument,
// not applied, for a bad annotation; those of SafeFormatAndMount, naming device and place.
Status FormatAndMountVolume(VolumeHost& host, const DeviceMountSettings& settings,
                            const VolumeSpec& spec, const DeviceToMount& device,
                            const DeviceMounterArgs& args);

}  // namespace volumed
