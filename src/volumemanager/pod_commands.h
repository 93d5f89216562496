// PodCommands: what people and programs command on pods: delete, hold, release, retry.
#pragma once

#include <functional>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "volumemanager/watch/consumers.h"

namespace volumed {

class ActualStateOfWorld;
class AdoptedPods;
class Claims;
class DesiredStateOfWorld;
class PodDeletionAnswers;
class PodLifecycle;
class PodObservers;
class PodTombstones;
class Readiness;
class Reconciler;
class VolumeExpander;
struct WantedVolume;

// Threads: the control thread. Blocks: never; `done` is called later, on the control thread.
class PodCommands {
 public:
  using Done = std::function<void(Status)>;

  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const ObjectCatalog& catalog;
    const Readiness& readiness;
    const PodObservers& observers;
    PodDeletionAnswers& answers;
    PodTombstones& tombstones;
    const DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    AdoptedPods& adopted;
    Consumers& consumers;
    VolumeOperations& operations;
    Claims& claims;
    VolumeExpander& expander;
    Reconciler& reconciler;
    PodLifecycle& lifecycle;
  };

  explicit PodCommands(Parts parts) : parts_(parts) {}

  // Commands the pod with exactly this uid to leave, whatever the sources say. With `force`,
  // consumers do not hold it back. `done` is called when the command is durable: no agent after
  // this one brings the pod back, even if this one ends.
  // Errors: NotFound (not applied): no such pod is known; Unavailable (not applied): the records
  // are not loaded yet; FailedPrecondition (not applied): the pod's records cannot be read, so it
  // is left alone; those of RecordStore, always maybe applied: this agent takes the pod away, but
  // the next one may bring it back.
  void Delete(const PodUid& pod, bool force, Done done);

  // A process or cgroup uses the pod's mounts (Consumers::Hold). Errors, not applied: Unavailable
  // if the records are not loaded yet; NotFound if no such pod is known; FailedPrecondition if the
  // pod is being torn down, or if there is no such process or cgroup; InvalidArgument unless
  // exactly one of the two is named; and those of Consumers::Hold.
  void Hold(const HoldRequest& request, Done done);
  // Errors: Unavailable, not applied, if the records are not loaded yet, for then no hold is known;
  // those of Consumers::Release.
  void ReleaseHold(const HoldRequest& request, Done done);

  // Forgets the back-offs of the pod, its record, its volumes, their devices and what is to make
  // them for its claims, and tries again at once. Errors, not applied: Unavailable if the records
  // are not loaded yet; NotFound if no such pod is known. Success says nothing of what becomes of
  // the try; a pod that is left alone stays so.
  Status Retry(const PodUid& pod);
  // The same for one volume of a pod, and its device, which other pods may share. Errors, not
  // applied: as Retry(), and NotFound if the pod neither has nor wants the volume.
  Status RetryVolume(const PodVolumeKey& key);

  // The pods of an adopted root that await acceptance may go. Has no effect if none awaits it.
  void AcceptAdopted();

 private:
  // Forgets the back-off of what is to end a problem of the volume, and has it tried.
  void RetryMaker(const WantedVolume& wanted);
  // Why the command cannot be taken; nullopt if it can.
  std::optional<Error> RefuseDelete(const PodUid& uid) const;

  const Parts parts_;
};

}  // namespace volumed
