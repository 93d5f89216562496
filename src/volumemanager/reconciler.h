// Reconciler: brings the actual state of a pod nearer to the desired one, by starting operations.
// Only it starts them. It runs for pods that something happened to, never for all in turn: an
// event marks a pod dirty, and one pass later looks at each dirty pod once.
//
// When it may take something away (docs/ARCHITECTURE.md, "Absence is not a command"):
//  - the records are loaded and every source has delivered a complete list; or the pod's deletion
//    was commanded by uid;
//  - and the pod's consumers are gone; or, where none was ever known, its grace period is over; or
//    the deletion is forced.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconciler.go@v1.36.2.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/backoff.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/consumers.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/record_writer.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class Reconciler {
 public:
  // All outlive this.
  struct Parts {
    Scheduler& scheduler;
    DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    Consumers& consumers;
    VolumeOperations& operations;
    RecordWriter& records;
    Logger& log;
  };
  struct Hooks {
    // Unmounting what is not wanted is allowed.
    std::function<bool()> ready;
    // The view of the pod may have changed.
    std::function<void(const PodUid&)> changed;
    // A volume was set up, or is not any more.
    std::function<void(const PodVolumeKey&)> set_up, gone;
    // The pod's directories and record are gone, and so is its actual state, of which this is the
    // last.
    std::function<void(const PodUid&, const ActualPod&)> removed;
    // A record that says that the pod's deletion was commanded is durable, or could not be written.
    std::function<void(const PodUid&, const Status&)> command_recorded;
  };

  Reconciler(Parts parts, Hooks hooks);
  ~Reconciler();
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  // Nothing is started before this.
  void Start();
  void MarkDirty(const PodUid& pod);
  // Forgets back-offs of a pod, or of one of its volumes: the cause may be gone.
  void ResetBackoff(const PodUid& pod);
  void ResetBackoff(const PodVolumeKey& key) { parts_.operations.ResetBackoff(key); }

  // Why a pod that is to leave stays, if something keeps it.
  enum class Wait { kNothing, kSources, kConsumers, kGrace, kRecord };
  Wait WaitsFor(const PodUid& uid, const ActualPod& pod) const;
  // When the record is tried again after a failure.
  std::optional<TimePoint> NextRecordTry(const PodUid& pod) const;
  // When the grace period of a leaving pod is over, as unix milliseconds.
  static int64_t GraceEnd(const Leaving& leaving);

 private:
  // The earliest moment at which a pod has to be looked at without an event.
  class Wake;

  void RunPass();
  void ReconcilePod(const PodUid& uid);
  void ReconcileWanted(const PodUid& uid, const WantedPod& wanted, Wake& wake);
  void ReconcileUnwanted(const PodUid& uid, ActualPod& pod, Wake& wake);
  // True once the record says what it should; else it is being written, or backs off.
  bool EnsureRecord(const PodUid& uid, ActualPod& pod, Wake& wake);
  void WriteRecord(const PodUid& uid, ActualPod& pod);
  void RecordWritten(const PodUid& uid, const Status& written);

  bool NeedsMount(const WantedVolume& wanted, const ActualVolume* actual, Wake& wake) const;
  void StartMount(const PodVolumeKey& key, const WantedPod& pod, const WantedVolume& wanted,
                  Wake& wake);
  void StartUnmount(const PodVolumeKey& key, const ActualPod& pod, Wake& wake);
  void RemovePod(const PodUid& uid, ActualPod& pod, Wake& wake);
  void PodRemoved(const PodUid& uid);
  // Volumes of a wanted pod that it does not have any more, or has by another plugin.
  void UnmountStale(const PodUid& uid, const WantedPod& wanted, ActualPod& pod, Wake& wake);
  void NotStarted(const PodVolumeKey& key, StartResult result, Wake& wake) const;
  void Arm(const PodUid& uid, const Wake& wake);
  template <typename Function>
  auto IfAlive(Function function);

  Parts parts_;
  Hooks hooks_;
  Backoff record_backoff_;
  bool started_ = false;
  bool pass_posted_ = false;
  std::set<PodUid> dirty_;
  std::map<PodUid, TimerId> timers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
