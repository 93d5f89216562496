// ObjectCatalog: what has changed from one view to the next.
#include "kube/object_catalog.h"

namespace volumed {

// `before` is null for an object that was unknown.
ObjectChange ObjectCatalog::LeftOf(const ObjectKey& key, const ObjectPtr& before) const {
  using What = ObjectChange::What;
  const PodUid uid = before == nullptr ? PodUid() : UidOfPod(*before);
  const auto unknown = unknown_.find(key);
  if (unknown == unknown_.end()) return {What::kRemoved, key, uid, before, nullptr};
  return {What::kUnknown,        key, uid, before, nullptr, unknown->second.origin.file,
          unknown->second.reason};
}

// `old` is null for an object that was not found. Nothing: it is as it was.
std::optional<ObjectChange> ObjectCatalog::ComeOf(const ObjectKey& key, const Entry* old,
                                                  const Entry& entry) {
  using What = ObjectChange::What;
  const PodUid uid = UidOfPod(*entry.object);
  if (old == nullptr || UidOfPod(*old->object) != uid) {
    return ObjectChange{What::kAdded, key, uid, nullptr, entry.object};
  }
  const bool missing = entry.standing.missing;
  const bool same = old->object == entry.object || *old->object == *entry.object;
  std::optional<What> what;
  if (missing && !old->standing.missing) {
    what = What::kMissing;
  } else if (!same || missing != old->standing.missing ||
             old->standing.to_be_replaced != entry.standing.to_be_replaced) {
    what = What::kChanged;
  } else if (!SameFile(old->standing.origin, entry.standing.origin)) {
    what = What::kMoved;
  }
  if (!what) return std::nullopt;
  return ObjectChange{*what, key, uid, old->object, entry.object};
}

// Removals come first, so that a pod which came back under the same name with another uid reads as
// one leaving and one coming.
std::vector<ObjectChange> ObjectCatalog::ChangesSince(
    const Entries& entries, const std::map<ObjectKey, Unknown>& unknown_before,
    const std::set<ObjectKey>& keys) const {
  std::vector<ObjectChange> changes;
  for (const auto& [key, entry] : entries) {
    const Entry* now = FindEntry(key);
    const bool stays = now != nullptr && UidOfPod(*now->object) == UidOfPod(*entry.object);
    if (!stays) changes.push_back(LeftOf(key, entry.object));
  }
  for (const auto& [key, unknown] : unknown_before) {
    if (!unknown_.contains(key) && !entries_.contains(key)) changes.push_back(LeftOf(key, nullptr));
  }
  for (const ObjectKey& key : keys) {
    const auto unknown = unknown_.find(key);
    if (unknown == unknown_.end() || entries.contains(key)) continue;  // told above
    const auto before = unknown_before.find(key);
    const bool news = before == unknown_before.end() ||
                      before->second.reason != unknown->second.reason ||
                      before->second.origin != unknown->second.origin;
    if (news) changes.push_back(LeftOf(key, nullptr));
  }
  for (const ObjectKey& key : keys) {
    const Entry* now = FindEntry(key);
    if (now == nullptr) continue;
    const auto old = entries.find(key);
    if (auto come = ComeOf(key, old == entries.end() ? nullptr : &old->second, *now)) {
      changes.push_back(std::move(*come));
    }
  }
  return changes;
}

}  // namespace volumed
