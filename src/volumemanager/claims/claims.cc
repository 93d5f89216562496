#include "volumemanager/claims/claims.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operation/reclaim_operations.h"
#include "operation/recorded_volume.h"
#include "volume/secrets_of_volume.h"
#include "volumemanager/claims/claim_events.h"
#include "volumemanager/reconcile_queue.h"

namespace volumed {
namespace {

constexpr const char* kWriteOperation = "claim_binding";
constexpr const char* kReclaimGivenUp = "ReclaimGivenUp";

// Whether the two are the same, except for the size in the claim's status.
bool SameBinding(const ClaimBindingRecord& a, ClaimBindingRecord b) {
  b.resize = a.resize;
  return a == b;
}

}  // namespace

Duration RestOfDecision(Duration period, Duration took) {
  constexpr int kShare = 10;
  // A process that was stopped meanwhile must not wait for hours.
  constexpr Duration kLongest = std::chrono::seconds(2);
  return std::max(period, std::min(kShare * took, kLongest));
}

Claims::Claims(Parts parts, Hooks hooks)
    : parts_(parts), hooks_(std::move(hooks)), backoff_(parts.scheduler.clock()) {}

void Claims::Restore(const std::vector<ClaimBindingRecord>& records,
                     const std::vector<QuarantinedRecord>& unreadable) {
  for (const ClaimBindingRecord& record : records) {
    Bound bound;
    bound.record = record;
    bound.volume = DecodePersistentVolume(record.volume_json);
    bound.durable = bound.resize_durable = true;
    ClaimBinding& binding = bound.record.binding;
    if (binding.state == BindingState::kBound && binding.claim_uid.empty()) {
      // An agent that knew no uid for the claim wrote this row: the claim that has the name now is
      // meant.
      binding.claim_uid = parts_.uids.UidOf(ObjectKeyOf(binding.claim));
      bound.durable = binding.claim_uid.empty();
    }
    bound_[record.binding.volume_name] = std::move(bound);
    NameStorage(record.binding.volume_name);
  }
  for (const QuarantinedRecord& row : unreadable) {
    if (row.kind == kClaimBindingRecordKind) quarantined_[row.key] = row.reason;
    if (IsAboutClaims(row.kind)) unreadable_[row.kind + " \"" + row.key + "\""] = row.reason;
  }
  IndexClaims();
}

void Claims::Start() {
  started_ = true;
  for (const auto& [name, bound] : bound_) {
    if (!bound.durable) Write(name);
  }
  Decide();
}

void Claims::MarkDirty() {
  if (!started_) return;
  due_ = true;
  if (posted_) return;
  posted_ = true;
  auto decide = alive_.Guarded([this] {
    posted_ = false;
    DecideNow();
  });
  const TimePoint now = parts_.scheduler.clock().Now();
  const Duration period = RestOfDecision(parts_.decide_period, decided_in_);
  const Duration rest = decided_at_ ? *decided_at_ + period - now : Duration::zero();
  if (rest <= Duration::zero()) {
    parts_.scheduler.Post(std::move(decide));
  } else {
    parts_.scheduler.PostAfter(rest, std::move(decide));
  }
}

void Claims::WakeAt(TimePoint when) {
  if (wake_ && *wake_ <= when) return;
  wake_ = when;
  const Duration delay = std::max(when - parts_.scheduler.clock().Now(), Duration::zero());
  parts_.scheduler.PostAfter(delay, alive_.Guarded([this, when] {
    if (wake_ == when) wake_.reset();
    MarkDirty();
  }));
}

void Claims::ResetBackoff(const std::string& volume_name) {
  backoff_.Reset(volume_name);
  parts_.operations.ResetBackoff(ReclaimKey(volume_name));
  MarkDirty();
}

void Claims::RetryReclaims() {
  for (const auto& [name, bound] : bound_) {
    if (bound.record.binding.state == BindingState::kReclaimFailed) {
      parts_.operations.ResetBackoff(ReclaimKey(name));
    }
  }
  MarkDirty();
}

void Claims::RetryReclaimsWith(const ObjectKey& secret) {
  bool any = false;
  for (const auto& [name, bound] : bound_) {
    if (!bound.failure) continue;
    const PersistentVolumePtr volume = FindVolumeObject(name);
    if (volume == nullptr || !SecretsNamedBy(*volume).contains(secret)) continue;
    parts_.operations.ResetBackoff(ReclaimKey(name));
    any = true;
  }
  if (any) MarkDirty();
}

// ---- the decision -------------------------------------------------------------------------------

void Claims::Decide() {
  if (!parts_.uids.Settled()) return;  // the decision is made once they are settled
  due_ = false;
  decided_at_ = parts_.scheduler.clock().Now();
  ++decisions_;
  decided_with_all_ = parts_.readiness.Ready();
  const std::vector<ClaimPod> pods = hooks_.pods();
  const BindingInput input = MakeInput(pods);
  BindingResult result = DecideBindings(input);
  if (parts_.readiness.Ready() && !unreadable_.empty()) NameUnreadable(result);
  NameRefused(result);
  NameMissingMakers(result);
  NameBeingDeleted(result);
  NameUnseen(result);
  Adopt(input, std::move(result));
  decided_in_ = parts_.scheduler.clock().Now() - *decided_at_;
}

void Claims::IndexClaims() {
  volume_of_.clear();
  for (const auto& [name, bound] : bound_) {
    const bool is_bound = bound.record.binding.state == BindingState::kBound && !bound.removing &&
                          !bound.record.deleted;
    if (is_bound) volume_of_[bound.record.binding.claim] = name;
  }
}

const Claims::Bound* Claims::BoundTo(const ClaimKey& claim) const {
  const auto name = volume_of_.find(claim);
  if (name == volume_of_.end()) return nullptr;
  const auto bound = bound_.find(name->second);
  return bound == bound_.end() ? nullptr : &bound->second;
}

void Claims::Adopt(const BindingInput& input, BindingResult result) {
  std::set<ObjectKey> changed;
  if (std::exchange(knew_all_, input.sources_complete) != input.sources_complete) {
    for (const ClaimUse& use : input.uses) changed.insert(ObjectKeyOf(use.claim));
  }
  volumes_.clear();
  for (const VolumeDecision& decision : result.volumes) {
    volumes_.emplace(decision.volume_name, decision);
  }
  std::map<ClaimKey, ClaimDecision> claims;
  for (ClaimDecision& decision : result.claims) {
    const auto before = claims_.find(decision.claim);
    if (before == claims_.end() || before->second != decision) {
      changed.insert(ObjectKeyOf(decision.claim));
      TellDecision(before == claims_.end() ? nullptr : &before->second, decision);
    }
    claims.emplace(decision.claim, std::move(decision));
  }
  for (const auto& [key, decision] : claims_) {
    if (!claims.contains(key)) changed.insert(ObjectKeyOf(key));
  }
  claims_ = std::move(claims);
  std::set<std::string> kept;
  for (const ClaimBinding& binding : result.bindings) {
    kept.insert(binding.volume_name);
    AdoptBinding(binding);
  }
  std::vector<std::string> dropped;
  for (const auto& [name, bound] : bound_) {
    const bool deleted_and_known =
        bound.record.deleted &&
        (parts_.catalog.FindPersistentVolume(name) != nullptr || !input.sources_complete);
    if (!kept.contains(name) && !deleted_and_known && !bound.removing) dropped.push_back(name);
  }
  for (const std::string& name : dropped) Forget(name);
  IndexClaims();
  for (const auto& [name, decision] : volumes_) Reclaim(decision);
  if (input.sources_complete) {
    // What it would make, or take back, may be what a PersistentVolume has that nobody knows yet.
    const bool may_begin = parts_.readiness.WhyUnseen().empty();
    parts_.provisioning.Serve(input.claims, claims_, input.ended, may_begin);
    LetGo();
  }
  for (const ClaimKey& claim : parts_.provisioning.TakeChanged()) {
    changed.insert(ObjectKeyOf(claim));
  }
  if (!changed.empty()) hooks_.changed(changed);
  hooks_.decided();
}

void Claims::TellDecision(const ClaimDecision* before, const ClaimDecision& now) const {
  // Provisioning reports on volumes that this node makes.
  if (now.wait == ClaimWait::kProvisioning && parts_.provisioning.IsOurs(now)) return;
  const std::optional<ClaimEvent> event = EventOf(now, volumes_.contains(now.volume_name));
  if (!event || (before != nullptr && before->uid == now.uid && before->wait == now.wait &&
                 before->reason == now.reason)) {
    return;
  }
  parts_.events.RecordObjectEvent(ObjectKeyOf(now.claim), event->type, event->reason,
                                  event->message);
}

void Claims::LetGo() {
  for (const auto& [name, bound] : bound_) {
    const bool deleted = bound.record.deleted && bound.durable && !bound.removing;
    if (!deleted) continue;
    parts_.provisioning.Remove(name);
    const std::string uid = bound.volume == nullptr ? "" : bound.volume->metadata.uid;
    hooks_.storage_gone({{ObjectKind::kPersistentVolume, "", name}, uid});
  }
  for (const DeletedObjectRecord& deleted : parts_.deleted.All()) {
    if (!deleted.ended && MayGo(deleted)) hooks_.may_go({deleted.object, deleted.uid});
  }
  // Ends objects that an agent without such rows has marked as deleted.
  const auto may_go = [this](const Protection& protection, const ObjectKey& key) {
    if (!protection.deletion_requested || !protection.may_go()) return;
    const ObjectPtr object = parts_.catalog.FindObject(key);
    if (object == nullptr || !MetaOf(*object).deletion_unix_millis) return;
    const DeletedObjects::Id id{key, MetaOf(*object).uid};
    if (parts_.deleted.Find(id) == nullptr) hooks_.may_go(id);
  };
  for (const auto& [key, decision] : claims_) may_go(decision.protection, ObjectKeyOf(key));
  for (const auto& [name, decision] : volumes_) {
    if (IsReclaiming(name)) continue;
    may_go(decision.protection, {ObjectKind::kPersistentVolume, "", name});
  }
}

// While a try to reclaim runs, its end needs what is known of the volume, which must not become
// another volume meanwhile.
bool Claims::IsReclaiming(const std::string& volume_name) const {
  const auto bound = bound_.find(volume_name);
  return bound != bound_.end() && bound->second.reclaiming;
}

bool Claims::MayGo(const DeletedObjectRecord& deleted) const {
  if (deleted.object.kind == ObjectKind::kPersistentVolume) {
    const VolumeDecision* volume = FindVolume(deleted.object.name);
    return !IsReclaiming(deleted.object.name) && (volume == nullptr || volume->protection.may_go());
  }
  // VolumeSnapshots and their contents go once SnapshotObjects lets them.
  if (deleted.object.kind != ObjectKind::kPersistentVolumeClaim) return false;
  const ClaimDecision* claim = FindClaim({deleted.object.name_space, deleted.object.name});
  // If no source has the claim any more, no new pod can get the volume; it is released when the
  // pods that have it have left.
  return claim == nullptr || claim->uid != deleted.uid || claim->protection.may_go();
}

PodUid Claims::PodOfClaim(const ObjectKey& claim) const {
  const ClaimKey key{claim.name_space, claim.name};
  if (const Bound* bound = BoundTo(key)) return bound->record.pod_uid;
  return OwnerAmong(key, of_pods_);
}

PodUid Claims::PodOf(const ClaimBinding& binding) const {
  const auto found = of_pods_.find({binding.claim, binding.claim_uid});
  if (found != of_pods_.end()) return found->second.pod;
  const auto bound = bound_.find(binding.volume_name);
  if (bound == bound_.end()) return PodUid();
  const ClaimBindingRecord& record = bound->second.record;
  const bool same =
      record.binding.claim == binding.claim && record.binding.claim_uid == binding.claim_uid;
  return same ? record.pod_uid : PodUid();
}

void Claims::AdoptBinding(const ClaimBinding& binding) {
  Bound& bound = bound_[binding.volume_name];
  ClaimBindingRecord record{binding, bound.record.volume_json, false};
  record.pod_uid = PodOf(binding);
  const PersistentVolumePtr volume = parts_.catalog.FindPersistentVolume(binding.volume_name);
  record.resize = ResizeFor(binding, bound, volume);
  if (volume != nullptr && volume != bound.volume) {
    record.volume_json = EncodeRecordedVolume(VolumeSpec::FromPersistentVolume(*volume, false));
    bound.volume = volume;
  }
  const bool same = SameBinding(bound.record, record) && !bound.removing;
  const bool same_resize = bound.record.resize == record.resize;
  const bool durable = bound.durable && bound.resize_durable;
  if (same && same_resize && (durable || bound.writing)) return;
  if (!same) bound.durable = false;
  if (!same_resize) bound.resize_durable = false;
  bound.record = std::move(record);
  bound.removing = false;
  Write(binding.volume_name);
}

// ---- the records --------------------------------------------------------------------------------

void Claims::Write(const std::string& name) {
  Bound& bound = bound_.at(name);
  if (bound.writing) return;  // its end looks again
  if (const auto next = backoff_.BlockedUntil(name, kWriteOperation)) return WakeAt(*next);
  bound.writing = true;
  const ClaimBindingRecord written = bound.record;
  const bool removing = bound.removing;
  const auto done = alive_.Guarded([this, name, written, removing](const Status& status) {
    Bound& now = bound_.at(name);
    now.writing = false;
    const bool current = removing == now.removing && (removing || SameBinding(written, now.record));
    const bool newly = status.ok() && current && !now.durable;
    if (status.ok() && current) now.durable = true;
    if (status.ok() && (removing || written.resize == now.record.resize)) now.resize_durable = true;
    Written(name, status, newly);
  });
  if (removing) {
    parts_.records.Remove(kClaimBindingRecordKind, name, kClaimBindingRecordDurability, done);
  } else {
    parts_.records.Put(EncodeRecord(written), kClaimBindingRecordDurability, done);
  }
}

void Claims::Written(const std::string& name, const Status& written, bool newly_durable) {
  const Bound& bound = bound_.at(name);
  if (!written.ok()) {
    backoff_.RecordFailure(name, kWriteOperation, CodeName(written.error().code()));
    parts_.log.LogLimited("claim binding " + name, LogLevel::kWarning,
                          "the binding of a volume could not be recorded",
                          {{"volume", name}, {"error", written.error()}});
  } else {
    backoff_.Reset(name, kWriteOperation);
  }
  const PersistentVolumePtr volume = bound.volume;
  const ObjectKey claim = ObjectKeyOf(bound.record.binding.claim);
  const bool settled = bound.durable && bound.resize_durable;
  if (newly_durable && bound.removing) {
    bound_.erase(name);
    NameStorage(name);
    if (volume != nullptr && parts_.catalog.FindPersistentVolume(name) == nullptr) {
      hooks_.volume_gone(*volume);
    }
  } else if (!settled) {
    Write(name);
  }
  if (newly_durable) hooks_.changed({claim});
  if (settled && volume != nullptr && bound_.contains(name)) hooks_.resize_recorded(*volume);
  if (newly_durable || settled) MarkDirty();
}

void Claims::Forget(const std::string& name) {
  Bound& bound = bound_.at(name);
  bound.removing = true;
  bound.durable = false;
  Write(name);
}

// ---- reclaiming ---------------------------------------------------------------------------------

void Claims::Reclaim(const VolumeDecision& decision) {
  const auto found = bound_.find(decision.volume_name);
  if (found == bound_.end()) return;
  Bound& bound = found->second;
  if (decision.reclaim == ReclaimAction::kNone) {
    // A try that waits for its driver might begin days later.
    if (bound.reclaiming) parts_.operations.GiveUpWaiting(ReclaimKey(decision.volume_name));
    return;
  }
  // What has come into a source since the last run may have this very storage.
  if (!parts_.readiness.WhyUnseen().empty()) return;
  // Storage that is not on record as released may belong to somebody after a crash.
  if (!bound.durable || bound.reclaiming || bound.volume == nullptr) return;
  // The end of the clone brings a decision.
  if (parts_.provisioning.ClonedFor(decision.volume_name)) return;
  const std::string name = decision.volume_name;
  const ReclaimAction action = decision.reclaim;
  const StartResult started = parts_.operations.Start(
      ReclaimVolume({bound.volume, action, bound.record.binding.claim_uid, OtherVolumes(name),
                     parts_.catalog.Pods(), alive_.Guarded([this, name](ReclaimRequest& request) {
                       request.others = OtherVolumes(name);
                       request.pods = parts_.catalog.Pods();
                     })}),
      alive_.Guarded([this, name, action](const OperationOutcome<Unit>& outcome) {
        Reclaimed(name, action, outcome);
      }));
  if (started == StartResult::kStarted) {
    bound.reclaiming = true;
  } else {
    // Whoever has the volume's device may tell nobody when it ends: a call by hand.
    const TimePoint later = parts_.scheduler.clock().Now() + Wake::kUnknownPending;
    WakeAt(parts_.operations.NextTry(ReclaimKey(name)).value_or(later));
  }
}

void Claims::TellReclaimGivenUp(const std::string& name, const std::string& left) const {
  parts_.events.RecordVolumeEvent(name, EventType::kWarning, kReclaimGivenUp, left);
}

void Claims::Reclaimed(const std::string& name, ReclaimAction action,
                       const OperationOutcome<Unit>& outcome) {
  Bound& bound = bound_.at(name);
  bound.reclaiming = false;
  if (outcome.failure && NeverReachedItsDriver(*outcome.failure)) return MarkDirty();
  if (outcome.failure) {
    const int64_t now = parts_.scheduler.clock().WallUnixMillis();
    if (!bound.failure) bound.failure = FailureHistory{*outcome.failure, now, 0};
    bound.failure->last = *outcome.failure;
    ++bound.failure->attempts;
    bound.record.binding.state = BindingState::kReclaimFailed;
  } else {
    bound.failure.reset();
    bound.record.deleted = action == ReclaimAction::kDelete;
    bound.record.binding.state = BindingState::kReclaimed;
    NameStorage(name);
  }
  bound.durable = false;
  Write(name);
  MarkDirty();
}

}  // namespace volumed
