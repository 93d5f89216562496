// Reconstructor: finds what the last agent left on this node, from three witnesses: the records,
// the mount table, and the directories of pods that have a record. Each witness may know a volume
// that the others have lost; what any of them knows enters the actual state as uncertain. Nothing
// on the node is changed here: a volume that is wanted is verified later by a remount, any other is
// torn down once that is allowed. Source: kubernetes
// pkg/kubelet/volumemanager/reconciler/reconstruct.go@v1.36.2, which has the directories alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "operation/unrecorded_mounts.h"
#include "operation/volume_record.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/found_at_start.h"
#include "volumemanager/take_over.h"

namespace volumed {

struct FindOptions {
  // Look at the directories of all pods, not only of pods with a record.
  bool all_directories = false;
  std::string pod_logs_directory = "/var/log/pods";  // of the kubelet that had the root
  Duration call_timeout = std::chrono::seconds(10);
};

// All members outlive the call.
struct FindParts {
  Kernel& kernel;
  const VolumePluginMgr& plugins;
  const Clock& clock;
  const KubeletPaths& paths;
  Logger& log;
};

// Fills in what the kernel and the disk show: all members that are neither rows nor `pod_objects`.
// Threads: any. Blocks: on the kernel, and plugins. Only the agent's own directories are read,
// never a directory inside a volume, nor one over which something is mounted.
// Errors: those of ListMounts, not applied. A directory that cannot be read, or a volume that its
// plugin cannot construct, is left out and logged.
Status LookAtNode(const FindParts& parts, const FindOptions& options, FoundAtStart& found);

struct ReconstructResult {
  // For the operation layer: the volumes as a new agent must take them over.
  std::vector<PodVolumeRecord> volumes;
  std::vector<DeviceRecord> devices;
  size_t quarantined_pods = 0;
  // Pods whose holds may have been among rows that are gone, and why, for people.
  std::map<PodUid, std::string> may_be_held;
  TakeOver take_over;
  // Mounts below the root, of pods that no record knows: they are not this agent's and are left
  // alone.
  std::vector<KubeletPaths::PodVolume> unknown_mounts;
  std::vector<KubeletPaths::DeviceMount> unknown_device_mounts;  // likewise
  std::vector<std::string> unknown_mount_texts;                  // of both (unknown_mount_texts.h)
  // For the operation layer: all mounts of volumes that are on no record, also of pods that are.
  std::vector<UnrecordedMount> unrecorded;
};

// Puts what was found into `actual`. With `adopt_root`, pods without a record are taken over too.
// Threads: any, if no other thread uses `actual`. Blocks: never. Errors: none; a pod or device
// whose row cannot be read is added with a quarantine reason, and is left alone.
ReconstructResult Reconstruct(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                              const KubeletPaths& paths, ActualStateOfWorld& actual);

}  // namespace volumed
