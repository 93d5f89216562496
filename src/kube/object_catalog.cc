#include "kube/object_catalog.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/pod_facts.h"

namespace volumed {

void ObjectCatalog::ExpectSource(const std::string& name) {
  const auto [at, is_new] = sources_.try_emplace(name);
  Source& source = at->second;
  if (is_new) {
    source.name = name;
    source.order = next_order_++;
  }
  // What another one has lost may be in this one.
  if (is_new || source.unconfigured) dirty_.remembered = true;
  source.unconfigured = false;
  NoteWhoIsWaitedFor();
}

void ObjectCatalog::NoteWhoIsWaitedFor() {
  waits_for_.clear();
  if (AllSourcesComplete()) return;
  for (const ObjectKind kind : kAllObjectKinds) {
    std::vector<std::string> waiting;
    for (const auto& [name, source] : sources_) {
      if (!source.HasTold(kind)) waiting.push_back(name);
    }
    if (!waiting.empty()) waits_for_[kind] = "no complete list yet from: " + Join(waiting, ", ");
  }
}

bool ObjectCatalog::IsComplete(ObjectKind kind) const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [kind](const auto& entry) { return entry.second.HasTold(kind); });
}

void ObjectCatalog::Remember(const std::string& name, std::vector<KnownObject> objects) {
  ExpectSource(name);
  Source& source = sources_.at(name);
  if (source.complete) return;  // it has said itself what it has
  for (KnownObject& object : objects) {
    // A pod of a node that was called otherwise keeps the name that it had.
    const Pod* pod = object.object == nullptr ? nullptr : std::get_if<Pod>(object.object.get());
    if (pod != nullptr && identities_ != nullptr) object.key.name = identities_->NameOf(*pod);
    named_by_[object.key] = {name, object.file, 0};
    dirty_.scope.keys.insert(object.key);
    if (object.key.kind == ObjectKind::kPod) dirty_.scope.uids.insert(PodUid(object.uid));
    RememberObject(source, std::move(object));
  }
  MergeAndNotify();
}

void ObjectCatalog::KeepUnconfigured(const std::string& name,
                                     const std::vector<KnownObject>& objects) {
  constexpr const char* kReason = "its source is not configured any more";
  ExpectSource(name);
  Source& source = sources_.at(name);
  source.unconfigured = source.complete = source.last_list_complete = true;
  source.Tell();
  source.incomplete_because =
      "it is not configured any more; what it had stays until `volumectl "
      "source forget`";
  for (const KnownObject& object : objects) {
    named_by_[object.key] = {name, object.file, 0};
    if (object.object == nullptr) {
      SetUnknown(source, {object.key, object.file, kReason});
    } else {
      SetObject(source, {object.object, object.file, 0, ObjectPresence::kUnproven, kReason, 0});
    }
  }
  dirty_.all = true;
  MergeAndNotify();
}

void ObjectCatalog::RememberMissing(const std::string& source, const KnownObject& object,
                                    int64_t since_unix_millis) {
  Entry entry;
  entry.object = object.object;
  entry.standing.origin = {source, object.file, 0};
  entry.standing.missing = true;
  entry.standing.missing_since_unix_millis = since_unix_millis;
  entries_[object.key] = std::move(entry);
  // Another source may remember it, too: the next merge says who holds the name.
  dirty_.scope.keys.insert(object.key);
  for (auto& [name, other] : sources_) NoteSettled(other, object.key);
  Notify({{ObjectChange::What::kAdded, object.key, PodUid(), nullptr, object.object}});
}

void ObjectCatalog::AbsenceEnds(const std::string& source) {
  absence_ends_.insert(source);
  dirty_.all = true;
}

void ObjectCatalog::SetBoundCheck(std::function<bool(const ObjectKey&)> is_bound) {
  is_bound_ = std::move(is_bound);
  dirty_.all = true;
}

void ObjectCatalog::SetClaimStatus(
    std::function<PersistentVolumeClaimStatus(const PersistentVolumeClaim&)> status_of) {
  claim_status_ = std::move(status_of);
}

void ObjectCatalog::IdentifyBy(ObjectIdentities* identities) {
  identities_ = identities;
  dirty_.all = true;
  if (identities_ != nullptr) MergeAndNotify();
}

void ObjectCatalog::Replace(const ObjectKey& pod) {
  if (!replaced_.insert(pod).second) return;
  dirty_.scope.keys.insert(pod);
  MergeAndNotify();
}

void ObjectCatalog::PodGone(const ObjectKey& pod) {
  replaced_.erase(pod);
  MarkWhoWaitsFor(pod);
  MergeAndNotify();
}

void ObjectCatalog::PodRemoved(const ObjectKey& pod) {
  MarkWhoWaitsFor(pod);
  MergeAndNotify();
}

// Who it is that is listed under its own name may be another matter too.
void ObjectCatalog::MarkWhoWaitsFor(const ObjectKey& pod) {
  dirty_.scope.keys.insert(pod);
  if (const auto found = waited_for_.find(pod); found != waited_for_.end()) {
    dirty_.scope.keys.insert(found->second.begin(), found->second.end());
  }
}

bool ObjectCatalog::ForgetSource(const std::string& name) {
  const auto source = sources_.find(name);
  if (source == sources_.end()) return false;
  SetLists(source->second, {}, {}, kAllKinds);
  while (!source->second.remembered.empty()) {
    ForgetRemembered(source->second, source->second.remembered.begin()->first);
  }
  sources_.erase(source);
  dirty_.all = true;
  MergeAndNotify();
  return true;
}

std::string ObjectCatalog::WhereItMayHaveMoved(const std::string& former) const {
  return WhereItMayHaveMoved(former, /*as_told=*/true);
}

std::string ObjectCatalog::WhereItMayHaveMoved(const std::string& former, bool as_told) const {
  for (const auto& [name, source] : sources_) {
    const bool was_in_order = as_told ? source.told_in_order : source.was_in_order;
    const bool is_complete = as_told ? source.told_complete : source.complete;
    if (name == former || was_in_order || source.unconfigured) continue;
    const std::string why = is_complete ? source.incomplete_because : "has not delivered";
    return "source " + former + " has it no more; it may have moved to source " + name +
           ", which has not been in order since the start: " + why;
  }
  return "";
}

ObjectKey ObjectCatalog::IdentityOf(const Object& object) const {
  ObjectKey key = KeyOf(object);
  const Pod* pod = std::get_if<Pod>(&object);
  if (pod != nullptr && identities_ != nullptr) key.name = identities_->NameOf(*pod);
  return key;
}

std::map<ObjectKey, ObjectOrigin> ObjectCatalog::HandedOverBy(const std::string& source) const {
  std::map<ObjectKey, ObjectOrigin> handed_over;
  for (const auto& [name, other] : sources_) {
    if (name == source) continue;
    for (const auto& [place, one] : other.objects) {
      const ObjectWithOrigin& listed = one.object;
      if (listed.presence != ObjectPresence::kPresent) continue;
      ObjectKey key = IdentityOf(*listed.object);
      const Pod* pod = std::get_if<Pod>(listed.object.get());
      const Entry* entry = FindEntry(key);
      if (entry == nullptr || entry->standing.origin.source != source) continue;
      // A pod with another uid or with other volumes is another pod.
      const Pod* used = std::get_if<Pod>(entry->object.get());
      const bool same = pod == nullptr || used == nullptr ||
                        ((pod->metadata.uid.empty() || pod->metadata.uid == used->metadata.uid) &&
                         HaveSameVolumes(*pod, *used));
      if (same)
        handed_over.emplace(std::move(key), ObjectOrigin{name, listed.file, listed.document});
    }
  }
  return handed_over;
}

void ObjectCatalog::AcceptSource(const std::string& name) {
  const auto source = sources_.find(name);
  if (source == sources_.end()) return;
  if (!has_untold_) source->second.told_in_order = true;
  if (std::exchange(source->second.was_in_order, true)) return;
  dirty_.remembered = true;
  MergeAndNotify();
}

void ObjectCatalog::End(const ObjectKey& key, const std::string& uid, uint64_t number) {
  Ended& ended = ended_[key];
  ended.uids.insert(uid);
  ended.number = std::max(ended.number, number);
  if (identities_ != nullptr) identities_->Ended(key, uid);
  dirty_.scope.keys.insert(key);
  MergeAndNotify();
}

std::optional<uint64_t> ObjectCatalog::EndedBy(const ObjectKey& key) const {
  const auto found = ended_.find(key);
  return found == ended_.end() ? std::nullopt : std::optional(found->second.number);
}

std::optional<ObjectOrigin> ObjectCatalog::NamedBy(const ObjectKey& key) const {
  const auto found = named_by_.find(key);
  if (found == named_by_.end() || IsMissing(key)) return std::nullopt;
  return found->second;
}

void ObjectCatalog::Notify(const std::vector<ObjectChange>& changes) const {
  if (changes.empty()) return;
  for (const Listener& listener : listeners_) listener(changes);
}

bool ObjectCatalog::AllSourcesComplete() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const auto& entry) { return entry.second.told_complete; });
}

std::vector<std::string> ObjectCatalog::IncompleteSources() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : sources_) {
    if (!source.told_complete) names.push_back(name);
  }
  return names;
}

std::map<std::string, std::string> ObjectCatalog::UnseenSources() const {
  std::map<std::string, std::string> unseen;
  for (const auto& [name, source] : sources_) {
    const bool is_unseen = source.told_complete && !source.told_unseen_because.empty();
    if (is_unseen) unseen.emplace(name, source.told_unseen_because);
  }
  return unseen;
}

bool ObjectCatalog::HasSourceBut(std::string_view name) const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [name](const auto& source) { return source.first != name; });
}

std::vector<SourceStatus> ObjectCatalog::Sources() const {
  std::vector<SourceStatus> all;
  for (const auto& [name, source] : sources_) {
    SourceStatus status;
    status.name = name;
    status.complete = source.told_complete;
    status.last_list_complete = source.last_list_complete;
    status.objects = source.objects.size();
    status.problems = source.problems.All();
    for (const auto& [object, conflicts] : source.conflicts) {
      status.problems.insert(status.problems.end(), conflicts.begin(), conflicts.end());
    }
    status.warnings = source.warnings.All();
    const auto wrong = std::find_if(status.problems.begin(), status.problems.end(),
                                    [](const DecodeProblem& one) { return !one.is_waiting; });
    if (wrong != status.problems.end()) status.last_error = wrong->ToString();
    status.last_list_unix_millis = source.last_list_unix_millis;
    status.incomplete_because = source.incomplete_because;
    status.unconfigured = source.unconfigured;
    all.push_back(std::move(status));
  }
  return all;
}

bool ObjectCatalog::IsPresentIn(const std::string& source, const ObjectKey& object) const {
  const auto found = by_name_.find(object);
  return found != by_name_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const Listed* listed) {
           return listed->source->name == source &&
                  listed->object.presence == ObjectPresence::kPresent &&
                  IdentityOf(*listed->object.object) == object;
         });
}

std::vector<DecodeProblem> ObjectCatalog::ProblemsOf(const ObjectKey& key) const {
  const std::string object = ToString(key);
  const std::optional<ObjectOrigin> origin = OriginOf(key);
  std::vector<DecodeProblem> problems;
  for (const auto& [name, source] : sources_) {
    // A problem of the whole file concerns every object in it.
    if (origin && origin->source == name) source.problems.AppendOf("", origin->file, problems);
    source.problems.AppendOfObject(object, problems);
    const auto conflicts = source.conflicts.find(key);
    if (conflicts == source.conflicts.end()) continue;
    problems.insert(problems.end(), conflicts->second.begin(), conflicts->second.end());
  }
  return problems;
}

std::vector<DecodeProblem> ObjectCatalog::WarningsOf(const ObjectKey& key) const {
  std::vector<DecodeProblem> warnings;
  const std::optional<ObjectOrigin> origin = OriginOf(key);
  const auto source = origin ? sources_.find(origin->source) : sources_.end();
  if (source == sources_.end()) return warnings;
  // Another file may have an object of the same name, which is not used.
  source->second.warnings.AppendOf(ToString(key), origin->file, warnings);
  return warnings;
}

std::string_view ObjectCatalog::ConflictRules() {
  return "A source's last complete list counts until it delivers another or is forgotten. "
         "Of two objects with the same kind, namespace and name, or two pods with the same uid, "
         "the one that was there first is used, also over a start of the agent; the other takes "
         "over when the first leaves. "
         "spec.volumes does not change under one uid: the first spec is used until the pod leaves, "
         "metadata and status follow the file; a pod whose manifest names no uid is replaced by "
         "another one if the edit lasts, once its consumers are gone. "
         "A PersistentVolume, PersistentVolumeClaim or StorageClass that leaves its source is "
         "Missing, and stays as it was, until it is delivered again or deleted by command.";
}

}  // namespace volumed
