// Claims: which persistent volume each claim has, and what becomes of a volume that its claim has
// left. DecideBindings decides, from the objects of the sources, the pods of the node and what is
// on record; here is what makes its decisions hold: a binding is written before any pod may use it,
// an object that is still needed is kept when its manifest is gone, and a released volume is
// deleted or recycled by an operation that its record calls for until it is done.
//
// What stays, and for how long ("deletion protection"):
//  - the binding of a claim: until the claim has ended and no pod of the node has the volume. A
//    claim ends by command (volumemanager/deleted_objects.h); that of a generic ephemeral volume
//    ends with its pod. A claim that has left its source is missing, and keeps its volume;
//  - a claim that was deleted by command: as long as a pod of the node has its volume. A pod that
//    has not got it by then is refused, and holds nothing;
//  - a PersistentVolume: as long as it is bound, or its data is not reclaimed.
// Source: kubernetes pkg/controller/volume/persistentvolume@v1.36.2, pkg/controller/volume/
// {pvcprotection,pvprotection}.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
#include "volumemanager/deleted_objects.h"
#include "volumemanager/known_objects.h"
#include "volumemanager/provisioning.h"
#include "volumemanager/record_writer.h"

namespace volumed {

// A pod of the node, wanted or not yet gone.
struct ClaimPod {
  PodPtr pod;
  bool wanted = false;
  std::set<SpecName> present;  // volumes that may be there
};

// What the claim of a volume says of its size.
struct ClaimResizeState {
  ClaimKey claim;
  ClaimResize resize;
  bool durable = false;  // it is on record so
};

// Threads: the control thread. Blocks: never.
class Claims final : public ClaimResolver {
 public:
  // All outlive this.
  struct Parts {
    Scheduler& scheduler;
    const ObjectCatalog& catalog;
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
  struct Hooks {
    // Absence from the sources means something.
    std::function<bool()> ready;
    std::function<std::vector<ClaimPod>()> pods;
    // Something of this volume of a pod may be there.
    std::function<bool(const PodVolumeKey&)> has_volume;
    // The answers of Resolve for these claims may be others now.
    std::function<void(const std::set<ObjectKey>& claims)> changed;
    // What the claim of this volume says of its size is on record, as it is.
    std::function<void(const PersistentVolume&)> resize_recorded;
    // A PersistentVolume is no more: nothing has to be known of it.
    std::function<void(const PersistentVolume&)> volume_gone;
    // A pod of the node, in whatever state.
    std::function<bool(const PodUid&)> has_pod;
    // Why nothing on this node can do this to the storage of the volume; "" if something can.
    std::function<std::string(const PersistentVolume&, ReclaimAction)> why_not_reclaimed;
    // Everything was decided anew.
    std::function<void()> decided;
    // It was deleted, and nothing protects it any more: it is to end.
    std::function<void(const DeletedObjects::Id&)> may_go;
    // The storage of this PersistentVolume was deleted as its policy asks: it ends with it. Called
    // as long as somebody has the object.
    std::function<void(const DeletedObjects::Id&)> storage_gone;
  };

  Claims(Parts parts, Hooks hooks);
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  // What the last agent left. Nothing is decided before Start().
  void Restore(const std::vector<ClaimBindingRecord>& records,
               const std::vector<QuarantinedRecord>& unreadable);
  void Start();
  // Objects, pods or what pods have may be others now: decided anew, at once or 50 ms after the
  // last time.
  void MarkDirty();
  // What has happened is decided before this returns: for answers to people.
  void DecideNow() {
    if (posted_) Decide();
  }
  // Of one volume: what keeps it from being reclaimed may be gone.
  void ResetBackoff(const std::string& volume_name);
  // Decides anew then.
  void WakeAt(TimePoint when);

  ResolvedClaim Resolve(const Pod& pod, const PodVolume& volume) override;

  // The uid of the claim that has a volume on record; "" if none of that name has. Also of a claim
  // that nobody has any more.
  std::string BoundUid(const ClaimKey& claim) const;
  bool IsBound(const ObjectKey& object) const;
  // The pod for whose generic ephemeral volume this claim is; empty if it is for none.
  PodUid PodOfClaim(const ObjectKey& claim) const;
  // A record is about this very object.
  bool Knows(const DeletedObjects::Id& object) const;
  // Those of generic ephemeral volumes of the pods that are here; no source has them. As last
  // decided.
  std::vector<PersistentVolumeClaimPtr> MadeForPods() const;

  // How often it was decided, for tests that count work.
  uint64_t decisions() const { return decisions_; }
  // As last decided. Null if there is none.
  const ClaimDecision* FindClaim(const ClaimKey& claim) const;
  const VolumeDecision* FindVolume(const std::string& volume_name) const;
  // As its source has it, or as it was kept when its manifest went; null when neither is known.
  PersistentVolumePtr FindVolumeObject(const std::string& volume_name) const;
  const std::map<std::string, VolumeDecision>& volumes() const { return volumes_; }
  // The claim that has its data in the volume is gone, or is being deleted.
  bool ClaimGoes(const std::string& volume_name) const;
  // Those that are on record as some claim's, or whose record cannot be read.
  std::set<std::string> BoundVolumes() const;
  // Of a volume that is bound. A claim's status is the object's, but for what this says.
  std::optional<ClaimResizeState> FindResize(const std::string& volume_name) const;
  // Replaces it; the hook is told when that is on record. Nothing for a volume that is not bound.
  void SetResize(const std::string& volume_name, const ClaimResize& resize);
  // The claim's status, with what only the agent knows.
  PersistentVolumeClaimStatus ShownStatus(const PersistentVolumeClaim& claim) const;
  // The failure of the reclaim that is tried again.
  const FailureHistory* ReclaimFailure(const std::string& volume_name) const;

 private:
  struct Bound {
    ClaimBindingRecord record;
    PersistentVolumePtr volume;   // its snapshot; null when it could not be read
    bool durable = false;         // but for the size that the claim says
    bool resize_durable = false;  // that too
    bool writing = false;
    bool removing = false;  // the row goes; the binding is forgotten already
    bool reclaiming = false;
    std::optional<FailureHistory> failure;
  };

  struct PodsClaim {
    PodUid pod;
    PersistentVolumeClaimPtr claim;
  };

  // Of the claim that the pod's volume names, or has made for it.
  static ClaimKey KeyOf(const Pod& pod, const PodVolume& volume);
  void Decide();
  void NameUnreadable(BindingResult& result) const;
  BindingInput MakeInput(const std::vector<ClaimPod>& pods);
  void AddVolumes(BindingInput& input) const;
  void NameRefused(BindingResult& result) const;
  // What was deleted by command, or has ended with its pod; and what has left its source.
  void AddEnds(BindingInput& input) const;
  void MarkDeleted(BindingInput& input) const;
  void AddPods(const std::vector<ClaimPod>& pods, BindingInput& input);
  // Takes over what was decided, and writes what changed.
  void Adopt(const BindingInput& input, BindingResult result);
  void AdoptBinding(const ClaimBinding& binding);
  // What is new about it, as an event of the claim. `before` is null for a claim that is new.
  void TellDecision(const ClaimDecision* before, const ClaimDecision& now) const;
  void IndexClaims();
  void Forget(const std::string& volume_name);
  void Write(const std::string& volume_name);
  void Written(const std::string& volume_name, const Status& written, bool newly_durable);
  std::optional<ClaimResize> ResizeFor(const ClaimBinding& binding, const Bound& bound,
                                       const PersistentVolumePtr& volume) const;
  void Reclaim(const VolumeDecision& decision);
  // All that are known, but this one: in a source, or bound.
  std::vector<PersistentVolumePtr> OtherVolumes(const std::string& volume_name) const;
  void Reclaimed(const std::string& volume_name, ReclaimAction action,
                 const OperationOutcome<Unit>& outcome);
  // Of volumes whose storage was deleted, and of objects that were deleted by command.
  void LetGo();
  bool IsReclaiming(const std::string& volume_name) const;
  bool MayGo(const DeletedObjectRecord& deleted) const;
  bool IsLeaving(const ObjectKey& claim) const;
  // The claim was made for a generic ephemeral volume of the pod.
  static bool IsOf(const Pod& pod, const Bound* bound);
  // The name is that of a claim that was made for another pod's generic ephemeral volume. `before`:
  // those of the last decision.
  bool IsOfOther(const Pod& pod, const ClaimKey& claim,
                 const std::map<EndedClaim, PodsClaim>& before) const;
  // Errors, not applied: FailedPrecondition if the pod's generic ephemeral volume cannot have it.
  Status CheckOwner(const Pod& pod, const ClaimKey& claim) const;
  static PodUid OwnerAmong(const ClaimKey& claim, const std::map<EndedClaim, PodsClaim>& of_pods);
  // The pod for whose generic ephemeral volume the claim was made; empty if it was not.
  PodUid PodOf(const ClaimBinding& binding) const;
  std::optional<WantedProblem> ProblemOf(const ObjectKey& claim, const ClaimDecision* decision,
                                         const Bound* bound) const;
  const Bound* BoundTo(const ClaimKey& claim) const;
  template <typename Function>
  auto IfAlive(Function function);

  Parts parts_;
  Hooks hooks_;
  bool started_ = false;
  bool posted_ = false;
  std::optional<TimePoint> decided_at_;  // the last time
  uint64_t decisions_ = 0;
  std::optional<TimePoint> wake_;
  Backoff backoff_;                                 // of writing records
  std::map<std::string, Bound> bound_;              // by the volume's name
  std::map<ClaimKey, std::string> volume_of_;       // of claims that are bound
  std::map<std::string, std::string> quarantined_;  // volume -> why its record is unreadable
  std::map<std::string, std::string> unreadable_;   // what a record is of -> why; those too
  std::map<ClaimKey, ClaimDecision> claims_;
  std::map<std::string, VolumeDecision> volumes_;
  bool knew_all_ = false;                    // the last decision knew every source
  std::map<EndedClaim, PodsClaim> of_pods_;  // that were made for pods that are here
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
