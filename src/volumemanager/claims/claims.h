// Claims: knows which persistent volume each claim has, and what becomes of a volume that its claim
// has left. DecideBindings decides, from the objects of the sources, the pods of the node and the
// records. This class makes the decisions hold: a binding is written before any pod may use it, an
// object that is still needed is kept when its manifest is gone, and a released volume is deleted
// or recycled by an operation that its record demands until it is done.
//
// What stays, and for how long ("deletion protection"):
//  - The binding of a claim stays until the claim has ended and no pod of the node has the volume.
//    A claim ends by command (volumemanager/claims/deleted_objects.h); the claim of a generic
//    ephemeral volume ends with its pod. A claim that has left its source is missing, and keeps its
//    volume.
//  - A claim that a command has deleted stays as long as a pod of the node has its volume. A pod
//    that has not got the volume by then is refused, and keeps nothing from ending.
//  - A PersistentVolume stays as long as it is bound, or its data is not reclaimed.
// Source: kubernetes pkg/controller/volume/persistentvolume@v1.36.2, pkg/controller/volume/
// {pvcprotection,pvprotection}.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "volume/claim_binding.h"
#include "volumehost/volume_host.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claim_resolver.h"
#include "volumemanager/claims/deleted_objects.h"
#include "volumemanager/claims/known_objects.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/readiness.h"
#include "volumemanager/record_writer.h"

namespace volumed {

// A pod of the node that is wanted or not yet gone.
struct ClaimPod {
  PodPtr pod;
  bool wanted = false;
  std::set<SpecName> present;  // volumes that may be on the node
};

// The size in the status of the claim that has the volume.
struct ClaimResizeState {
  ClaimKey claim;
  ClaimResize resize;
  bool durable = false;  // it is on record
};

// How long after the beginning of a decision, which took so long, the next one may follow: each
// looks at all claims and volumes, and where these are thousands a tenth of the control thread's
// time has to be enough for it. `period` is Claims::Parts::decide_period.
Duration RestOfDecision(Duration period, Duration took);

// Threads: the control thread. Blocks: never; rows are written and storage is reclaimed on other
// threads. Errors: none; a row that cannot be written and a reclaim that fails are tried again with
// back-off, and shown.
//
// Answers are as of the last decision, which may be RestOfDecision() old; DecideNow() brings them
// up to date.
class Claims final : public ClaimResolver {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const ObjectCatalog& catalog;
    const Readiness& readiness;
    const HostNode& node;
    HostEvents& events;
    RecordWriter& records;
    VolumeOperations& operations;
    KnownObjects& uids;
    DeletedObjects& deleted;
    Provisioning& provisioning;
    Logger& log;
    Duration decide_period;  // VolumeManagerSettings::decide_claims_period
  };
  // All have to be set. They are called on the control thread, within a decision or after a write.
  struct Hooks {
    std::function<std::vector<ClaimPod>()> pods;
    // Whether some of this volume of a pod may be on the node.
    std::function<bool(const PodVolumeKey&)> has_volume;
    // The answers of Resolve for these claims may have changed.
    std::function<void(const std::set<ObjectKey>& claims)> changed;
    // The size in the status of the claim of this volume is on record now.
    std::function<void(const PersistentVolume&)> resize_recorded;
    // A PersistentVolume has ended: nothing about it has to be known any more.
    std::function<void(const PersistentVolume&)> volume_gone;
    // Whether the pod is on the node, in whatever state.
    std::function<bool(const PodUid&)> has_pod;
    // Why nothing on this node can do this to the storage of the volume; "" if something can.
    std::function<std::string(const PersistentVolume&, ReclaimAction)> why_not_reclaimed;
    // Whether the volume's device is on this node still, and is about to leave it.
    std::function<bool(const PersistentVolume&)> device_leaves;
    // A new decision was made.
    std::function<void()> decided;
    // The object was deleted, and nothing protects it any more: it is to end.
    std::function<void(const DeletedObjects::Id&)> may_go;
    // The storage of this PersistentVolume was deleted, as its policy asks: the object ends with
    // it. Called again as long as a source has the object.
    std::function<void(const DeletedObjects::Id&)> storage_gone;
  };

  Claims(Parts parts, Hooks hooks);
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  // Takes over what the last agent left. A row that cannot be read keeps its volume from everybody,
  // and as long as there is one of a kind that IsAboutClaims, nothing new is bound or reclaimed. No
  // decision is made before Start().
  void Restore(const std::vector<ClaimBindingRecord>& records,
               const std::vector<QuarantinedRecord>& unreadable);
  // To be called once, after Restore(). The first decision is made before it returns, unless uids
  // of claims are not on record yet.
  void Start();
  // The object of this PersistentVolume came, changed or went: the operations are told which
  // storage of a driver it names by now.
  void NameStorage(const std::string& volume_name) const;
  // Objects, pods or what pods have may have changed: a new decision is made, at once or
  // RestOfDecision() after the last one.
  void MarkDirty();
  // Makes the decision that is due before it returns; for answers to people. It costs nothing if
  // nothing has changed since the last one.
  void DecideNow() {
    if (due_) Decide();
  }
  // What kept this volume from being reclaimed may be gone. `volume_name` is that of the
  // PersistentVolume.
  void ResetBackoff(const std::string& volume_name);
  // What kept the storage of any volume from being reclaimed may be gone.
  void RetryReclaims();
  // The same of the volumes that are reclaimed by this Secret.
  void RetryReclaimsWith(const ObjectKey& secret);
  // Makes a new decision at that time.
  void WakeAt(TimePoint when);
  // Every source has delivered, for the first time or again after one had not. What was decided
  // before says nothing of the claims that came last.
  void AllHaveDelivered() { decided_with_all_ = false; }

  // A pod that may have some of the volume on the node keeps it, whatever becomes of the claim.
  ResolvedClaim Resolve(const Pod& pod, const PodVolume& volume) override;

  // The uid of the claim of this name that has a volume on record; "" if none has. The claim need
  // not exist any more.
  std::string BoundUid(const ClaimKey& claim) const;
  // Whether a claim has a volume on record, or a PersistentVolume a claim; false for any other
  // object.
  bool IsBound(const ObjectKey& object) const;
  // The claim that has this volume by its record and to which Resolve does not give it yet: after a
  // start, or a change of its record, the next decision or the write is waited for. nullopt if
  // nothing of that kind is waited for, or if no claim has the volume.
  std::optional<ObjectKey> UndecidedClaimOf(const std::string& volume_name) const;
  // The pod for whose generic ephemeral volume the claim was made; empty if it was not made for
  // one.
  PodUid PodOfClaim(const ObjectKey& claim) const;
  // Whether a record is about this very object.
  bool Knows(const DeletedObjects::Id& object) const;
  // Whether the volume has a binding that can be read, and that is not of this very claim, or not
  // any more: it was released, or is another claim's. It need not be on record yet.
  bool HasLeft(const DeletedObjects::Id& claim, const std::string& volume_name) const;
  // The claims of generic ephemeral volumes of the pods that are here, as of the last decision; no
  // source has them.
  std::vector<PersistentVolumeClaimPtr> MadeForPods() const;
  // The one of these that has the name; null if there is none.
  PersistentVolumeClaimPtr MadeForPod(const ClaimKey& claim) const;

  // How many decisions were made; for tests that count work.
  uint64_t decisions() const { return decisions_; }
  // The last decision about it; null if there is none. The pointer is valid until the next
  // decision.
  const ClaimDecision* FindClaim(const ClaimKey& claim) const;
  const VolumeDecision* FindVolume(const std::string& volume_name) const;
  // The object as its source has it, or as it was kept when its manifest went; null if neither is
  // known.
  PersistentVolumePtr FindVolumeObject(const std::string& volume_name) const;
  const std::map<std::string, VolumeDecision>& volumes() const { return volumes_; }
  // Whether the claim that has its data in the volume is gone or being deleted.
  bool ClaimGoes(const std::string& volume_name) const;
  // Volumes that some claim has on record, that are being made for one or taken back, and volumes
  // whose record cannot be read.
  std::set<std::string> BoundVolumes() const;
  // All known volumes (in a source, or bound) except this one.
  std::vector<PersistentVolumePtr> OtherVolumes(const std::string& volume_name) const;
  // Why nobody is to get the volume, as of the last decision: its storage is being deleted for
  // another one; "" if it is not.
  std::string WhyGivenToNobody(const std::string& volume_name) const;
  // For a volume that is bound. A claim's status is that of the object, except for what this says.
  std::optional<ClaimResizeState> FindResize(const std::string& volume_name) const;
  // The same without a copy; null if there is none. The pointer is valid until the next change.
  const ClaimResize* ResizeOf(const std::string& volume_name) const;
  // Replaces the state of the resize; the hook is called when it is on record. Has no effect if the
  // volume is not bound.
  void SetResize(const std::string& volume_name, const ClaimResize& resize);
  // The claim's status, with what only the agent knows.
  PersistentVolumeClaimStatus ShownStatus(const PersistentVolumeClaim& claim) const;
  // An administrator has given up that the volume is reclaimed: its event, with this text.
  void TellReclaimGivenUp(const std::string& volume_name, const std::string& left) const;
  // The failure of a reclaim that is tried again; null if there is none.
  const FailureHistory* ReclaimFailure(const std::string& volume_name) const;
  // Why no storage is made or deleted before each source was looked into once; nullopt from then
  // on.
  std::optional<WantedProblem> UnseenProblem() const;

 private:
  struct Bound {
    ClaimBindingRecord record;
    PersistentVolumePtr volume;   // the recorded object; null if it could not be read
    bool durable = false;         // on record, except for the size in the claim's status
    bool resize_durable = false;  // that size is on record too
    bool writing = false;
    bool removing = false;  // the row is being removed; the binding is forgotten already
    bool reclaiming = false;
    std::optional<FailureHistory> failure;
  };

  struct PodsClaim {
    PodUid pod;
    PersistentVolumeClaimPtr claim;
  };

  // The claim that the pod's volume names, or that was made for it.
  static ClaimKey KeyOf(const Pod& pod, const PodVolume& volume);
  void Decide();
  void NameUnreadable(BindingResult& result) const;
  BindingInput MakeInput(const std::vector<ClaimPod>& pods);
  void AddVolumes(BindingInput& input) const;
  void NameRefused(BindingResult& result) const;
  void NameMissingMakers(BindingResult& result) const;
  void NameBeingDeleted(BindingResult& result) const;
  void NameUnseen(BindingResult& result) const;
  // Adds what was deleted by command, what has ended with its pod, and what has left its source.
  void AddEnds(BindingInput& input) const;
  void AddLeavingDevices(BindingInput& input) const;
  void MarkDeleted(BindingInput& input) const;
  void AddPods(const std::vector<ClaimPod>& pods, BindingInput& input);
  // Takes over the decision, and writes what changed.
  void Adopt(const BindingInput& input, BindingResult result);
  void AdoptBinding(const ClaimBinding& binding);
  // Records an event of the claim if the decision is new. `before` is null for a new claim.
  void TellDecision(const ClaimDecision* before, const ClaimDecision& now) const;
  void IndexClaims();
  void Forget(const std::string& volume_name);
  void Write(const std::string& volume_name);
  void Written(const std::string& volume_name, const Status& written, bool newly_durable);
  std::optional<ClaimResize> ResizeFor(const ClaimBinding& binding, const Bound& bound,
                                       const PersistentVolumePtr& volume) const;
  void Reclaim(const VolumeDecision& decision);
  void Reclaimed(const std::string& volume_name, ReclaimAction action,
                 const OperationOutcome<Unit>& outcome);
  // Ends volumes whose storage was deleted, and objects that were deleted by command.
  void LetGo();
  bool IsReclaiming(const std::string& volume_name) const;
  bool MayGo(const DeletedObjectRecord& deleted) const;
  bool IsLeaving(const ObjectKey& claim) const;
  // Whether the claim was made for a generic ephemeral volume of the pod.
  static bool IsOf(const Pod& pod, const Bound* bound);
  // Whether the name is that of a claim made for another pod's generic ephemeral volume. `before`
  // has the claims of the last decision.
  bool IsOfOther(const Pod& pod, const ClaimKey& claim,
                 const std::map<EndedClaim, PodsClaim>& before) const;
  // Errors, not applied: FailedPrecondition if the pod's generic ephemeral volume cannot have the
  // claim.
  Status CheckOwner(const Pod& pod, const ClaimKey& claim) const;
  static PodUid OwnerAmong(const ClaimKey& claim, const std::map<EndedClaim, PodsClaim>& of_pods);
  // The pod for whose generic ephemeral volume the claim was made; empty if it was not.
  PodUid PodOf(const ClaimBinding& binding) const;
  WantedProblem ProblemOfUndecided(const ObjectKey& claim) const;
  std::optional<WantedProblem> ProblemOf(const ObjectKey& claim, const ClaimDecision* decision,
                                         const Bound* bound) const;
  const Bound* BoundTo(const ClaimKey& claim) const;

  Parts parts_;
  Hooks hooks_;
  bool started_ = false;
  bool posted_ = false;                  // a task will look whether a decision is due
  bool due_ = false;                     // something may have changed since the last decision
  std::optional<TimePoint> decided_at_;  // when the last decision was begun
  Duration decided_in_ = Duration::zero();
  uint64_t decisions_ = 0;
  std::optional<TimePoint> wake_;
  Backoff backoff_;                                 // for writing records
  std::map<std::string, Bound> bound_;              // by the volume's name
  std::map<ClaimKey, std::string> volume_of_;       // of bound claims
  std::map<std::string, std::string> quarantined_;  // volume -> why its record is unreadable
  // What a record is about -> why it is unreadable; includes quarantined_.
  std::map<std::string, std::string> unreadable_;
  std::map<ClaimKey, ClaimDecision> claims_;
  std::map<std::string, VolumeDecision> volumes_;
  // Volumes whose storage is being deleted for others, and why, as of the last decision.
  std::map<std::string, std::string> being_deleted_;
  bool knew_all_ = false;          // when the last decision was made, every source had delivered
  bool decided_with_all_ = false;  // a decision was made since all of them have
  std::map<EndedClaim, PodsClaim> of_pods_;  // claims made for pods that are here
  AliveGuard alive_;
};

}  // namespace volumed
