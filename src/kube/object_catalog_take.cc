// ObjectCatalog: what a merge has found becomes the view, and everybody is told what changed.
#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "kube/object_catalog_merge.h"

namespace volumed {
namespace {

// Of the changes of bound claims and volumes that are refused, so many are tried again with each
// event. Nobody tells when one of them is bound no more, and there may be many.
constexpr size_t kLooksAtRefused = 16;

// Puts what was found in the place of what was kept of these keys, or of everything (null), and
// returns that.
template <typename Map>
Map Exchange(Map& kept, Map& found, const std::set<ObjectKey>* keys) {
  if (keys == nullptr) return std::exchange(kept, std::move(found));
  Map before;
  for (const ObjectKey& key : *keys) {
    if (auto node = kept.extract(key); !node.empty()) before.insert(std::move(node));
  }
  kept.merge(found);
  return before;
}

// The same of a set of keys.
void ExchangeKeys(std::set<ObjectKey>& kept, std::set<ObjectKey> found,
                  const std::set<ObjectKey>* keys) {
  if (keys == nullptr) {
    kept = std::move(found);
    return;
  }
  for (const ObjectKey& key : *keys) kept.erase(key);
  kept.merge(found);
}

template <typename Map>
void AddKeys(const Map& map, std::set<ObjectKey>& keys) {
  for (const auto& [key, value] : map) keys.insert(keys.end(), key);
}

}  // namespace

void ObjectCatalog::AddWhatNobodyTells(Scope& scope) {
  auto at = refused_while_bound_.upper_bound(looked_at_last_);
  const size_t count = std::min(kLooksAtRefused, refused_while_bound_.size());
  for (size_t i = 0; i < count; ++i, ++at) {
    if (at == refused_while_bound_.end()) at = refused_while_bound_.begin();
    scope.keys.insert(*at);
    looked_at_last_ = *at;
  }
}

void ObjectCatalog::MergeAndNotify() {
  Dirty dirty = std::exchange(dirty_, {});
  if (dirty.remembered) {
    for (const auto& [name, source] : sources_) AddKeys(source.remembered, dirty.scope.keys);
  }
  AddWhatNobodyTells(dirty.scope);
  RunAndNotify(dirty.all || always_whole_ ? Merge(*this) : Merge(*this, std::move(dirty.scope)));
}

void ObjectCatalog::RunAndNotify(Merge merge) {
  merge.Run();
  Before before = Take(merge.TakeOutcome(), merge.scope());
  merge.AddUnsettled(before.changed, dirty_.scope.keys);
  const std::vector<ObjectKey> ended = DropEnded();
  std::set<ObjectKey> all;
  if (merge.scope() == nullptr) {
    AddKeys(entries_, all);
    AddKeys(unknown_, all);
    pending_ = {};
  } else if (!pending_.keys.empty() || !pending_.uids.empty()) {
    for (const ObjectKey& key : merge.scope()->keys) pending_.keys.erase(key);
    for (const PodUid& uid : merge.scope()->uids) pending_.uids.erase(uid);
  }
  const std::vector<ObjectChange> changes = ChangesSince(
      before.entries, before.unknown, merge.scope() == nullptr ? all : merge.scope()->keys);
  NoteWhoIsWaitedFor();
  Notify(changes);
  merge.AddRenamed(dirty_.scope.keys);
  NotifyEnded(ended);
}

void ObjectCatalog::NotifyEnded(const std::vector<ObjectKey>& ended) const {
  for (const ObjectKey& key : ended) {
    if (ended_listener_) ended_listener_(key);
  }
}

ObjectCatalog::Before ObjectCatalog::Take(Outcome outcome, const Scope* scope) {
  Before before;
  const std::set<ObjectKey>* const keys = scope == nullptr ? nullptr : &scope->keys;
  TakeEnded(outcome, scope);
  TakeConflicts(outcome, scope);
  TakeWaits(outcome, scope);
  before.entries = Exchange(entries_, outcome.entries, keys);
  before.unknown = Exchange(unknown_, outcome.unknown, keys);
  const std::map<ObjectKey, ObjectOrigin> refused = outcome.refused;
  if (Exchange(refused_, outcome.refused, keys) != refused) ++refused_version_;
  Exchange(waiting_, outcome.waiting, keys);
  ExchangeKeys(wait_for_uid_, std::move(outcome.wait_for_uid), keys);
  ExchangeKeys(refused_while_bound_, std::move(outcome.refused_while_bound), keys);
  if (scope == nullptr) {
    replaced_by_command_.clear();
  } else {
    for (const PodUid& uid : scope->uids) replaced_by_command_.erase(uid);
  }
  replaced_by_command_.merge(outcome.replaced_by_command);
  Reindex(scope, before.entries, before.changed);
  return before;
}

void ObjectCatalog::TakeWaits(Outcome& outcome, const Scope* scope) {
  const std::map<ObjectKey, std::set<ObjectKey>> waits = outcome.waits;
  const std::map<ObjectKey, std::set<ObjectKey>> before =
      Exchange(waits_, outcome.waits, scope == nullptr ? nullptr : &scope->keys);
  for (const auto& [pod, others] : before) {
    for (const ObjectKey& other : others) {
      const auto found = waited_for_.find(other);
      found->second.erase(pod);
      if (found->second.empty()) waited_for_.erase(found);
    }
  }
  for (const auto& [pod, others] : waits) {
    for (const ObjectKey& other : others) waited_for_[other].insert(pod);
  }
}

void ObjectCatalog::TakeConflicts(Outcome& outcome, const Scope* scope) {
  for (auto& [name, source] : sources_) {
    if (scope == nullptr) {
      source.conflicts.clear();
    } else {
      for (const ObjectKey& key : scope->keys) source.conflicts.erase(key);
    }
    source.conflicts.merge(outcome.conflicts[&source]);
  }
}

void ObjectCatalog::TakeEnded(const Outcome& outcome, const Scope* scope) {
  const auto look_at = [&](const ObjectKey& key) {
    if (ended_.contains(key) && !outcome.ended_and_there.contains(key)) {
      ended_and_gone_.insert(key);
    } else {
      ended_and_gone_.erase(key);
    }
  };
  if (scope == nullptr) {
    for (const auto& [key, ended] : ended_) look_at(key);
  } else {
    for (const ObjectKey& key : scope->keys) look_at(key);
  }
}

// Who has which uid and which name, and what is remembered for no longer than until the next list.
void ObjectCatalog::Reindex(const Scope* scope, const Entries& entries_before, Scope& changed) {
  std::set<ObjectKey> all;
  if (scope == nullptr) {
    AddKeys(entries_, all);
    AddKeys(entries_before, all);
    AddKeys(unknown_, all);
    AddKeys(waiting_, all);
    AddKeys(named_by_, all);
    for (const auto& [name, source] : sources_) AddKeys(source.remembered, all);
  }
  for (const auto& [key, entry] : entries_before) {
    const auto of_uid = pods_by_uid_.find(UidOfPod(*entry.object));
    if (of_uid != pods_by_uid_.end() && of_uid->second == key) pods_by_uid_.erase(of_uid);
  }
  for (const ObjectKey& key : scope == nullptr ? all : scope->keys) {
    work_.Add();
    const Entry* const entry = FindEntry(key);
    const auto before = entries_before.find(key);
    const ObjectPtr was = before == entries_before.end() ? nullptr : before->second.object;
    const ObjectPtr is = entry == nullptr ? nullptr : entry->object;
    if (is != nullptr && !UidOfPod(*is).empty()) pods_by_uid_[UidOfPod(*is)] = key;
    const bool is_same_pod = key.kind != ObjectKind::kPod || is == was;
    if (NameAnew(key) || !is_same_pod) {
      changed.keys.insert(key);
      if (was != nullptr) changed.uids.insert(UidOfPod(*was));
      if (is != nullptr) changed.uids.insert(UidOfPod(*is));
    }
    for (auto& [name, source] : sources_) NoteSettled(source, key);
  }
  changed.uids.erase(PodUid());
}

// True if another one has the name now.
bool ObjectCatalog::NameAnew(const ObjectKey& key) {
  std::optional<ObjectOrigin> named_by;
  if (const Entry* entry = FindEntry(key)) named_by = entry->standing.origin;
  if (const auto at = unknown_.find(key); at != unknown_.end()) named_by = at->second.origin;
  if (const auto at = waiting_.find(key); at != waiting_.end()) named_by = at->second.origin;
  const auto before = named_by_.find(key);
  if (!named_by) return named_by_.erase(key) > 0;
  const bool is_changed = before == named_by_.end() || before->second != *named_by;
  named_by_.insert_or_assign(key, *std::move(named_by));
  return is_changed;
}

std::vector<ObjectKey> ObjectCatalog::DropEnded() {
  // A source whose list is being taken over may have in it what is not in the view yet.
  if (has_untold_) return {};
  const bool in_order = std::all_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source.second.complete && source.second.incomplete_because.empty();
  });
  if (sources_.empty() || !in_order) return {};
  const std::set<ObjectKey> gone = std::exchange(ended_and_gone_, {});
  for (const ObjectKey& key : gone) {
    // Or it would be Missing as soon as nobody knows of the command any more.
    for (auto& [name, source] : sources_) ForgetEnded(source, key, ended_.at(key));
    ended_.erase(key);
  }
  return {gone.begin(), gone.end()};
}

}  // namespace volumed
