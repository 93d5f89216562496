// Reconciler: brings the actual state of a pod nearer to the desired one, by starting operations.
// Only this class starts operations on pods and their volumes; devices, claims and provisioned
// volumes have classes of their own. It runs for pods to which something happened, never for all in
// turn: an event marks a pod dirty, and one pass later looks at each dirty pod once.
//
// When it may take something away (docs/ARCHITECTURE.md, "Absence is not a command"):
//  - the records are loaded and every source has delivered a complete list; or the pod's deletion
//    was commanded by uid;
//  - and the pod's consumers are gone; or, if none was ever known, its grace period is over; or the
//    deletion is forced.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconciler.go@v1.36.2.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/device_reconciler.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconcile_queue.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/watch/consumers.h"

namespace volumed {

// Whether what is on the node can become what is wanted: the plugin is the same, and both are
// mounted or both are mapped.
inline bool IsSameKind(const ActualVolume& actual, const WantedVolume& wanted) {
  return actual.plugin_name == wanted.plugin_name && actual.is_block == wanted.is_block;
}

// Threads: the control thread. Blocks: never.
class Reconciler {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const Readiness& readiness;
    DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    Consumers& consumers;
    VolumeOperations& operations;
    RecordWriter& records;
    DeviceReconciler& devices;
    const KubeletPaths& paths;
    Logger& log;
  };
  // All have to be set. They are called on the control thread, from within passes and from the ends
  // of operations and writes.
  struct Hooks {
    // The view of the pod may have changed.
    std::function<void(const PodUid&)> changed;
    // A volume was set up, or is not set up any more.
    std::function<void(const PodVolumeKey&)> set_up, gone;
    // The teardown of the pod is looked at, and is not held up: what else it has left is to be
    // added to its actual state now.
    std::function<void(const PodUid&)> leaves;
    // The pod's directories and record are gone. Its actual state is gone, too; this is a copy of
    // the last one.
    std::function<void(const PodUid&, const ActualPod&)> removed;
    // A record that says that the pod's deletion was commanded is durable, or could not be written.
    std::function<void(const PodUid&, const Status&)> command_recorded;
  };

  Reconciler(Parts parts, Hooks hooks);
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  // No operation is started before this is called.
  void Start() { queue_.Start(); }
  void MarkDirty(const PodUid& pod, bool with_many = false) {
    queue_.MarkDirty(pod, with_many || with_many_.contains(pod));
  }
  // The pod comes, changes or leaves together with many others. Until work on its volumes has
  // begun, or it is gone, pods that come alone do not wait for it.
  void MarkDirtyWithMany(const PodUid& pod) {
    with_many_.insert(pod);
    MarkDirty(pod);
  }
  // Forgets the back-offs of a pod: the cause of its failures may be gone. That holds for its
  // record, its volumes and the devices of its wanted volumes, which are marked dirty; the pod
  // itself is not.
  void ResetBackoff(const PodUid& pod);
  // A mount below the pod's directory went; the pod's teardown may have waited for that.
  void MountWent(const PodUid& pod);
  // The directory that the volume comes from may be another one now. If the volume's set-up has
  // failed, or fails now, it is tried again at once.
  void SourceMayHaveChanged(const PodVolumeKey& key);
  // Forgets the back-off of the volume alone, and not that of its device.
  void ResetBackoff(const PodVolumeKey& key) { parts_.operations.ResetBackoff(key); }
  // Forgets the back-off of the volume's device, which is marked dirty. Has no effect for a volume
  // without a device.
  void RetryDevice(const WantedVolume& volume);

  // Why a pod that is to leave, or a volume that a pod no longer wants, stays. kNothing: nothing
  // keeps it. kSources: not every source has delivered a complete list. kConsumers: a process or
  // cgroup holds the pod. kGrace: its grace period is not over. kRecord: the pod's record is being
  // written.
  enum class Wait { kNothing, kSources, kConsumers, kGrace, kRecord };
  Wait WaitsFor(const PodUid& uid, const ActualPod& pod) const;
  // The pod that keeps this one from a volume that one pod at a time may have; nullopt if none
  // does.
  std::optional<PodUid> ExcludedBy(const PodUid& pod, const WantedVolume& wanted) const;
  // When the record is tried again after a failure; nullopt if it does not wait.
  std::optional<TimePoint> NextRecordTry(const PodUid& pod) const;
  // When the grace period of a leaving pod is over, in unix milliseconds.
  static int64_t GraceEnd(const Leaving& leaving);

 private:
  // The operation of a volume has ended or, with an empty name, the removal of the pod. If it
  // failed and a mount went meanwhile that may have been the cause, its back-off is forgotten.
  void OperationEnded(const PodVolumeKey& key, bool failed);
  void ReconcilePod(const PodUid& uid, Wake& wake);
  void ReconcileWanted(const PodUid& uid, const WantedPod& wanted, Wake& wake);
  void ReconcileUnwanted(const PodUid& uid, ActualPod& pod, Wake& wake);
  // True once the record says what it should. Otherwise it is being written, or its next try waits.
  bool EnsureRecord(const PodUid& uid, ActualPod& pod, Wake& wake);
  void WriteRecord(const PodUid& uid, ActualPod& pod);
  void RecordWritten(const PodUid& uid, const Status& written);

  bool NeedsMount(const WantedVolume& wanted, const ActualVolume* actual, Wake& wake) const;
  bool DeviceIsMounted(const WantedVolume& wanted) const;
  MountRequest RequestFor(const PodVolumeKey& key, const WantedPod& pod,
                          const WantedVolume& wanted) const;
  void StartMap(const PodVolumeKey& key, const WantedPod& pod, const WantedVolume& wanted,
                Wake& wake);
  // Mounts all that are to be mounted now; as many as possible are one operation.
  void StartMounts(const PodUid& uid, const WantedPod& pod, const std::vector<SpecName>& specs,
                   Wake& wake);
  void MountStarted(const PodVolumeKey& key, const WantedVolume& wanted, StartResult result,
                    Wake& wake);
  void MountDone(const PodVolumeKey& key, const OperationOutcome<MountedVolume>& outcome);
  // A volume that is being taken away, and the name under which pods share it.
  struct Unmounting {
    PodVolumeKey key;
    UniqueVolumeName shared;
    bool has_device = false;
  };
  void StartUnmounts(const PodUid& uid, const ActualPod& pod, const std::vector<SpecName>& specs,
                     Wake& wake);
  void UnmountStarted(const PodVolumeKey& key, StartResult result, Wake& wake);
  void UnmountDone(const Unmounting& volume, const OperationOutcome<Unit>& outcome);
  void Forget(const Unmounting& volume);
  void RemovePod(const PodUid& uid, ActualPod& pod, Wake& wake);
  void PodRemoved(const PodUid& uid);
  // Unmounts volumes that a wanted pod no longer has, or has by another plugin.
  void UnmountStale(const PodUid& uid, const WantedPod& wanted, ActualPod& pod, Wake& wake);
  // Something about a volume that pods share has changed: its device, and other pods, may go on.
  void SharedVolumeChanged(const UniqueVolumeName& volume, bool has_device);

  Parts parts_;
  Hooks hooks_;
  Backoff record_backoff_;
  ReconcileQueue<PodUid> queue_;
  std::set<PodUid> with_many_;
  AliveGuard alive_;
};

}  // namespace volumed
