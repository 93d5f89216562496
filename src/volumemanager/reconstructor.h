// Reconstructor: what the last agent left on this node, from three witnesses: the records, the
// mount table, and the directories of pods that have a record. Each may know a volume that the
// others have lost; what any of them knows enters the actual state as uncertain. Nothing is changed
// here: what is wanted is verified by a remount later, what is not is torn down once that is
// allowed. Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconstruct.go@v1.36.2, which
// has the directories alone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "operation/object_record.h"
#include "operation/volume_record.h"
#include "os/kernel.h"
#include "records/record_store.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/found_volumes.h"
#include "volumemanager/take_over.h"

namespace volumed {

// Somebody has mounted something over a directory of the agent's own in a pod's.
struct CoveredPod {
  std::string mount_point;
  std::string fs_type;
};

struct FoundAtStart {
  // Of the pod's record; null if that holds none that can be read now.
  ObjectPtr ObjectOf(const PodUid& pod) const;

  std::vector<PodRecord> pods;
  std::unordered_map<PodUid, ObjectPtr> pod_objects;  // of those records; see ObjectOf
  std::vector<PodVolumeRecord> volumes;               // as they were written
  std::vector<DeviceRecord> devices;                  // likewise
  std::vector<HoldRecord> holds;
  std::vector<ClaimBindingRecord> bindings;
  std::vector<ProvisionRecord> provisioned;
  std::vector<KnownObjectRecord> objects;
  std::vector<ObjectSourceRecord> sources;
  std::vector<ObjectUidRecord> uids;  // of the former release
  std::vector<DeletedObjectRecord> deleted;
  std::vector<CommandNumberRecord> command_numbers;  // one at most
  std::vector<QuarantinedRecord> quarantined;        // of all kinds
  std::vector<KubeletPaths::PodVolume> mounted;      // by the mount table, each once
  std::vector<KubeletPaths::PodVolume> directories;  // below pods/, see LookAtNode
  std::map<PodUid, CoveredPod> covered;              // by the mount table; not looked into
  // What is mounted, by its mount point, below the root: the filesystem, if it is one alone.
  std::unordered_map<std::string, std::string> mounts_at;
  static constexpr const char* kSeveralMounts = "several mounts";
  // Plugins of these volumes which hand out what is there, and leave nothing in a pod's directory.
  std::set<std::string> handing_out;
  std::vector<PodUid> pod_directories;                   // with all_directories
  FoundAdoptedPods adopted;                              // likewise
  std::vector<KubeletPaths::DeviceMount> device_mounts;  // by the mount table, each once
  // Of those that no record knows: what their plugins make of them. One that nothing tells of any
  // more is left out.
  std::map<PodVolumeKey, FoundVolume> constructed;
};

struct FindOptions {
  // Look at the directories of all pods, not only of those with a record.
  bool all_directories = false;
  std::string pod_logs_directory = "/var/log/pods";  // of the kubelet that had the root
  Duration call_timeout = std::chrono::seconds(10);
};

// All outlive the call.
struct FindParts {
  Kernel& kernel;
  const VolumePluginMgr& plugins;
  const Clock& clock;
  const KubeletPaths& paths;
  Logger& log;
};

// All rows, without the objects of pods. Threads: any. Blocks: on the store. Errors: its own.
Result<FoundAtStart> LoadRecordsAtStart(RecordStore& store);

// `pod_objects`, from the rows. It touches nothing else, so that LookAtNode may run beside it.
// Threads: any. Blocks: never.
void DecodePodObjects(FoundAtStart& found);

// What the kernel and the disk show, and all that is neither a row nor `pod_objects`.
// Threads: any. Blocks: on the kernel, and plugins. Only directories of the agent's own are read,
// never one inside a volume, nor one that somebody has mounted something over.
// Errors: those of ListMounts, not applied; a directory that cannot be read, and a volume that its
// plugin cannot construct, is left out, and logged.
Status LookAtNode(const FindParts& parts, const FindOptions& options, FoundAtStart& found);

struct ReconstructResult {
  // For the operation layer: the volumes as a new agent must take them.
  std::vector<PodVolumeRecord> volumes;
  std::vector<DeviceRecord> devices;
  size_t quarantined_pods = 0;
  TakeOver take_over;
  // Mounts below the root of pods that no record knows: not ours, left alone.
  std::vector<KubeletPaths::PodVolume> unknown_mounts;
  std::vector<KubeletPaths::DeviceMount> unknown_device_mounts;  // likewise
};

// Puts what was found into `actual`. With `adopt_root`, pods without a record are taken as ours.
// Threads: any that has `actual` for itself. Blocks: never.
ReconstructResult Reconstruct(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                              const KubeletPaths& paths, ActualStateOfWorld& actual);

}  // namespace volumed
