#include "kube/object_finder.h"

#include <variant>

namespace volumed {

PodUid UidOfPod(const Object& object) {
  const Pod* pod = std::get_if<Pod>(&object);
  return pod == nullptr ? PodUid() : pod->uid();
}
namespace {

template <typename T>
std::shared_ptr<const T> As(const ObjectPtr& object) {
  if (object == nullptr) return nullptr;
  // Shares ownership of the whole object.
  const T* typed = std::get_if<T>(object.get());
  return typed == nullptr ? nullptr : std::shared_ptr<const T>(object, typed);
}

}  // namespace

bool OutlivesPods(ObjectKind kind) { return KindFactsOf(kind).end == ObjectEnd::kByCommand; }

const ObjectFinder::Entry* ObjectFinder::FindEntry(const ObjectKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

ObjectPtr ObjectFinder::Find(ObjectKind kind, std::string_view name_space,
                             std::string_view name) const {
  const Entry* entry = FindEntry({kind, std::string(name_space), std::string(name)});
  return entry == nullptr ? nullptr : entry->object;
}

ObjectLookup ObjectFinder::LookUp(const ObjectKey& key) const {
  using Answer = ObjectLookup::Answer;
  if (const Entry* entry = FindEntry(key)) return {Answer::kFound, entry->object, "", ""};
  if (const auto unknown = unknown_.find(key); unknown != unknown_.end()) {
    return {Answer::kUnknown, nullptr, unknown->second.origin.file, unknown->second.reason};
  }
  if (const auto waits = waits_for_.find(key.kind); waits != waits_for_.end()) {
    return {Answer::kUnknown, nullptr, "", waits->second};
  }
  return {Answer::kAbsent, nullptr, "", ""};
}

std::vector<std::shared_ptr<const Pod>> ObjectFinder::Pods() const {
  std::vector<std::shared_ptr<const Pod>> pods;
  pods.reserve(pods_by_uid_.size());
  for (const auto& [uid, key] : pods_by_uid_) pods.push_back(As<Pod>(entries_.at(key).object));
  return pods;
}

std::shared_ptr<const Pod> ObjectFinder::FindPod(const PodUid& uid) const {
  const auto found = pods_by_uid_.find(uid);
  return found == pods_by_uid_.end() ? nullptr : As<Pod>(entries_.at(found->second).object);
}

std::shared_ptr<const Pod> ObjectFinder::FindPod(std::string_view name_space,
                                                 std::string_view name) const {
  return As<Pod>(Find(ObjectKind::kPod, name_space, name));
}

std::shared_ptr<const SecretObject> ObjectFinder::FindSecret(std::string_view name_space,
                                                             std::string_view name) const {
  return As<SecretObject>(Find(ObjectKind::kSecret, name_space, name));
}

std::shared_ptr<const ConfigMapObject> ObjectFinder::FindConfigMap(std::string_view name_space,
                                                                   std::string_view name) const {
  return As<ConfigMapObject>(Find(ObjectKind::kConfigMap, name_space, name));
}

std::shared_ptr<const NodeObject> ObjectFinder::FindNode(std::string_view name) const {
  return As<NodeObject>(Find(ObjectKind::kNode, "", name));
}

std::shared_ptr<const PersistentVolume> ObjectFinder::FindPersistentVolume(
    std::string_view name) const {
  return As<PersistentVolume>(Find(ObjectKind::kPersistentVolume, "", name));
}

std::shared_ptr<const PersistentVolumeClaim> ObjectFinder::FindPersistentVolumeClaim(
    std::string_view name_space, std::string_view name) const {
  return As<PersistentVolumeClaim>(Find(ObjectKind::kPersistentVolumeClaim, name_space, name));
}

std::shared_ptr<const StorageClass> ObjectFinder::FindStorageClass(std::string_view name) const {
  return As<StorageClass>(Find(ObjectKind::kStorageClass, "", name));
}

std::shared_ptr<const CsiDriverObject> ObjectFinder::FindCsiDriver(std::string_view name) const {
  return As<CsiDriverObject>(Find(ObjectKind::kCsiDriver, "", name));
}

template <typename T>
std::vector<std::shared_ptr<const T>> ObjectFinder::AllOf(ObjectKind kind) const {
  std::vector<std::shared_ptr<const T>> all;
  for (auto entry = entries_.lower_bound({kind, "", ""});
       entry != entries_.end() && entry->first.kind == kind; ++entry) {
    all.push_back(As<T>(entry->second.object));
  }
  return all;
}

std::vector<std::shared_ptr<const PersistentVolume>> ObjectFinder::PersistentVolumes() const {
  return AllOf<PersistentVolume>(ObjectKind::kPersistentVolume);
}

std::vector<std::shared_ptr<const PersistentVolumeClaim>> ObjectFinder::PersistentVolumeClaims()
    const {
  return AllOf<PersistentVolumeClaim>(ObjectKind::kPersistentVolumeClaim);
}

std::vector<std::shared_ptr<const StorageClass>> ObjectFinder::StorageClasses() const {
  return AllOf<StorageClass>(ObjectKind::kStorageClass);
}

std::vector<ObjectKey> ObjectFinder::KeysOf(ObjectKind kind, std::string_view name_space) const {
  std::vector<ObjectKey> keys;
  for (auto at = entries_.lower_bound({kind, "", ""});
       at != entries_.end() && at->first.kind == kind; ++at) {
    if (name_space.empty() || at->first.name_space == name_space) keys.push_back(at->first);
  }
  return keys;
}

std::vector<UnknownObject> ObjectFinder::UnknownOf(ObjectKind kind) const {
  std::vector<UnknownObject> all;
  for (auto at = unknown_.lower_bound({kind, "", ""});
       at != unknown_.end() && at->first.kind == kind; ++at) {
    all.push_back({at->first, at->second.origin.file, at->second.reason});
  }
  return all;
}

std::optional<ObjectOrigin> ObjectFinder::OriginOf(const ObjectKey& key) const {
  const Entry* entry = FindEntry(key);
  if (entry == nullptr) return std::nullopt;
  return entry->standing.origin;
}

std::optional<ObjectStanding> ObjectFinder::StandingOf(const ObjectKey& key) const {
  const Entry* entry = FindEntry(key);
  if (entry == nullptr) return std::nullopt;
  return entry->standing;
}

bool ObjectFinder::IsMissing(const ObjectKey& key) const {
  const Entry* entry = FindEntry(key);
  return entry != nullptr && entry->standing.missing;
}

}  // namespace volumed
