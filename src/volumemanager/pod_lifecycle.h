// PodLifecycle: which pods are wanted and which leave, by what sources, commands and limits say,
// and what remains to be done when a pod is gone.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/alive_guard.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "volumehost/volume_host.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/known_objects.h"
#include "volumemanager/claims/pods_with_claims.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/device_reconciler.h"
#include "volumemanager/pod_deletion_answers.h"
#include "volumemanager/pod_observers.h"
#include "volumemanager/pod_replacements.h"
#include "volumemanager/pod_tombstones.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/watch/consumers.h"

namespace volumed {

// Threads: the control thread. Blocks: never; rows are written on other threads. Whoever changes
// what is wanted here starts nothing: the pod is marked, and the reconciler's next pass acts.
class PodLifecycle {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    ObjectCatalog& catalog;
    VolumeHost& host;
    Logger& log;
    const Readiness& readiness;
    const PodObservers& observers;
    RecordWriter& records;
    PodDeletionAnswers& answers;
    PodTombstones& tombstones;
    DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    Consumers& consumers;
    AdoptedPods& adopted;
    KnownObjects& known;
    PodReplacements& replacements;
    PodsWithClaims& pods_with_claims;
    Claims& claims;
    DeviceReconciler& devices;
    Reconciler& reconciler;
  };
  // VolumeManagerHooks::orphan_found; may be empty.
  using OrphanFound = std::function<void(const std::set<PodVolumeKey>&)>;

  PodLifecycle(Parts parts, OrphanFound orphan_found)
      : parts_(parts), orphan_found_(std::move(orphan_found)) {}
  PodLifecycle(const PodLifecycle&) = delete;
  PodLifecycle& operator=(const PodLifecycle&) = delete;

  // A source has added, changed or removed the pod; `with_many` if many pods changed together. The
  // pod's back-offs are forgotten.
  void PodSourceChanged(ObjectChange change, bool with_many);
  // Decides whether the pod is wanted, from what the sources and commands say now. A pod of which
  // it is not known whether a source has it stays as it is.
  void Evaluate(const PodUid& uid, bool with_many = false);
  // The pod leaves because of a limit, although its source has it, and its source cannot bring it
  // back. `message` is for people. Has no effect if the pod is not known, or leaves already.
  void Evict(const PodUid& uid, const std::string& message);
  // A command makes the pod leave, without a grace period of its own. `pod` is the pod's actual
  // state. The caller marks the pod dirty.
  void LeaveByCommand(const PodUid& uid, ActualPod& pod, bool force);
  // The reconciler has taken the pod away; `last` is its last actual state. Answers those who wait
  // for the deletion, keeps a tombstone if a source may still have the pod, and evaluates the pod
  // anew if it has come back.
  void PodRemoved(const PodUid& uid, const ActualPod& last);
  // Something about the pod has changed that decisions about claims may read. Has no effect for a
  // pod that names no claim.
  void MarkClaimsDirty(const PodUid& uid);

  // To be called while what the last agent left is taken over: holds the pods of an adopted root
  // that have data and may have no source; and doubts the commands in records that may be older
  // than the disks. RestoreAdoptedPods requires that the actual state has the pods of `found`.
  void RestoreAdoptedPods(const FoundAtStart& found);
  void DoubtCommands();
  // To be called when every source has delivered, before a pod is evaluated for it: holds the pods
  // of an adopted root that have volumes mounted, if no source has any pod, or if one may have pods
  // that nobody knows.
  void HoldAdoptedPodsWithMounts();

 private:
  // Why a source may have pods that nobody knows; "" if none may.
  std::string WhyPodsMayBeUnknown() const;
  void ShowHeldPods();  // those of an adopted root, under that source
  // Whether it is not known if a source has the pod; what the pod has then stays as it is.
  bool IsUnknown(const PodIdentity& identity) const;
  // Why a pod leaves that no source has any more.
  std::string WhyItLeft(const PodIdentity& identity) const;
  PodIdentity IdentityOf(const Pod& pod) const;  // for a pod that a source has
  void Want(const PodPtr& pod);
  void Unwant(const PodUid& uid);
  // For a pod that is not wanted, and that no command has made leave.
  void LeaveAsSourcesSay(const PodUid& uid, ActualPod& pod, const Pod* object);
  // Lets the pod leave if a command has put another pod in its place.
  void LeaveForSuccessor(ActualPod& pod);
  void MarkLeaving(ActualPod& pod, const std::string& reason, std::optional<int64_t> grace_seconds);
  // Tells the metrics, before the pod is marked as leaving.
  void ReportOrphan(const PodUid& uid, const ActualPod& pod) const;
  // Keeps the record of a pod that was deleted by command and that a source still has, or may have.
  void KeepTombstone(const PodUid& uid, const ActualPod& last);
  void FollowFile(const Pod& pod);
  // Nothing of the pod is on the node, and no source has it: the next pod of its name is another
  // one.
  void ForgetPodIdentity(const PodUid& uid, const PodIdentity& identity);
  void PostToCatalog(void (ObjectCatalog::*tell)(const ObjectKey&), const PodIdentity& pod);

  const Parts parts_;
  const OrphanFound orphan_found_;
  AliveGuard alive_;
};

}  // namespace volumed
