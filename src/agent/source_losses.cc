#include "agent/source_losses.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "agent/command_admission.h"
#include "agent/view_codec.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "kube/pod_facts.h"
#include "volumemanager/adopted_pods.h"

namespace volumed {
namespace {

// The state of a volume that has nothing on the node.
constexpr std::string_view kNotSetUp = "NotSetUp";
// An answer has to stay below gRPC's limit.
constexpr int64_t kMaxShownMissing = 200;

// The presence of an object that has left one source and is in another one.
constexpr std::string_view kMoved = "moved";

std::string_view PresenceName(ObjectPresence presence) {
  switch (presence) {
    case ObjectPresence::kPresent:
      return "present";
    case ObjectPresence::kUnproven:
      return "held";
    case ObjectPresence::kGoing:
      return "going";
  }
  return "";
}

}  // namespace

void SourceLosses::NoteListed(const ObjectWithOrigin& object, AbsentOfSource& absent) {
  const ObjectKey key = KeyOf(*object.object);
  if (object.presence == ObjectPresence::kPresent) {
    absent.listed.erase({object.file, key});
    return;
  }
  absent.listed.insert_or_assign(
      {object.file, key},
      Absent{key, object.object, object.file, PresenceName(object.presence), object.reason,
             object.goes_at_unix_millis, object.may_be_in_source});
}

void SourceLosses::NoteUnknown(const UnknownObject& object, AbsentOfSource& absent) {
  absent.unknown.insert_or_assign(object.key, Absent{object.key, nullptr, object.file, "unknown",
                                                     object.reason, 0, object.may_be_in_source});
}

void SourceLosses::Note(const ObjectUpdate& update) {
  if (const ObjectList* list = std::get_if<ObjectList>(&update)) {
    NoteList(*list);
  } else {
    NoteDelta(std::get<ObjectDelta>(update));
  }
}

void SourceLosses::NoteList(const ObjectList& list) {
  incomplete_because_[list.source] = list.incomplete_because;
  if (!list.complete) return;
  AbsentOfSource& absent = absent_[list.source] = {};
  for (const ObjectWithOrigin& object : list.objects) NoteListed(object, absent);
  for (const UnknownObject& object : list.unknown) NoteUnknown(object, absent);
}

void SourceLosses::NoteDelta(const ObjectDelta& delta) {
  incomplete_because_[delta.source] = delta.incomplete_because;
  AbsentOfSource& absent = absent_[delta.source];
  for (const ObjectDelta::Removed& one : delta.removed) absent.listed.erase({one.file, one.key});
  for (const ObjectWithOrigin& object : delta.objects) NoteListed(object, absent);
  for (const ObjectKey& key : delta.not_unknown) absent.unknown.erase(key);
  for (const UnknownObject& object : delta.unknown) NoteUnknown(object, absent);
}

std::vector<SourceLosses::Absent> SourceLosses::AllAbsent(const std::string& source) const {
  std::vector<Absent> all;
  const auto found = absent_.find(source);
  if (found == absent_.end()) return all;
  for (const auto& [place, absent] : found->second.listed) {
    const bool is_there = catalog_.IsPresentIn(source, catalog_.IdentityOf(*absent.object));
    if (!is_there) all.push_back(absent);
  }
  for (const auto& [key, absent] : found->second.unknown) all.push_back(absent);
  return all;
}

void SourceLosses::Forget(const std::string& source) {
  absent_.erase(source);
  incomplete_because_.erase(source);
}

std::string SourceLosses::IncompleteBecause(const std::string& source) const {
  const auto found = incomplete_because_.find(source);
  return found == incomplete_because_.end() ? "" : found->second;
}

bool SourceLosses::Knows(const std::string& source) const {
  const std::vector<SourceStatus> sources = catalog_.Sources();
  return std::any_of(sources.begin(), sources.end(),
                     [&](const SourceStatus& status) { return status.name == source; });
}

void SourceLosses::EncodeAbsent(const std::string& source, AbsentObjects* out) const {
  if (source == kAdoptedRootSource) return EncodeKeptPods(out);
  for (const Absent& absent : AbsentOf(source)) Encode(source, absent, out->Add());
}

std::vector<SourceLosses::Absent> SourceLosses::AbsentOf(const std::string& source) const {
  std::vector<Absent> all = AllAbsent(source);
  if (all.empty()) return all;
  std::erase_if(all, [&](const Absent& one) { return IsEndedByCommand(source, one.key); });
  const std::map<ObjectKey, ObjectOrigin> moved = catalog_.HandedOverBy(source);
  for (Absent& absent : all) {
    if (absent.object == nullptr) continue;
    const ObjectKey key = catalog_.IdentityOf(*absent.object);
    const auto there = moved.find(key);
    const std::optional<ObjectStanding> used = catalog_.StandingOf(key);
    // The object may never have been this source's: another source had it first.
    const bool is_anothers = used && !used->missing && used->origin.source != source;
    if (there == moved.end() && !is_anothers) continue;
    const ObjectOrigin& origin = is_anothers ? used->origin : there->second;
    const bool waits = !is_anothers && absent.presence != PresenceName(ObjectPresence::kGoing);
    std::string reason = origin.file.empty() ? "source " + origin.source : origin.file;
    reason += is_anothers ? " has it" : " has it now, and takes it over";
    if (waits) reason += " once this source is in order or accepted (" + absent.reason + ")";
    absent.reason = std::move(reason);
    absent.presence = kMoved;
    absent.goes_at_unix_millis = 0;
  }
  return all;
}

bool SourceLosses::IsEndedByCommand(const std::string& source, const ObjectKey& object) const {
  // A pod that a command has deleted stays on the node for a while, and shows itself what it waits
  // for.
  if (object.kind == ObjectKind::kPod) return false;
  if (manager_.storage().IsBeingDeleted(object)) return true;
  const std::optional<ObjectOrigin> used = catalog_.OriginOf(object);
  return catalog_.IsEnded(object) && (!used || used->source != source);
}

void SourceLosses::EncodeAccepted(const std::string& source, AbsentObjects* out) const {
  if (source == kAdoptedRootSource) return EncodeKeptPods(out);
  for (const Absent& absent : AbsentOf(source)) {
    if (absent.presence != kMoved) Encode(source, absent, out->Add());
  }
  for (const auto& [name, of_source] : absent_) {
    for (const Absent& absent : AllAbsent(name)) {
      const bool may_be_here = absent.may_be_in_source == source;
      if (may_be_here && !IsEndedByCommand(name, absent.key)) Encode(name, absent, out->Add());
    }
  }
}

void SourceLosses::EncodeReplaced(const std::string& source, AbsentObjects* out) const {
  for (const ObjectKey& key : catalog_.KeysOf(ObjectKind::kPod, "")) {
    const std::optional<ObjectStanding> standing = catalog_.StandingOf(key);
    if (!standing || !standing->to_be_replaced || standing->origin.source != source) continue;
    const std::optional<int64_t> begins = manager_.pods().ReplacedAtUnixMillis(key);
    Encode(source,
           {key, catalog_.FindObject(key), standing->origin.file, "present",
            "its manifest has other volumes; another pod comes once its consumers are gone",
            begins.value_or(0)},
           out->Add());
  }
}

void SourceLosses::EncodeAll(const std::string& source, AbsentObjects* out) const {
  const std::map<ObjectKey, ObjectOrigin> stays = catalog_.HandedOverBy(source);
  for (const ObjectKind kind : kAllObjectKinds) {
    for (const ObjectKey& key : catalog_.KeysOf(kind, "")) {
      const std::optional<ObjectOrigin> origin = catalog_.OriginOf(key);
      if (!origin || origin->source != source || stays.contains(key)) continue;
      Encode(source, {key, catalog_.FindObject(key), origin->file, "present", ""}, out->Add());
    }
  }
}

void SourceLosses::EncodeMissing(const std::string& source, v1::Source* out) const {
  EncodeMissingOf([&source](const std::string& its) { return its == source; }, out);
}

void SourceLosses::EncodeForgotten(v1::GetSourcesResponse* out) const {
  std::set<std::string> known;
  for (const SourceStatus& source : catalog_.Sources()) known.insert(source.name);
  v1::Source forgotten;
  forgotten.set_name("forgotten");
  forgotten.set_complete(true);
  forgotten.set_healthy(true);
  EncodeMissingOf([&known](const std::string& its) { return !known.contains(its); }, &forgotten);
  if (forgotten.missing_count() > 0) *out->add_sources() = std::move(forgotten);
}

void SourceLosses::EncodeMissingOf(const std::function<bool(const std::string&)>& is_of,
                                   v1::Source* out) const {
  int64_t count = 0;
  for (const ObjectKind kind : kAllObjectKinds) {
    if (!OutlivesPods(kind)) continue;
    for (const ObjectKey& key : catalog_.KeysOf(kind, "")) {
      const std::optional<ObjectStanding> standing = catalog_.StandingOf(key);
      if (!standing || !standing->missing || !is_of(standing->origin.source)) continue;
      if (++count > kMaxShownMissing) continue;
      const char* const reason =
          manager_.storage().IsBeingDeleted(key)
              ? "it has been deleted by command, and ends once nothing has it"
              : "";
      Encode(standing->origin.source,
             {key, catalog_.FindObject(key), standing->origin.file, "missing", reason},
             out->add_missing());
    }
  }
  out->set_missing_count(count);
}

void SourceLosses::Encode(const std::string& source, const Absent& absent,
                          v1::AbsentObject* out) const {
  *out->mutable_object() = MakeObjectRef(absent.key);
  // An object that a command has deleted ends by that command.
  const bool is_deleted =
      catalog_.IsEnded(absent.key) || manager_.storage().IsBeingDeleted(absent.key);
  const bool has_moved = absent.presence == kMoved;
  out->set_becomes_missing(OutlivesPods(absent.key.kind) && !is_deleted && !has_moved &&
                           !removal_deletes_.contains(source));
  out->set_file(AnswerText(absent.file));
  out->set_presence(std::string(absent.presence));
  out->set_reason(AnswerText(absent.reason));
  out->set_goes_at_unix_ms(absent.goes_at_unix_millis);
  if (has_moved) return;
  if (!out->becomes_missing() && !is_deleted) EncodeDoomedData(absent.key, out);
  // The catalog has the object in use and knows its uid, which a list may lack.
  const ObjectPtr used = catalog_.FindObject(absent.key);
  const Pod* const pod = std::get_if<Pod>(used ? used.get() : absent.object.get());
  if (pod == nullptr) return;
  out->mutable_object()->set_uid(pod->metadata.uid);
  const std::optional<PodView> view = manager_.pods().Find(pod->uid());
  if (view && IsDeletedByCommand(*view)) return;
  for (const std::string& volume : VolumesThatEndWithPod(*pod)) out->add_disk_data(volume);
  EncodeMountedVolumes(pod->uid(), out);
}

// Adds the data that ends with the removal of this claim.
void SourceLosses::EncodeDoomedData(const ObjectKey& claim, v1::AbsentObject* out) const {
  const std::optional<DoomedData> data = DataThatEndsWith(catalog_, manager_, claim);
  if (!data || !data->stays_because.empty()) return;
  const std::string place = data->place.empty() ? "" : " in " + data->place;
  out->add_disk_data(data->volume + place + " (" + data->policy + ")");
  if (data->in_use) out->add_mounted_volumes(data->volume);
}

void SourceLosses::EncodeMountedVolumes(const PodUid& pod, v1::AbsentObject* out) const {
  const std::optional<PodView> view = manager_.pods().Find(pod);
  for (const VolumeView& volume : view ? view->volumes : std::vector<VolumeView>()) {
    if (volume.state != kNotSetUp) out->add_mounted_volumes(volume.spec.str());
  }
}

void SourceLosses::EncodeKeptPods(AbsentObjects* out) const {
  for (const AdoptedPodView& pod : manager_.pods().AwaitingAcceptance()) {
    v1::AbsentObject* const held = out->Add();
    *held->mutable_object() = MakeObjectRef({ObjectKind::kPod, pod.ns, pod.name});
    held->mutable_object()->set_uid(pod.uid.str());
    held->set_presence("held");
    held->set_reason(pod.disk_data.empty() ? pod.why_held + ", and this pod has volumes mounted"
                                           : "no source has it, and it has data on disk");
    if (pod.mounted.empty()) EncodeMountedVolumes(pod.uid, held);
    for (const std::string& volume : pod.mounted) held->add_mounted_volumes(volume);
    for (const std::string& volume : pod.disk_data) held->add_disk_data(volume);
  }
}

void SourceLosses::EncodeAdoptedRoot(v1::GetSourcesResponse* out) const {
  AbsentObjects held;
  EncodeKeptPods(&held);
  if (held.empty()) return;
  v1::Source* const source = out->add_sources();
  source->set_name(kAdoptedRootSource);
  source->set_complete(true);
  source->set_objects(held.size());
  source->set_incomplete_because(
      "pods were left here that no source has, with data on disk or volumes mounted; they stay "
      "until `volumectl source accept`");
  source->mutable_absent()->Swap(&held);
}

Status SourceLosses::CheckConfirmed(const AbsentObjects& goes, bool yes) {
  if (yes) return OkStatus();
  std::vector<std::string> names;
  bool pods_alone = true;
  for (const v1::AbsentObject& one : goes) {
    if (one.mounted_volumes().empty() && one.disk_data().empty()) continue;
    const v1::ObjectRef& object = one.object();
    const bool is_pod = object.kind() == ObjectKindName(ObjectKind::kPod);
    pods_alone = pods_alone && is_pod;
    names.push_back(
        (is_pod ? "" : object.kind() + " ") +
        (object.name().empty() ? object.uid() : object.namespace_() + "/" + object.name()));
  }
  if (names.empty()) return OkStatus();
  const size_t count = names.size();
  if (count > 5) names.resize(5);
  return Error::NotApplied(
      Code::kFailedPrecondition,
      std::to_string(count) + (pods_alone ? " pod" : " object") + (count == 1 ? "" : "s") +
          " with mounted volumes or data on disk would go (" + Join(names, ", ") +
          (count > 5 ? ", ..." : "") + "); --yes confirms it");
}

}  // namespace volumed
