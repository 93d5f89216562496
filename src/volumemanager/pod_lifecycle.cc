#include "volumemanager/pod_lifecycle.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/decode.h"
#include "metrics/exported_families.h"
#include "volumemanager/failed_mount_text.h"
#include "volumemanager/pod_ending.h"
#include "volumemanager/watch/size_limits.h"

namespace volumed {
namespace {

constexpr const char* kCommandReason = "deleted by command";
constexpr const char* kReplacedReason = "replaced by command: another pod comes once it is gone";
// Source: kubernetes pkg/kubelet/eviction/eviction_manager.go@v1.36.2 (immediate eviction).
constexpr int64_t kEvictionGraceSeconds = 1;

}  // namespace

// ---- what the sources say -----------------------------------------------------------------------

void PodLifecycle::PodSourceChanged(ObjectChange change, bool with_many) {
  // The catalog has no uid for a pod that was unknown.
  if (change.uid.empty()) change.uid = PodUid(parts_.known.KnownUidOf(change.key));
  parts_.replacements.Follow(change.key);
  if (change.uid.empty()) return;
  if (change.what == ObjectChange::What::kRemoved) {
    ActualPod* pod = parts_.actual.FindPod(change.uid);
    if (pod != nullptr && pod->leaving) pod->leaving->left_sources = true;
    if (pod == nullptr && parts_.tombstones.Find(change.uid) == nullptr) {
      ForgetPodIdentity(change.uid, {change.key.name_space, change.key.name, "", ""});
    }
  }
  parts_.reconciler.ResetBackoff(change.uid);
  Evaluate(change.uid, with_many);
}

void PodLifecycle::Evaluate(const PodUid& uid, bool with_many) {
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (pod != nullptr) FollowFile(*pod);
  if (const PodTombstone* tombstone = parts_.tombstones.Find(uid)) {
    if (pod == nullptr && parts_.readiness.Ready() && !IsUnknown(tombstone->identity)) {
      ForgetPodIdentity(uid, parts_.tombstones.Drop(uid));
    }
    parts_.observers.Tell(uid);
    return;
  }
  ActualPod* actual = parts_.actual.FindPod(uid);
  if (pod == nullptr && parts_.adopted.AwaitsAcceptance(uid)) return;
  if (pod == nullptr && actual != nullptr && IsUnknown(actual->identity)) return;
  const bool commanded = actual != nullptr && actual->leaving && actual->leaving->commanded &&
                         !(pod != nullptr && actual->leaving->left_sources);
  if (pod != nullptr && !EndingOf(*pod) && !commanded) {
    Want(pod);
  } else {
    Unwant(uid);
    if (actual != nullptr && pod == nullptr && parts_.catalog.ReplacedByCommand().contains(uid)) {
      LeaveForSuccessor(*actual);
    } else if (actual != nullptr && !commanded) {
      LeaveAsSourcesSay(uid, *actual, pod.get());
    }
  }
  with_many ? parts_.reconciler.MarkDirtyWithMany(uid) : parts_.reconciler.MarkDirty(uid);
}

void PodLifecycle::LeaveAsSourcesSay(const PodUid& uid, ActualPod& pod, const Pod* object) {
  const std::optional<PodEnding> ending = object == nullptr ? std::nullopt : EndingOf(*object);
  if (ending) {
    MarkLeaving(pod, ending->reason, ending->grace_seconds);
  } else if (parts_.readiness.Ready()) {
    if (!pod.leaving && !pod.delivered) ReportOrphan(uid, pod);
    MarkLeaving(pod, WhyItLeft(pod.identity), std::nullopt);
    const bool news = !std::exchange(pod.leaving->left_sources, true);
    if (news) pod.record_outdated = pod.record_durable || pod.record_writing;
  }
}

// Whether it is not known if a source has the pod; what the pod has then stays as it is.
bool PodLifecycle::IsUnknown(const PodIdentity& identity) const {
  const ObjectKey key{ObjectKind::kPod, identity.name_space, identity.name};
  return parts_.readiness.Ready() &&
         parts_.catalog.LookUp(key).answer == ObjectLookup::Answer::kUnknown;
}

std::string PodLifecycle::WhyItLeft(const PodIdentity& identity) const {
  const ObjectKey key{ObjectKind::kPod, identity.name_space, identity.name};
  return parts_.catalog.Replaced().contains(key)
             ? "its manifest has other volumes: another pod replaces it"
             : "removed from its sources";
}

// The devices of the pod's volumes, and its claims, may have no pod any more after this.
void PodLifecycle::Unwant(const PodUid& uid) {
  const WantedPod* wanted = parts_.desired.Find(uid);
  if (wanted == nullptr) return;
  for (const auto& [spec, volume] : wanted->volumes) {
    if (volume.has_device) parts_.devices.MarkDirty(volume.unique_name);
    if (volume.claim) parts_.claims.MarkDirty();
  }
  parts_.desired.RemovePod(uid);
}

PodIdentity PodLifecycle::IdentityOf(const Pod& pod) const {
  const ObjectKey key{ObjectKind::kPod, pod.metadata.name_space, pod.metadata.name};
  const std::optional<ObjectOrigin> origin = parts_.catalog.OriginOf(key);
  return {key.name_space, key.name, origin ? origin->source : "", origin ? origin->file : ""};
}

void PodLifecycle::Want(const PodPtr& pod) {
  parts_.adopted.Release(pod->uid());
  const PodIdentity identity = IdentityOf(*pod);
  ActualPod& actual = parts_.actual.AddPod(pod->uid(), identity);
  // From the record the next agent knows the pod if its file is in disorder.
  const bool is_on_record = actual.record_durable || actual.record_writing;
  if (is_on_record &&
      (actual.identity != identity ||
       (actual.object != pod && EncodeObjectJson(Object(*pod)) != actual.recorded_json))) {
    actual.record_outdated = true;
  }
  parts_.actual.SetIdentity(pod->uid(), identity);
  actual.object = pod;
  parts_.pods_with_claims.Note(pod->uid(), *pod);
  const std::optional<ObjectStanding> standing =
      parts_.catalog.StandingOf({ObjectKind::kPod, identity.name_space, identity.name});
  if (standing && standing->presence == ObjectPresence::kPresent) actual.delivered = true;
  if (actual.leaving) {
    actual.leaving.reset();
    actual.teardown_begun = false;
    actual.remove_failure.reset();
    actual.record_outdated = actual.record_durable || actual.record_writing;
    parts_.answers.Answer(pod->uid(),
                          OkStatus());  // no source had it any more, so it is wanted anew
  }
  parts_.desired.SetPod(pod);
  MarkClaimsDirty(pod->uid());
  if (const auto text = FailedMountText(*parts_.desired.Find(pod->uid()), actual)) {
    parts_.host.events.RecordPodEvent(pod->uid(), EventType::kWarning, kFailedMount, *text);
  }
}

void PodLifecycle::MarkLeaving(ActualPod& pod, const std::string& reason,
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
void PodLifecycle::Evict(const PodUid& uid, const std::string& message) {
  ActualPod* pod = parts_.actual.FindPod(uid);
  if (pod == nullptr || pod->leaving) return;
  MarkLeaving(*pod, "evicted: " + message, kEvictionGraceSeconds);
  parts_.host.metrics.CountEvictions(kEmptyDirLimitSignal, 1);
  pod->leaving->commanded = true;
  pod->leaving->evicted = true;
  pod->record_outdated = true;
  Unwant(uid);
  parts_.reconciler.MarkDirty(uid);
}

// The pod leaves like one that was deleted by command, but without a command of its own: the file
// of its successor says that it was replaced.
void PodLifecycle::LeaveForSuccessor(ActualPod& pod) {
  const bool is_new = !pod.leaving || !pod.leaving->commanded;
  const bool evicted = pod.leaving && pod.leaving->evicted;
  MarkLeaving(pod, evicted ? pod.leaving->reason : kReplacedReason, std::nullopt);
  pod.leaving->commanded = true;
  if (is_new) pod.record_outdated = true;
}

void PodLifecycle::LeaveByCommand(const PodUid& uid, ActualPod& pod, bool force) {
  parts_.adopted.Release(uid);
  MarkLeaving(pod, kCommandReason, std::nullopt);
  if (!pod.leaving->commanded) pod.record_outdated = true;
  pod.leaving->commanded = true;
  pod.leaving->force = pod.leaving->force || force;
  pod.leaving->left_sources =
      parts_.catalog.FindPod(uid) == nullptr && parts_.catalog.AllSourcesComplete();
  Unwant(uid);
}

// ---- the end of a pod ---------------------------------------------------------------------------

void PodLifecycle::PodRemoved(const PodUid& uid, const ActualPod& last) {
  parts_.consumers.ForgetPod(uid);
  MarkClaimsDirty(uid);
  parts_.pods_with_claims.Forget(uid);
  PostToCatalog(&ObjectCatalog::PodRemoved, last.identity);
  const bool commanded = last.leaving && last.leaving->commanded && !last.leaving->left_sources;
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (commanded && (pod != nullptr || !parts_.readiness.Ready() || IsUnknown(last.identity))) {
    KeepTombstone(uid, last);
    return;
  }
  parts_.answers.Answer(uid, OkStatus());
  if (last.keeps_record)
    parts_.records.Remove(kPodRecordKind, uid.str(), kPodRecordDurability, nullptr);
  parts_.host.tokens.DeleteServiceAccountTokens(uid);
  if (pod != nullptr) {
    Evaluate(uid);  // it came back while it was leaving
  } else {
    ForgetPodIdentity(uid, last.identity);
  }
}

void PodLifecycle::KeepTombstone(const PodUid& uid, const ActualPod& last) {
  parts_.host.tokens.DeleteServiceAccountTokens(uid);
  parts_.tombstones.Keep(uid, last);
}

void PodLifecycle::MarkClaimsDirty(const PodUid& uid) {
  if (parts_.pods_with_claims.Contains(uid)) parts_.claims.MarkDirty();
}

void PodLifecycle::ForgetPodIdentity(const PodUid& uid, const PodIdentity& identity) {
  if (!parts_.readiness.Ready() || IsUnknown(identity)) return;
  parts_.known.PodGone({ObjectKind::kPod, identity.name_space, identity.name}, uid.str());
  PostToCatalog(&ObjectCatalog::PodGone, identity);
}

// This is posted, since the catalog may be reporting a change of its own right now.
void PodLifecycle::PostToCatalog(void (ObjectCatalog::*tell)(const ObjectKey&),
                                 const PodIdentity& pod) {
  const ObjectKey key{ObjectKind::kPod, pod.name_space, pod.name};
  parts_.scheduler.Post(alive_.Guarded([this, tell, key] { (parts_.catalog.*tell)(key); }));
}

// If several files have a pod that leaves or is refused, one of them holds its name, and by now
// that may be another file than before. At the next start the file on record holds the name, so the
// record has to name the present one. For a pod that is wanted, Want() does this.
void PodLifecycle::FollowFile(const Pod& pod) {
  const PodUid uid = pod.uid();
  const PodIdentity identity = IdentityOf(pod);
  if (parts_.tombstones.Find(uid) != nullptr) return parts_.tombstones.SetIdentity(uid, identity);
  ActualPod* actual = parts_.actual.FindPod(uid);
  if (actual == nullptr || !actual->leaving || actual->identity == identity) return;
  parts_.actual.SetIdentity(uid, identity);
  actual->record_outdated =
      actual->record_outdated || actual->record_durable || actual->record_writing;
}

void PodLifecycle::ReportOrphan(const PodUid& uid, const ActualPod& pod) const {
  if (!orphan_found_) return;
  std::set<PodVolumeKey> volumes;
  for (const auto& [spec, volume] : pod.volumes) {
    if (MayBePresent(volume)) volumes.insert({uid, spec});
  }
  orphan_found_(volumes);
}

// ---- the start ----------------------------------------------------------------------------------

void PodLifecycle::RestoreAdoptedPods(const FoundAtStart& found) {
  std::set<PodUid> without_record(found.pod_directories.begin(), found.pod_directories.end());
  for (const PodRecord& pod : found.pods) without_record.erase(pod.uid);
  parts_.adopted.Restore(found.adopted, without_record);
  ShowHeldPods();
}

namespace {

// A pod that is refused, for a name or uid that another one has, may be the very pod that is here.
bool MayHidePod(const DecodeProblem& problem) {
  if (problem.is_waiting || problem.is_of_other_kind) return false;
  const std::string kind = Split(problem.object, ' ').front();
  return kind.empty() || kind == ObjectKindName(ObjectKind::kPod);
}

}  // namespace

// An adopted pod has no record by which its source could be asked for it alone.
std::string PodLifecycle::WhyPodsMayBeUnknown() const {
  if (parts_.catalog.Pods().empty()) return "no source has any pod";
  for (const SourceStatus& source : parts_.catalog.Sources()) {
    if (!source.incomplete_because.empty()) {
      return "source " + source.name + " is incomplete (" + source.incomplete_because + ")";
    }
    const auto hides = std::find_if(source.problems.begin(), source.problems.end(), MayHidePod);
    if (hides == source.problems.end()) continue;
    return "source " + source.name + " has what is not used (" + hides->ToString() + ")";
  }
  for (const auto& [source, unseen] : parts_.catalog.UnseenSources()) {
    return "source " + source + " was not looked into (" + unseen + ")";
  }
  return "";
}

void PodLifecycle::HoldAdoptedPodsWithMounts() {
  const std::string why = WhyPodsMayBeUnknown();
  const size_t held = parts_.adopted.SourcesHaveDelivered(why);
  if (held == 0) return;
  parts_.log.Warning(
      "pods of the adopted root that no source has, and that have volumes mounted, are held until "
      "`volumectl source accept adopted-root`",
      {{"why", why}, {"pods", held}});
  ShowHeldPods();
}

void PodLifecycle::ShowHeldPods() {
  for (const auto& [uid, held] : parts_.adopted.AwaitingAcceptance()) {
    parts_.actual.SetIdentity(uid, {held.pod.name_space, held.pod.name, kAdoptedRootSource, ""});
  }
}

// If the records may be older than the disks, a command in them may have been carried out long ago,
// and what is here now may be a later pod. The command has to be given again. A pod that no source
// has leaves without a command, and a pod of which nothing is here is refused as before.
void PodLifecycle::DoubtCommands() {
  for (const auto& [uid, there] : parts_.actual.pods()) {
    ActualPod& pod = *parts_.actual.FindPod(uid);
    const bool is_here = !pod.volumes.empty() || pod.has_directories;
    if (!pod.leaving || !pod.leaving->commanded || !is_here) continue;
    parts_.log.Warning(
        "a pod's deletion by command is not gone on with if a source has the pod: the records may "
        "be older than the disks; delete it again if it is to go",
        {{"pod_uid", uid}, {"pod", pod.identity.name}});
    pod.leaving->commanded = pod.leaving->evicted = pod.leaving->left_sources = false;
    pod.leaving->reason = "it was leaving";
    pod.record_outdated = true;
  }
}

}  // namespace volumed
