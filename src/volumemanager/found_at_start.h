// FoundAtStart: what the last agent left, as far as it is known before anything is decided, and the
// reading of the records, its first witness. The reconstructor adds what the node shows.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "operation/object_record.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"
#include "records/record_store.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/found_volumes.h"

namespace volumed {

// Something is mounted over one of the agent's own directories in the pod's directory. What lies
// below it is not looked into, and the pod is left alone until that mount goes.
struct CoveredPod {
  std::string mount_point;
  std::string fs_type;
};

// Rows that are not the manager's own. They are read with its own, so that their owner has them
// before the first pod is looked at.
struct OtherRecordKind {
  std::string kind;
  // Whether the owner can decode the row; one that it cannot decode is quarantined. Threads: any.
  std::function<Status(const Record&)> check;
};

// Everything that is known of the last agent before anything is decided. LoadRecordsAtStart makes
// it; DecodePodObjects and the reconstructor's LookAtNode add to it.
struct FoundAtStart {
  // The pod object of the pod's record; null if the record has none that can be read now.
  ObjectPtr ObjectOf(const PodUid& pod) const;

  std::vector<PodRecord> pods;
  std::unordered_map<PodUid, ObjectPtr> pod_objects;  // the objects of `pods`; see ObjectOf
  std::vector<PodVolumeRecord> volumes;               // as they were written
  std::vector<DeviceRecord> devices;                  // as they were written
  // What is at places that COs gave (operation/given_place.h), as it was written, and in none of
  // the two lists above. It goes to the operations and to the StorageGuard, and to nobody else: a
  // CO repeats its calls, and whatever it does not take back stays.
  std::vector<PodVolumeRecord> target_volumes;
  std::vector<DeviceRecord> target_devices;
  std::vector<HoldRecord> holds;
  std::vector<ClaimBindingRecord> bindings;
  std::vector<ProvisionRecord> provisioned;
  std::vector<KnownObjectRecord> objects;
  std::vector<ObjectSourceRecord> sources;
  std::vector<ObjectUidRecord> uids;  // rows of the former release
  std::vector<DeletedObjectRecord> deleted;
  std::vector<CommandNumberRecord> command_numbers;  // at most one
  std::vector<StorageReservationRecord> reservations;
  std::map<std::string, LoadedRecords> others;       // by kind, as others have asked for
  std::vector<QuarantinedRecord> quarantined;        // of all kinds
  std::vector<KubeletPaths::PodVolume> mounted;      // from the mount table, each once
  std::vector<KubeletPaths::PodVolume> directories;  // below pods/, of pods with a record or of all
  // On no record, and of which but a subPath of a container is mounted, each once. The plugin is
  // that of the volume's directory; empty if there is none any more.
  std::vector<KubeletPaths::PodVolume> sub_paths_alone;
  std::map<PodUid, CoveredPod> covered;  // from the mount table; these are not looked into
  // What is mounted below the root, by mount point: the filesystem, or kSeveralMounts if there are
  // several mounts.
  std::unordered_map<std::string, std::string> mounts_at;
  static constexpr const char* kSeveralMounts = "several mounts";
  // Names of plugins that hand out what is there: their volumes leave nothing in a pod's directory.
  std::set<std::string> handing_out;
  std::vector<PodUid> pod_directories;  // with all_directories only
  FoundAdoptedPods adopted;             // with all_directories only
  // From the mount table, and from plugins that say which volumes their devices are
  // (found_devices.h); each once.
  std::vector<KubeletPaths::DeviceMount> device_mounts;
  // From the mount table, by the global map directory: pods that have a block volume, for plugins
  // that say it of a path (KubeletPaths::DeviceMount::pod).
  std::map<std::string, std::set<PodUid>> device_pods;
  // What plugins construct of volumes that no record knows. A volume of which nothing tells any
  // more what it was is left out.
  std::map<PodVolumeKey, FoundVolume> constructed;
  // Volumes that no record knows and of which no plugin can say which they are.
  std::set<PodVolumeKey> unnamed;
};

// Loads all rows, those of the other kinds too, but does not decode the objects of pods. Threads:
// any. Blocks: on the store. Errors: the store's. A row that cannot be read is no error: it is
// among `quarantined`, with texts that can be shown.
Result<FoundAtStart> LoadRecordsAtStart(RecordStore& store,
                                        const std::vector<OtherRecordKind>& other_kinds = {});

// Clears DeviceRecord::only_pod, also of devices at places that COs gave, where no record tells of
// the pod any more: it cannot have the volume, and nobody would give that back. The rows stay as
// they are until they are written next. Threads: any. Blocks: never.
void DropOnlyPodsOfNobody(FoundAtStart& found);

// Fills `pod_objects` from the rows. It changes no other member, so LookAtNode may run beside it.
// Threads: any. Blocks: never.
void DecodePodObjects(FoundAtStart& found);

}  // namespace volumed
