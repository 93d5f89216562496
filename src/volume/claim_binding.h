// Which claim has which persistent volume: the decisions of Kubernetes' PV controller, and of its
// scheduler for WaitForFirstConsumer, made by a node for itself.
//
// A pure function of values: no effects, no clock. Whoever calls it records the bindings of the
// result before acting on any of it, and gives them to the next call, where they win over whatever
// the objects say; a crash between the two costs nothing.
// Source: kubernetes pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (syncClaim,
// syncVolume), pkg/controller/volume/{pvcprotection,pvprotection}.
//
// Threads: any. Blocks: never. Errors: none; why something is not bound is part of the result.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/objects.h"
#include "volume/claim_matcher.h"

namespace volumed {

// Names a claim; another claim may have had the name before, which only the uid tells.
struct ClaimKey {
  std::string name_space;
  std::string name;
  friend auto operator<=>(const ClaimKey&, const ClaimKey&) = default;
};

// "default/data".
std::string ToString(const ClaimKey& key);
ClaimKey KeyOfClaim(const PersistentVolumeClaim& claim);
ObjectKey ObjectKeyOf(const ClaimKey& claim);

// How far a volume is with the claim that has it. The numbers are in records: new states come last.
enum class BindingState {
  kBound,          // also while the claim is missing
  kReleased,       // the claim has ended; the volume holds its data
  kReclaimFailed,  // as kReleased, and the last attempt to delete or recycle failed
  kReclaimed,      // recycled: a claimRef with a uid in the volume's manifest is of the past
};

// What has to survive a restart; records have the number of the state. A volume has one at most.
struct ClaimBinding {
  ClaimKey claim;
  std::string claim_uid;  // "" for a claim from a manifest that names none
  std::string volume_name;
  BindingState state = BindingState::kBound;
  friend auto operator<=>(const ClaimBinding&, const ClaimBinding&) = default;
};

// A pod of this node that has a claim among its volumes, up to the end of its last unmount.
struct ClaimUse {
  std::string pod;  // "default/web", for messages
  ClaimKey claim;
  std::string volume_name;  // the volume that is mounted for it; "" when none is yet
  friend auto operator<=>(const ClaimUse&, const ClaimUse&) = default;
};

// A claim that is no more: it was deleted by command, or its pod, for whose generic ephemeral
// volume it was made, is gone.
struct EndedClaim {
  ClaimKey claim;
  std::string uid;
  friend auto operator<=>(const EndedClaim&, const EndedClaim&) = default;
};

// All that is known of claims and volumes on the node, at one moment.
// REQUIRES: no null pointers; names are unique among the objects of a kind.
struct BindingInput {
  std::vector<PersistentVolumeClaimPtr> claims;  // those of generic ephemeral volumes too
  std::vector<PersistentVolumePtr> volumes;
  std::vector<StorageClassPtr> classes;
  std::vector<ClaimUse> uses;
  std::vector<ClaimBinding> recorded;
  // A claim ends by nothing else. One that is absent and not among these is missing: its volume
  // stays bound to it, and is neither released nor reclaimed.
  std::set<EndedClaim> ended;
  // Volumes whose recorded binding is of a PersistentVolume that was deleted by command: nothing of
  // it is to be known any more, except while a claim is bound to it.
  std::set<std::string> ended_volumes;
  // Volumes whose storage nothing on this node can delete or recycle as their policy asks -> why.
  std::map<std::string, std::string> unreclaimable;
  // Volumes whose device no pod has any more and that is about to leave this node: until then none
  // is reclaimed.
  std::set<std::string> leaving_devices;
  // Objects of the lists above that have left their source although nobody has deleted them.
  std::set<ClaimKey> missing_claims;
  std::set<std::string> missing_volumes;
  std::set<std::string> missing_classes;
  BindingNode node;
  // False as long as some source has not delivered: then only volumes that name their claim are
  // bound, and nothing is reclaimed.
  bool sources_complete = false;
};

// What a claim that is not bound waits for.
enum class ClaimWait {
  kNone,           // bound
  kSources,        // not every source has delivered
  kFirstConsumer,  // until a pod of this node uses it
  kNoMatch,        // no volume fits
  kProvisioning,   // no volume fits, and the class names who makes one
  kVolumeMissing,  // the volume that it names does not exist
  kVolumeTaken,    // ... is another claim's
  kVolumeUnfit,    // ... is not what it asks for
  kBeingDeleted,
  kMissing,       // it has left its source, and was bound to nothing
  kClassMissing,  // no volume fits, and the class that would have one made has left its source
  kLost,          // it was bound, and its volume is gone or another claim's
};

// Whether an object may be taken away, as the finalizers kubernetes.io/pvc-protection and
// pv-protection have it; every claim and volume counts as having its one.
struct Protection {
  bool deletion_requested = false;  // deletionTimestamp is set
  std::string held_by;              // why it has to stay for now; "" when it may go
  bool may_go() const { return held_by.empty(); }
  friend bool operator==(const Protection&, const Protection&) = default;
};

// What one claim has come to.
struct ClaimDecision {
  ClaimKey claim;
  std::string uid;
  PersistentVolumeClaimPhase phase = PersistentVolumeClaimPhase::kPending;
  std::string volume_name;    // that it has, had, or names; "" if none is known
  bool newly_bound = false;   // not among the recorded bindings
  std::string storage_class;  // with the default class, if that counts
  ClaimWait wait = ClaimWait::kNone;
  std::string provisioner;  // for kProvisioning
  std::string reason;       // for people: why it is not bound, or what is odd about its binding
  bool missing = false;     // it has left its source, and nobody has deleted it
  Protection protection;
  friend bool operator==(const ClaimDecision&, const ClaimDecision&) = default;
};

// What is to be done with the data of a volume whose claim has ended.
enum class ReclaimAction { kNone, kDelete, kRecycle };

// What one volume has come to. `reclaim` is what may be done now: it stays kNone while a pod has
// the volume mounted, while a source has not delivered, and while the object is missing and nobody
// has asked for its deletion.
struct VolumeDecision {
  std::string volume_name;
  PersistentVolumePhase phase = PersistentVolumePhase::kAvailable;
  std::optional<ClaimKey> claim;  // that it is, was or shall be bound to
  ReclaimAction reclaim = ReclaimAction::kNone;
  std::string reason;    // for people: why it is in this phase; "" if that says enough
  bool missing = false;  // it has left its source, and nobody has deleted it
  Protection protection;
  friend bool operator==(const VolumeDecision&, const VolumeDecision&) = default;
};

// It is the same for equal input in any order. Claims that have ended are not in it; a volume that
// only a record knows is in `bindings` alone.
struct BindingResult {
  std::vector<ClaimDecision> claims;    // sorted by key
  std::vector<VolumeDecision> volumes;  // sorted by name
  std::vector<ClaimBinding> bindings;   // sorted by volume; what to have on record now
  friend bool operator==(const BindingResult&, const BindingResult&) = default;
};

// Claims are served in this order: recorded bindings, volumes that name a claim, claims that name a
// volume, then the others, the smallest request first, each with the volume that fits best
// (IsBetterFit()). A recorded binding is given up by nothing but the end of its claim, and that
// only once every source has delivered and no pod has the volume.
BindingResult DecideBindings(const BindingInput& input);

// What a volume's policy asks for once it is released; kNone retains its data.
ReclaimAction ReclaimActionOf(ReclaimPolicy policy);

}  // namespace volumed
