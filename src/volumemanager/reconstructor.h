// Reconstructor: finds what the last agent left on this node, from three witnesses: the records,
// the mount table, and the directories of pods that have a record. Each witness may know a volume
// that the others have lost; what any of them knows enters the actual state as uncertain. Nothing
// on the node is changed here: a volume that is wanted is verified later by a remount, any other is
// torn down once that is allowed. Source: kubernetes
// pkg/kubelet/volumemanager/reconciler/reconstruct.go@v1.36.2, which has the directories alone.
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

// Something is mounted over one of the agent's own directories in the pod's directory. What lies
// below it is not looked into, and the pod is left alone until that mount goes.
struct CoveredPod {
  std::string mount_point;
  std::string fs_type;
};

// Everything that is known of the last agent before anything is decided. LoadRecordsAtStart makes
// it; DecodePodObjects and LookAtNode add to it.
struct FoundAtStart {
  // The pod object of the pod's record; null if the record has none that can be read now.
  ObjectPtr ObjectOf(const PodUid& pod) const;

  std::vector<PodRecord> pods;
  std::unordered_map<PodUid, ObjectPtr> pod_objects;  // the objects of `pods`; see ObjectOf
  std::vector<PodVolumeRecord> volumes;               // as they were written
  std::vector<DeviceRecord> devices;                  // as they were written
  std::vector<HoldRecord> holds;
  std::vector<ClaimBindingRecord> bindings;
  std::vector<ProvisionRecord> provisioned;
  std::vector<KnownObjectRecord> objects;
  std::vector<ObjectSourceRecord> sources;
  std::vector<ObjectUidRecord> uids;  // rows of the former release
  std::vector<DeletedObjectRecord> deleted;
  std::vector<CommandNumberRecord> command_numbers;  // at most one
  std::vector<QuarantinedRecord> quarantined;        // of all kinds
  std::vector<KubeletPaths::PodVolume> mounted;      // from the mount table, each once
  std::vector<KubeletPaths::PodVolume> directories;  // below pods/, see LookAtNode
  std::map<PodUid, CoveredPod> covered;  // from the mount table; these are not looked into
  // What is mounted below the root, by mount point: the filesystem, or kSeveralMounts if there are
  // several mounts.
  std::unordered_map<std::string, std::string> mounts_at;
  static constexpr const char* kSeveralMounts = "several mounts";
  // Names of plugins that hand out what is there: their volumes leave nothing in a pod's directory.
  std::set<std::string> handing_out;
  std::vector<PodUid> pod_directories;                   // with all_directories only
  FoundAdoptedPods adopted;                              // with all_directories only
  std::vector<KubeletPaths::DeviceMount> device_mounts;  // from the mount table, each once
  // What plugins construct of volumes that no record knows. A volume of which nothing tells any
  // more what it was is left out.
  std::map<PodVolumeKey, FoundVolume> constructed;
};

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

// Loads all rows, but does not decode the objects of pods. Threads: any. Blocks: on the store.
// Errors: the store's. A row that cannot be read is no error: it is among `quarantined`, with texts
// that can be shown.
Result<FoundAtStart> LoadRecordsAtStart(RecordStore& store);

// Fills `pod_objects` from the rows. It changes no other member, so LookAtNode may run beside it.
// Threads: any. Blocks: never.
void DecodePodObjects(FoundAtStart& found);

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
  TakeOver take_over;
  // Mounts below the root, of pods that no record knows: they are not this agent's and are left
  // alone.
  std::vector<KubeletPaths::PodVolume> unknown_mounts;
  std::vector<KubeletPaths::DeviceMount> unknown_device_mounts;  // likewise
};

// Puts what was found into `actual`. With `adopt_root`, pods without a record are taken over too.
// Threads: any, if no other thread uses `actual`. Blocks: never. Errors: none; a pod or device
// whose row cannot be read is added with a quarantine reason, and is left alone.
ReconstructResult Reconstruct(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                              const KubeletPaths& paths, ActualStateOfWorld& actual);

}  // namespace volumed
