// KubeletVolumeManager: how pods leave: by command, by eviction, and until nothing of them is left.
#include <utility>

#include "metrics/exported_families.h"
#include "volumemanager/kubelet_volume_manager_impl.h"

namespace volumed {
namespace {

constexpr const char* kCommandReason = "deleted by command";
constexpr const char* kReplacedReason = "replaced by command: another pod comes once it is gone";
// Source: kubernetes pkg/kubelet/eviction/eviction_manager.go@v1.36.2 (immediate eviction).
constexpr int64_t kEvictionGraceSeconds = 1;

}  // namespace

Error NoSuchPod(const PodUid& pod) {
  return Error::NotApplied(Code::kNotFound, "no pod with uid " + pod.str() + " is known");
}

Error NotLoaded() {
  return Error::NotApplied(Code::kUnavailable, "the records of the last run are not loaded yet");
}

void KubeletVolumeManager::Impl::MarkLeaving(ActualPod& pod, const std::string& reason,
                                             std::optional<int64_t> grace_seconds) {
  const bool is_new = !pod.leaving;
  if (is_new) {
    pod.leaving = Leaving{};
    pod.leaving->since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
  }
  pod.leaving->reason = reason;
  if (grace_seconds) pod.leaving->grace_seconds = *grace_seconds;
  // The record has to keep the grace period, which a restart must not begin again.
  if (is_new && pod.leaving->grace_seconds > 0) {
    pod.record_outdated = pod.record_durable || pod.record_writing;
  }
}

// An evicted pod leaves like a pod that was deleted by command: its source still has it, and must
// not bring it back.
void KubeletVolumeManager::Impl::Evict(const PodUid& uid, const std::string& message) {
  ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr || pod->leaving) return;
  MarkLeaving(*pod, "evicted: " + message, kEvictionGraceSeconds);
  parts_.host.metrics.CountEvictions(kEmptyDirLimitSignal, 1);
  pod->leaving->commanded = true;
  pod->leaving->evicted = true;
  pod->record_outdated = true;
  Unwant(uid);
  reconciler_.MarkDirty(uid);
}

// The pod leaves like one that was deleted by command, but without a command of its own: the file
// of its successor says that it was replaced.
void KubeletVolumeManager::Impl::LeaveForSuccessor(ActualPod& pod) {
  const bool is_new = !pod.leaving || !pod.leaving->commanded;
  const bool evicted = pod.leaving && pod.leaving->evicted;
  MarkLeaving(pod, evicted ? pod.leaving->reason : kReplacedReason, std::nullopt);
  pod.leaving->commanded = true;
  if (is_new) pod.record_outdated = true;
}

std::optional<Error> KubeletVolumeManager::Impl::RefuseDelete(const PodUid& uid) const {
  if (!loaded_) return NotLoaded();
  const ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr) {
    if (parts_.catalog.FindPod(uid) == nullptr) return NoSuchPod(uid);
    return std::nullopt;
  }
  if (pod->quarantine_reason.empty()) return std::nullopt;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "pod " + uid.str() + " is left alone: " + pod->quarantine_reason);
}

void KubeletVolumeManager::Impl::DeletePod(const PodUid& uid, bool force, Done done) {
  if (const std::optional<Error> refused = RefuseDelete(uid)) {
    PostAnswer(done, *refused);
    return;
  }
  ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr) {
    if (!tombstones_.contains(uid)) {
      PostAnswer(done, OkStatus());  // it has ended: nothing of it is or will be here
      return;
    }
    // The disk may have refused the row when the pod went, so it is written again.
    deletes_[uid].push_back(std::move(done));
    WriteTombstone(uid);
    return;
  }
  adopted_.Release(uid);
  MarkLeaving(*pod, kCommandReason, std::nullopt);
  if (!pod->leaving->commanded) pod->record_outdated = true;
  pod->leaving->commanded = true;
  pod->leaving->force = pod->leaving->force || force;
  pod->leaving->left_sources =
      parts_.catalog.FindPod(uid) == nullptr && parts_.catalog.AllSourcesComplete();
  Unwant(uid);
  if (pod->record_durable && !pod->record_outdated && !pod->record_writing) {
    PostAnswer(done, OkStatus());
  } else {
    deletes_[uid].push_back(std::move(done));
  }
  reconciler_.ResetBackoff(uid);
  reconciler_.MarkDirty(uid);
}

void KubeletVolumeManager::Impl::PostAnswer(const Done& done, const Status& status) {
  parts_.scheduler.Post([done, status] { done(status); });
}

void KubeletVolumeManager::Impl::AnswerDeletes(const PodUid& uid, const Status& written) {
  auto waiting = deletes_.extract(uid);
  if (waiting.empty()) return;
  Status answer = written;
  // This holds also for a pod that no source has any more: it is still on record, and would be
  // held.
  if (!written.ok()) {
    const Error& cause = written.error();
    answer = Error::FromParts(cause.code(), Outcome::kMaybeApplied, cause.sys_errno(),
                              "pod " + uid.str() +
                                  " leaves, but may come back at the next start: the command "
                                  "could not be recorded: " +
                                  cause.message());
  }
  for (const Done& done : waiting.mapped()) PostAnswer(done, answer);
}

// ---- the end of a pod ---------------------------------------------------------------------------

void KubeletVolumeManager::Impl::PodRemoved(const PodUid& uid, const ActualPod& last) {
  consumers_.ForgetPod(uid);
  MarkClaimsDirty(uid);
  pods_with_claims_.erase(uid);
  PostToCatalog(&ObjectCatalog::PodRemoved, last.identity);
  const bool commanded = last.leaving && last.leaving->commanded && !last.leaving->left_sources;
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (commanded && (pod != nullptr || !Ready() || IsUnknown(last.identity))) {
    KeepTombstone(uid, last);
    return;
  }
  AnswerDeletes(uid, OkStatus());
  if (last.keeps_record) records_.Remove(kPodRecordKind, uid.str(), kPodRecordDurability, nullptr);
  parts_.host.tokens.DeleteServiceAccountTokens(uid);
  if (pod != nullptr) {
    EvaluatePod(uid);  // it came back while it was leaving
  } else {
    ForgetPodIdentity(uid, last.identity);
  }
}

void KubeletVolumeManager::Impl::ForgetPodIdentity(const PodUid& uid, const PodIdentity& identity) {
  if (!Ready() || IsUnknown(identity)) return;
  known_.PodGone({ObjectKind::kPod, identity.name_space, identity.name}, uid.str());
  PostToCatalog(&ObjectCatalog::PodGone, identity);
}

// This is posted, since the catalog may be reporting a change of its own right now.
void KubeletVolumeManager::Impl::PostToCatalog(void (ObjectCatalog::*tell)(const ObjectKey&),
                                               const PodIdentity& pod) {
  const ObjectKey key{ObjectKind::kPod, pod.name_space, pod.name};
  parts_.scheduler.Post([this, alive = std::weak_ptr<bool>(alive_), tell, key] {
    if (!alive.expired()) (parts_.catalog.*tell)(key);
  });
}

void KubeletVolumeManager::Impl::KeepTombstone(const PodUid& uid, const ActualPod& last) {
  parts_.host.tokens.DeleteServiceAccountTokens(uid);
  tombstones_[uid] = {last.leaving->since_unix_ms,
                      last.leaving->evicted ? last.leaving->reason : "", last.identity,
                      last.recorded_json};
  WriteTombstone(uid);
}

void KubeletVolumeManager::Impl::WriteTombstone(const PodUid& uid) {
  const PodTombstone& tombstone = tombstones_.at(uid);
  PodRecord record;
  record.uid = uid;
  record.ns = tombstone.identity.name_space;
  record.name = tombstone.identity.name;
  record.source = tombstone.identity.source;
  record.file = tombstone.identity.file;
  record.terminating = true;
  record.terminating_since_unix_ms = tombstone.since_unix_ms;
  record.reason = tombstone.evicted;
  // The row has the pod, since its source has it too, and must be able to say so if its file is in
  // disorder.
  record.pod_json = tombstone.pod_json;
  records_.Put(EncodeRecord(record), kPodRecordDurability, [this, uid](const Status& written) {
    AnswerDeletes(uid, written);
    if (written.ok()) return;
    parts_.log.Warning("a pod deleted by command may come back at the next start",
                       {{"pod", uid}, {"error", written.error()}});
  });
}

// If several files have a pod that leaves or is refused, one of them holds its name, and by now
// that may be another file than before. At the next start the file on record holds the name, so the
// record has to name the present one. For a pod that is wanted, Want() does this.
void KubeletVolumeManager::Impl::FollowFile(const Pod& pod) {
  const PodUid uid = pod.uid();
  const PodIdentity identity = IdentityOf(pod);
  if (const auto tombstone = tombstones_.find(uid); tombstone != tombstones_.end()) {
    if (tombstone->second.identity == identity) return;
    tombstone->second.identity = identity;
    WriteTombstone(uid);
    return;
  }
  ActualPod* actual = actual_.FindPod(uid);
  if (actual == nullptr || !actual->leaving || actual->identity == identity) return;
  actual_.SetIdentity(uid, identity);
  actual->record_outdated =
      actual->record_outdated || actual->record_durable || actual->record_writing;
}

void KubeletVolumeManager::Impl::DropTombstone(const PodUid& uid) {
  const PodIdentity identity = tombstones_.at(uid).identity;
  tombstones_.erase(uid);
  AnswerDeletes(uid, OkStatus());  // it has left its sources
  records_.Remove(kPodRecordKind, uid.str(), kPodRecordDurability, nullptr);
  ForgetPodIdentity(uid, identity);
}

PodView KubeletVolumeManager::Impl::TombstoneView(const Pod& pod) const {
  ProblemView problem;
  problem.step = kDeletedStep;
  const PodTombstone& tombstone = tombstones_.at(pod.uid());
  const std::string file = tombstone.identity.file.empty() ? "a source" : tombstone.identity.file;
  problem.message =
      tombstone.evicted.empty() ? "it was deleted by command" : "it was " + tombstone.evicted;
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(
      {ObjectKind::kPod, tombstone.identity.name_space, tombstone.identity.name});
  switch (standing ? standing->presence : ObjectPresence::kPresent) {
    case ObjectPresence::kPresent:
      problem.message += " and " + file + " still has it";
      problem.who_must_act =
          "the owner of its manifest: remove it there; put there anew after removal-settle, it "
          "comes back";
      break;
    case ObjectPresence::kGoing:
      problem.message += "; " + file + " lacks it, and it is forgotten after removal-settle";
      problem.who_must_act = "nobody";
      break;
    case ObjectPresence::kHeld:
      problem.message += "; whether " + file + " still has it is not known: " + standing->reason;
      problem.who_must_act = "whoever puts that in order";
      break;
  }
  problem.since_unix_ms = tombstone.since_unix_ms;
  return views_.BuildRefused(pod, "Refused", std::move(problem));
}

}  // namespace volumed
