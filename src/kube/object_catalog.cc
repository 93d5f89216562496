#include "kube/object_catalog.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "kube/pod_facts.h"

namespace volumed {

void ObjectCatalog::ExpectSource(const std::string& name) {
  Source& source = sources_[name];
  source.expected = true;
  source.unconfigured = false;
  if (source.order == 0) source.order = next_order_++;
  NoteWhoIsWaitedFor();
}

void ObjectCatalog::NoteWhoIsWaitedFor() {
  const std::vector<std::string> waiting = IncompleteSources();
  waits_for_ = waiting.empty() ? "" : "no complete list yet from: " + Join(waiting, ", ");
}

void ObjectCatalog::Remember(const std::string& name, std::vector<KnownObject> objects) {
  ExpectSource(name);
  Source& source = sources_.at(name);
  if (source.complete) return;  // it has said itself what it has
  for (KnownObject& object : objects) {
    // A pod of a node that was called otherwise keeps the name that it had.
    const Pod* pod = object.object == nullptr ? nullptr : std::get_if<Pod>(object.object.get());
    if (pod != nullptr && identities_ != nullptr) object.key.name = identities_->NameOf(*pod);
    const ObjectKey key = object.key;
    holders_[key] = {name, object.file, 0};
    source.remembered.insert_or_assign(key, std::move(object));
  }
  MergeAndNotify();
}

void ObjectCatalog::HoldUnconfigured(const std::string& name,
                                     const std::vector<KnownObject>& objects) {
  constexpr const char* kReason = "its source is not configured any more";
  ExpectSource(name);
  Source& source = sources_.at(name);
  source.unconfigured = source.complete = source.last_list_complete = true;
  source.incomplete_because =
      "it is not configured any more; what it had stays until `volumectl "
      "source forget`";
  for (const KnownObject& object : objects) {
    holders_[object.key] = {name, object.file, 0};
    if (object.object == nullptr) {
      source.unknown.push_back({object.key, object.file, kReason});
    } else {
      source.objects.push_back({object.object, object.file, 0, ObjectPresence::kHeld, kReason, 0});
    }
  }
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
  Notify({{ObjectChange::What::kAdded, object.key, PodUid(), nullptr, object.object}});
}

void ObjectCatalog::Update(ObjectList list) {
  ExpectSource(list.source);
  Source& source = sources_[list.source];
  source.problems = std::move(list.problems);
  source.warnings.clear();
  for (DecodeProblem& warning : list.warnings) {
    const std::string object = warning.object;
    source.warnings[object].push_back(std::move(warning));
  }
  source.last_list_complete = list.complete;
  source.last_list_unix_millis = clock_.WallUnixMillis();
  source.incomplete_because = std::move(list.incomplete_because);
  if (!list.complete) return;
  source.complete = true;
  if (source.incomplete_because.empty()) source.was_in_order = true;
  source.objects = std::move(list.objects);
  source.unknown = std::move(list.unknown);
  for (const ObjectWithOrigin& object : source.objects) {
    last_number_ = std::max(last_number_, object.number);
  }
  MergeAndNotify();
  // What is there has been compared with them. What nobody knows anything of stays unknown, and
  // what is held or going may be lacking in the next list without that anybody has seen it leave.
  std::erase_if(sources_[list.source].remembered, [this](const auto& known) {
    const Entry* entry = FindEntry(known.first);
    return entry == nullptr ? !unknown_.contains(known.first)
                            : entry->standing.presence == ObjectPresence::kPresent;
  });
}

void ObjectCatalog::IdentifyBy(ObjectIdentities* identities) {
  identities_ = identities;
  if (identities_ != nullptr) MergeAndNotify();
}

void ObjectCatalog::Replace(const ObjectKey& pod) {
  if (replaced_.insert(pod).second) MergeAndNotify();
}

void ObjectCatalog::PodGone(const ObjectKey& pod) {
  const bool was_waited_for = replaced_.erase(pod) > 0 || waiting_.contains(pod);
  if (was_waited_for || waits_for_uid_) MergeAndNotify();
}

void ObjectCatalog::PodRemoved(const ObjectKey& pod) {
  if (waiting_.contains(pod) && !replaced_.contains(pod)) MergeAndNotify();
}

bool ObjectCatalog::ForgetSource(const std::string& name) {
  if (sources_.erase(name) == 0) return false;
  MergeAndNotify();
  return true;
}

std::string ObjectCatalog::WhereItMayHaveMoved(const std::string& former) const {
  for (const auto& [name, source] : sources_) {
    if (name == former || source.was_in_order || source.unconfigured) continue;
    const std::string why = source.complete ? source.incomplete_because : "has not delivered";
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
    for (const ObjectWithOrigin& listed : other.objects) {
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
  if (source == sources_.end() || std::exchange(source->second.was_in_order, true)) return;
  MergeAndNotify();
}

void ObjectCatalog::End(const ObjectKey& key, const std::string& uid, uint64_t number) {
  Ended& ended = ended_[key];
  ended.uids.insert(uid);
  ended.number = std::max(ended.number, number);
  if (identities_ != nullptr) identities_->Ended(key, uid);
  MergeAndNotify();
}

std::optional<uint64_t> ObjectCatalog::EndedBy(const ObjectKey& key) const {
  const auto found = ended_.find(key);
  return found == ended_.end() ? std::nullopt : std::optional(found->second.number);
}

std::optional<ObjectOrigin> ObjectCatalog::HolderOf(const ObjectKey& key) const {
  const auto found = holders_.find(key);
  if (found == holders_.end() || IsMissing(key)) return std::nullopt;
  return found->second;
}

void ObjectCatalog::Notify(const std::vector<ObjectChange>& changes) const {
  if (changes.empty()) return;
  for (const Listener& listener : listeners_) listener(changes);
}

bool ObjectCatalog::AllSourcesComplete() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const auto& entry) { return entry.second.complete; });
}

std::vector<std::string> ObjectCatalog::IncompleteSources() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : sources_) {
    if (!source.complete) names.push_back(name);
  }
  return names;
}

std::vector<SourceStatus> ObjectCatalog::Sources() const {
  std::vector<SourceStatus> all;
  for (const auto& [name, source] : sources_) {
    SourceStatus status;
    status.name = name;
    status.complete = source.complete;
    status.last_list_complete = source.last_list_complete;
    status.objects = source.objects.size();
    status.problems = source.problems;
    status.problems.insert(status.problems.end(), source.conflict_problems.begin(),
                           source.conflict_problems.end());
    for (const auto& [object, warnings] : source.warnings) {
      status.warnings.insert(status.warnings.end(), warnings.begin(), warnings.end());
    }
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

std::vector<DecodeProblem> ObjectCatalog::ProblemsOf(const ObjectKey& key) const {
  const std::string object = ToString(key);
  const std::optional<ObjectOrigin> origin = OriginOf(key);
  std::vector<DecodeProblem> problems;
  for (const SourceStatus& source : Sources()) {
    for (const DecodeProblem& problem : source.problems) {
      // A problem of the whole file concerns every object in it.
      const bool of_file = origin && origin->source == source.name && problem.object.empty() &&
                           problem.file == origin->file;
      if (problem.object == object || of_file) problems.push_back(problem);
    }
  }
  return problems;
}

std::vector<DecodeProblem> ObjectCatalog::WarningsOf(const ObjectKey& key) const {
  const std::optional<ObjectOrigin> origin = OriginOf(key);
  const auto source = origin ? sources_.find(origin->source) : sources_.end();
  if (source == sources_.end()) return {};
  const auto found = source->second.warnings.find(ToString(key));
  if (found == source->second.warnings.end()) return {};
  std::vector<DecodeProblem> warnings;
  for (const DecodeProblem& warning : found->second) {
    // Another file may have an object of the same name, which is not used.
    if (warning.file == origin->file) warnings.push_back(warning);
  }
  return warnings;
}

std::vector<ObjectKey> ObjectCatalog::DropEnded(const std::set<ObjectKey>& still_there) {
  std::vector<ObjectKey> dropped;
  const bool in_order = std::all_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source.second.complete && source.second.incomplete_because.empty();
  });
  if (sources_.empty() || !in_order) return dropped;
  for (auto at = ended_.begin(); at != ended_.end();) {
    if (still_there.contains(at->first)) {
      ++at;
    } else {
      dropped.push_back(at->first);
      at = ended_.erase(at);
    }
  }
  return dropped;
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
