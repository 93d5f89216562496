#include "kube/object_catalog.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace volumed {
namespace {

const Pod* AsPod(const ObjectPtr& object) { return std::get_if<Pod>(object.get()); }

template <typename T>
std::shared_ptr<const T> As(const ObjectPtr& object) {
  if (object == nullptr) return nullptr;
  // Shares ownership of the whole object.
  const T* typed = std::get_if<T>(object.get());
  return typed == nullptr ? nullptr : std::shared_ptr<const T>(object, typed);
}

bool SameFile(const ObjectOrigin& a, const ObjectOrigin& b) {
  return a.source == b.source && a.file == b.file;
}

std::string Place(const ObjectOrigin& origin) {
  std::string text = "source " + origin.source;
  if (!origin.file.empty()) text += ", " + origin.file;
  return text + ", document " + std::to_string(origin.document + 1);
}

}  // namespace

// One merge of all sources' lists; the rules of the class stand here.
class ObjectCatalog::Merge {
 public:
  explicit Merge(ObjectCatalog& catalog) : catalog_(catalog) {}

  Entries Run() {
    CollectCandidates();
    // What was there first stays: those who hold their names already claim before the others.
    for (Candidate& candidate : candidates_) {
      if (HeldItsNames(candidate)) Claim(candidate);
    }
    for (Candidate& candidate : candidates_) {
      if (!candidate.claimed) Claim(candidate);
    }
    return std::move(entries_);
  }

 private:
  struct Candidate {
    Source* source;
    ObjectOrigin origin;
    ObjectPtr object;
    ObjectKey key;
    PodUid uid;  // pods only
    bool claimed = false;
  };

  void CollectCandidates() {
    std::vector<std::pair<const std::string*, Source*>> sources;
    for (auto& [name, source] : catalog_.sources_) {
      source.conflict_problems.clear();
      sources.emplace_back(&name, &source);
    }
    std::sort(sources.begin(), sources.end(),
              [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
    for (const auto& [name, source] : sources) {
      for (const ObjectWithOrigin& object : source->objects) {
        Candidate candidate{
            source, {*name, object.file, object.document}, object.object, KeyOf(*object.object), {},
            false};
        if (const Pod* pod = AsPod(object.object)) candidate.uid = pod->uid();
        candidates_.push_back(std::move(candidate));
      }
    }
  }

  const Entry* OldEntry(const ObjectKey& key) const {
    const auto found = catalog_.entries_.find(key);
    return found == catalog_.entries_.end() ? nullptr : &found->second;
  }
  const Entry* OldPod(const PodUid& uid) const {
    const auto found = catalog_.pods_by_uid_.find(uid);
    return found == catalog_.pods_by_uid_.end() ? nullptr : OldEntry(found->second);
  }

  // True if one of its names was this file's before, and none was another's.
  bool HeldItsNames(const Candidate& candidate) const {
    const Entry* by_key = OldEntry(candidate.key);
    const Entry* by_uid = candidate.uid.empty() ? nullptr : OldPod(candidate.uid);
    bool held = false;
    for (const Entry* old : {by_key, by_uid}) {
      if (old == nullptr) continue;
      if (!SameFile(old->origin, candidate.origin)) return false;
      held = true;
    }
    return held;
  }

  void Claim(Candidate& candidate) {
    candidate.claimed = true;
    if (const auto owner = entries_.find(candidate.key); owner != entries_.end()) {
      return Refuse(candidate, "metadata.name", owner->second.origin, "name");
    }
    if (!candidate.uid.empty()) {
      if (const auto owner = uid_owners_.find(candidate.uid); owner != uid_owners_.end()) {
        return Refuse(candidate, "metadata.uid", entries_.at(owner->second).origin, "uid");
      }
      uid_owners_[candidate.uid] = candidate.key;
    }
    entries_[candidate.key] = {candidate.origin, WithUid(candidate.key, WithFirstSpec(candidate))};
  }

  void Refuse(const Candidate& candidate, std::string field, const ObjectOrigin& owner,
              std::string_view what) {
    AddProblem(candidate, std::move(field),
               "the same " + std::string(what) + " was there first in " + Place(owner) +
                   "; this one is not used");
  }

  void AddProblem(const Candidate& candidate, std::string field, std::string reason) {
    candidate.source->conflict_problems.push_back({candidate.origin.file, candidate.origin.document,
                                                   ToString(candidate.key), std::move(field),
                                                   std::move(reason)});
  }

  // The object, or for a pod whose volumes changed under its uid: the new one with the old spec.
  ObjectPtr WithFirstSpec(const Candidate& candidate) {
    const Entry* old = candidate.uid.empty() ? nullptr : OldPod(candidate.uid);
    if (old == nullptr || old->object == candidate.object) return candidate.object;
    const Pod& before = *AsPod(old->object);
    const Pod& now = *AsPod(candidate.object);
    if (before.spec.volumes == now.spec.volumes) return candidate.object;
    AddProblem(candidate, "spec.volumes",
               "is immutable under the same uid; the first spec stays until the pod leaves");
    Pod kept = now;
    kept.spec = before.spec;
    return kept == before ? old->object : std::make_shared<const Object>(std::move(kept));
  }

  ObjectPtr WithUid(const ObjectKey& key, ObjectPtr object) {
    const bool of_storage =
        key.kind == ObjectKind::kPersistentVolume || key.kind == ObjectKind::kPersistentVolumeClaim;
    if (!of_storage || !catalog_.identify_ || !MetaOf(*object).uid.empty()) return object;
    Object identified = *object;
    MetaOf(identified).uid = catalog_.identify_(key);
    if (MetaOf(identified).uid.empty()) return object;
    const Entry* old = OldEntry(key);
    if (old != nullptr && *old->object == identified) return old->object;
    return std::make_shared<const Object>(std::move(identified));
  }

  ObjectCatalog& catalog_;
  std::vector<Candidate> candidates_;
  Entries entries_;
  std::map<PodUid, ObjectKey> uid_owners_;
};

void ObjectCatalog::ExpectSource(const std::string& name) {
  Source& source = sources_[name];
  source.expected = true;
  if (source.order == 0) source.order = next_order_++;
}

void ObjectCatalog::Update(ObjectList list) {
  ExpectSource(list.source);
  Source& source = sources_[list.source];
  source.problems = std::move(list.problems);
  source.last_list_complete = list.complete;
  source.last_list_unix_millis = clock_.WallUnixMillis();
  if (!list.complete) return;
  source.complete = true;
  source.objects = std::move(list.objects);
  MergeAndNotify();
}

void ObjectCatalog::IdentifyBy(Identify identify) {
  identify_ = std::move(identify);
  MergeAndNotify();
}

bool ObjectCatalog::ForgetSource(const std::string& name) {
  if (sources_.erase(name) == 0) return false;
  MergeAndNotify();
  return true;
}

void ObjectCatalog::MergeAndNotify() {
  Entries merged = Merge(*this).Run();
  const std::vector<ObjectChange> changes = Difference(entries_, merged);
  entries_ = std::move(merged);
  pods_by_uid_.clear();
  for (const auto& [key, entry] : entries_) {
    if (const Pod* pod = AsPod(entry.object); pod != nullptr && !pod->metadata.uid.empty()) {
      pods_by_uid_[pod->uid()] = key;
    }
  }
  if (changes.empty()) return;
  for (const Listener& listener : listeners_) listener(changes);
}

std::vector<ObjectChange> ObjectCatalog::Difference(const Entries& before, const Entries& after) {
  using What = ObjectChange::What;
  std::vector<ObjectChange> changes;
  const auto uid_of = [](const ObjectPtr& object) {
    const Pod* pod = AsPod(object);
    return pod == nullptr ? PodUid() : pod->uid();
  };
  // Removals first, so that a pod which came back under the same name with another uid reads as
  // one leaving and one coming.
  for (const auto& [key, entry] : before) {
    const auto found = after.find(key);
    if (found != after.end() && uid_of(found->second.object) == uid_of(entry.object)) continue;
    changes.push_back({What::kRemoved, key, uid_of(entry.object), entry.object, nullptr});
  }
  for (const auto& [key, entry] : after) {
    const auto found = before.find(key);
    const PodUid uid = uid_of(entry.object);
    if (found == before.end() || uid_of(found->second.object) != uid) {
      changes.push_back({What::kAdded, key, uid, nullptr, entry.object});
    } else if (found->second.object != entry.object && *found->second.object != *entry.object) {
      changes.push_back({What::kChanged, key, uid, found->second.object, entry.object});
    }
  }
  return changes;
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
    if (!status.problems.empty()) status.last_error = status.problems.front().ToString();
    status.last_list_unix_millis = source.last_list_unix_millis;
    all.push_back(std::move(status));
  }
  return all;
}

ObjectPtr ObjectCatalog::Find(ObjectKind kind, std::string_view name_space,
                              std::string_view name) const {
  const auto found = entries_.find({kind, std::string(name_space), std::string(name)});
  return found == entries_.end() ? nullptr : found->second.object;
}

std::vector<std::shared_ptr<const Pod>> ObjectCatalog::Pods() const {
  std::vector<std::shared_ptr<const Pod>> pods;
  pods.reserve(pods_by_uid_.size());
  for (const auto& [uid, key] : pods_by_uid_) pods.push_back(As<Pod>(entries_.at(key).object));
  return pods;
}

std::shared_ptr<const Pod> ObjectCatalog::FindPod(const PodUid& uid) const {
  const auto found = pods_by_uid_.find(uid);
  return found == pods_by_uid_.end() ? nullptr : As<Pod>(entries_.at(found->second).object);
}

std::shared_ptr<const Pod> ObjectCatalog::FindPod(std::string_view name_space,
                                                  std::string_view name) const {
  return As<Pod>(Find(ObjectKind::kPod, name_space, name));
}

std::shared_ptr<const SecretObject> ObjectCatalog::FindSecret(std::string_view name_space,
                                                              std::string_view name) const {
  return As<SecretObject>(Find(ObjectKind::kSecret, name_space, name));
}

std::shared_ptr<const ConfigMapObject> ObjectCatalog::FindConfigMap(std::string_view name_space,
                                                                    std::string_view name) const {
  return As<ConfigMapObject>(Find(ObjectKind::kConfigMap, name_space, name));
}

std::shared_ptr<const NodeObject> ObjectCatalog::FindNode(std::string_view name) const {
  return As<NodeObject>(Find(ObjectKind::kNode, "", name));
}

std::shared_ptr<const PersistentVolume> ObjectCatalog::FindPersistentVolume(
    std::string_view name) const {
  return As<PersistentVolume>(Find(ObjectKind::kPersistentVolume, "", name));
}

std::shared_ptr<const PersistentVolumeClaim> ObjectCatalog::FindPersistentVolumeClaim(
    std::string_view name_space, std::string_view name) const {
  return As<PersistentVolumeClaim>(Find(ObjectKind::kPersistentVolumeClaim, name_space, name));
}

std::shared_ptr<const StorageClass> ObjectCatalog::FindStorageClass(std::string_view name) const {
  return As<StorageClass>(Find(ObjectKind::kStorageClass, "", name));
}

std::shared_ptr<const CsiDriverObject> ObjectCatalog::FindCsiDriver(std::string_view name) const {
  return As<CsiDriverObject>(Find(ObjectKind::kCsiDriver, "", name));
}

template <typename T>
std::vector<std::shared_ptr<const T>> ObjectCatalog::AllOf(ObjectKind kind) const {
  std::vector<std::shared_ptr<const T>> all;
  for (auto entry = entries_.lower_bound({kind, "", ""});
       entry != entries_.end() && entry->first.kind == kind; ++entry) {
    all.push_back(As<T>(entry->second.object));
  }
  return all;
}

std::vector<std::shared_ptr<const PersistentVolume>> ObjectCatalog::PersistentVolumes() const {
  return AllOf<PersistentVolume>(ObjectKind::kPersistentVolume);
}

std::vector<std::shared_ptr<const PersistentVolumeClaim>> ObjectCatalog::PersistentVolumeClaims()
    const {
  return AllOf<PersistentVolumeClaim>(ObjectKind::kPersistentVolumeClaim);
}

std::vector<std::shared_ptr<const StorageClass>> ObjectCatalog::StorageClasses() const {
  return AllOf<StorageClass>(ObjectKind::kStorageClass);
}

std::vector<ObjectKey> ObjectCatalog::KeysOf(ObjectKind kind, std::string_view name_space) const {
  std::vector<ObjectKey> keys;
  for (auto at = entries_.lower_bound({kind, "", ""});
       at != entries_.end() && at->first.kind == kind; ++at) {
    if (name_space.empty() || at->first.name_space == name_space) keys.push_back(at->first);
  }
  return keys;
}

std::optional<ObjectOrigin> ObjectCatalog::OriginOf(const ObjectKey& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second.origin;
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

std::string_view ObjectCatalog::ConflictRules() {
  return "A source's last complete list counts until it delivers another or is forgotten. "
         "Of two objects with the same kind, namespace and name, or two pods with the same uid, "
         "the one that was there first is used; the other takes over when the first leaves. "
         "spec.volumes does not change under one uid: the first spec is used until the pod leaves, "
         "metadata and status follow the file.";
}

}  // namespace volumed
