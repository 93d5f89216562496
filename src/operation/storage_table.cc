#include "operation/storage_table.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "os/kernel_requests.h"

namespace volumed {

bool IsExclusive(StorageUse use) {
  return use == StorageUse::kRaw || use == StorageUse::kFormat || use == StorageUse::kReclaim;
}

namespace {

bool MayShare(StorageUse use) { return use == StorageUse::kKnown || use == StorageUse::kShared; }

bool Meets(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& key) {
    return std::binary_search(b.begin(), b.end(), key);
  });
}

// The wanted storage lies inside the other one, and is not the same.
bool Contains(const StorageIdentity& there, const StorageIdentity& wanted) {
  return Meets(there.own, wanted.within) && !Meets(wanted.own, there.own) &&
         !Meets(wanted.own, there.within);
}

// The other one is a directory in which the file of a loop device lies. What is that file itself,
// or what the device is made of, is another matter: no filesystem orders who writes to both.
bool HoldsFileOnly(const StorageIdentity& other, const StorageIdentity& device) {
  if (device.type != FileType::kBlockDevice || !Contains(other, device) ||
      Meets(other.own, device.made_of)) {
    return false;
  }
  return std::any_of(device.within.begin(), device.within.end(),
                     [&other](const std::string& key) { return Meets(KeysAbove(key), other.own); });
}

void AddKeys(const std::vector<std::string>& added, std::vector<std::string>& keys) {
  if (added.empty()) return;
  std::vector<std::string> both;
  std::set_union(keys.begin(), keys.end(), added.begin(), added.end(), std::back_inserter(both));
  keys = std::move(both);
}

}  // namespace

StorageMeeting Meeting(const StorageIdentity& there, const StorageIdentity& wanted) {
  return {.contains = Contains(there, wanted),
          .holds_file_only = HoldsFileOnly(there, wanted) || HoldsFileOnly(wanted, there),
          .twins = AreTwins(there, wanted)};
}

bool Excludes(const StorageHolder& there, const StorageHolder& wanted, StorageMeeting meeting) {
  const bool same = there.volume == wanted.volume;
  switch (wanted.use) {
    case StorageUse::kKnown:
      return false;
    case StorageUse::kShared:
      if (there.use == StorageUse::kReclaim) return true;
      return !same && IsExclusive(there.use) && !meeting.holds_file_only;
    case StorageUse::kMounted:
      if (there.use == StorageUse::kReclaim) return true;
      // Two superblocks over one storage ruin it, whatever the volumes are called.
      if (there.use == StorageUse::kMounted) return meeting.twins;
      return !same && IsExclusive(there.use);
    case StorageUse::kRaw:
    case StorageUse::kFormat:
      if (there.use == StorageUse::kReclaim) return true;
      // Neither a pod that looks at the node's whole tree (a hostPath of "/") nor a pool's own
      // directory is in the way of the pool's loop devices; nor they in its way, above.
      return !same && there.use != StorageUse::kKnown && !meeting.holds_file_only;
    case StorageUse::kReclaim:
      // What a claim has lies in its own storage; a pod that looks at the node's whole tree (a
      // hostPath of "/") has no part of it.
      if (meeting.contains && !there.persistent) return false;
      // A set-up that was begun before the agent ended was refused for the reclaim: that had asked
      // it else, and would not have begun. Now neither has to wait for the other one.
      if (wanted.was_begun && there.was_begun && there.use == StorageUse::kShared) return false;
      // Whoever named it before kept the reclaim from beginning. What was begun may only be
      // followed by the same, so that one would wait for it, and it for that one.
      if (wanted.was_begun && there.only_names) return false;
      return !same || (there.use != StorageUse::kKnown && there.use != StorageUse::kReclaim);
  }
  __builtin_unreachable();
}

StorageTable::Index& StorageTable::IndexOf(StorageUse use) {
  if (use == StorageUse::kMounted) return mounted_;
  return IsExclusive(use) ? exclusive_ : others_;
}

void StorageTable::Add(const StorageHolder& holder, const StorageIdentity& identity) {
  Entry entry{holder, identity, GivenTo(holder.id)};
  AddKeys(entry.given.own, entry.identity.own);
  AddKeys(entry.given.within, entry.identity.within);
  Remove(holder.id);
  ForgetExpected(holder.id);
  Index& index = IndexOf(holder.use);
  for (const std::string& key : entry.identity.own) index.own[key].insert(holder.id);
  for (const std::string& key : entry.identity.within) index.within[key].insert(holder.id);
  entries_[holder.id] = std::move(entry);
}

GivenStorage StorageTable::GivenTo(const std::string& id) const {
  if (const auto found = entries_.find(id); found != entries_.end()) return found->second.given;
  for (const ExpectedOnes* expected : {&expected_, &expected_sharing_}) {
    if (const auto found = expected->find(id); found != expected->end()) return found->second.given;
  }
  return {};
}

GivenStorage StorageTable::StorageOf(const std::string& id) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? GivenStorage() : Had(found->second);
}

GivenStorage StorageTable::Had(const Entry& entry) {
  GivenStorage storage{entry.identity.own, entry.identity.within, entry.given.objects};
  const auto add = [&storage](const StorageObject& object) {
    const bool is_new =
        std::find(storage.objects.begin(), storage.objects.end(), object) == storage.objects.end();
    if (object.inode != 0 && is_new) storage.objects.push_back(object);
  };
  add(entry.identity.object);
  for (const StorageFile& file : entry.identity.files) add(file.object);
  return storage;
}

std::vector<HeldObject> StorageTable::HeldObjects(const StorageHolder& holder,
                                                  const StorageObject& place) const {
  std::vector<HeldObject> held;
  // Many pods have the same few directories of the node.
  std::set<std::tuple<std::string, uint64_t, std::string, bool>> seen;
  const MutexLock lock(mu_);
  for (const auto& [id, entry] : entries_) {
    if (id == holder.id || !Excludes(entry.holder, holder, {})) continue;
    for (StorageObject& object : Had(entry).objects) {
      if (!MayShareFilesystem(object, place)) continue;
      if (!seen.insert({object.fs_uuid, object.inode, object.handle, entry.holder.persistent})
               .second) {
        continue;
      }
      held.push_back({entry.holder, std::move(object)});
    }
  }
  return held;
}

void StorageTable::Remove(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  const auto drop = [&id](std::unordered_map<std::string, Ids>& index, const std::string& key) {
    const auto at = index.find(key);
    if (at == index.end()) return;
    at->second.erase(id);
    if (at->second.empty()) index.erase(at);
  };
  Index& index = IndexOf(found->second.holder.use);
  for (const std::string& key : found->second.identity.own) drop(index.own, key);
  for (const std::string& key : found->second.identity.within) drop(index.within, key);
  entries_.erase(found);
}

void StorageTable::Collect(const Index& index, const StorageIdentity& identity, Ids& ids) const {
  const auto add = [&ids](const std::unordered_map<std::string, Ids>& keys,
                          const std::string& key) {
    const auto found = keys.find(key);
    if (found != keys.end()) ids.insert(found->second.begin(), found->second.end());
  };
  for (const std::string& key : identity.own) {
    add(index.own, key);
    add(index.within, key);
  }
  for (const std::string& key : identity.within) add(index.own, key);
}

StorageTable::Ids StorageTable::CollectAll(const StorageIdentity& identity) const {
  Ids ids;
  for (const Index* index : {&exclusive_, &mounted_, &others_}) Collect(*index, identity, ids);
  return ids;
}

std::optional<StorageHolder> StorageTable::ExcludingLocked(const StorageHolder& holder,
                                                           const StorageIdentity& identity) const {
  Ids ids;
  Collect(exclusive_, identity, ids);
  if (!MayShare(holder.use)) Collect(mounted_, identity, ids);
  if (IsExclusive(holder.use)) Collect(others_, identity, ids);
  for (const std::string& id : ids) {
    if (id == holder.id) continue;
    const Entry& there = entries_.at(id);
    if (Excludes(there.holder, holder, Meeting(there.identity, identity))) return there.holder;
  }
  if (!IsExclusive(holder.use)) return std::nullopt;
  // At those who share nobody looks for a format; but what they were given is known.
  for (const auto& [id, known] : expected_sharing_) {
    const StorageIdentity given{.own = known.given.own, .within = known.given.within};
    if (id == holder.id || !Overlap(given, identity)) continue;
    if (Excludes(known.holder, holder, Meeting(given, identity))) return known.holder;
  }
  return std::nullopt;
}

std::optional<StorageHolder> StorageTable::FindExcluding(const StorageHolder& holder,
                                                         const StorageIdentity& identity) const {
  const MutexLock lock(mu_);
  return ExcludingLocked(holder, identity);
}

std::optional<StorageHolder> StorageTable::Take(const StorageHolder& holder,
                                                const StorageIdentity& identity) {
  const MutexLock lock(mu_);
  if (auto there = ExcludingLocked(holder, identity)) return there;
  Add(holder, identity);
  return std::nullopt;
}

std::optional<StorageHolder> StorageTable::TakeNew(const StorageHolder& holder,
                                                   const StorageIdentity& identity) {
  const MutexLock lock(mu_);
  for (const std::string& id : CollectAll(identity)) {
    const StorageHolder& there = entries_.at(id).holder;
    if (there.volume != holder.volume) return there;
  }
  Add(holder, identity);
  return std::nullopt;
}

void StorageTable::Release(const std::string& id) {
  const MutexLock lock(mu_);
  Remove(id);
  ForgetExpected(id);
}

void StorageTable::ReleaseKnown(const std::function<bool(const StorageHolder&)>& is_gone) {
  const MutexLock lock(mu_);
  Ids gone;
  for (const auto& [id, entry] : entries_) {
    if (entry.holder.use == StorageUse::kKnown && is_gone(entry.holder)) gone.insert(id);
  }
  for (const std::string& id : gone) Remove(id);
}

std::optional<StorageHolder> StorageTable::Find(const std::string& prefix,
                                                const StorageIdentity& identity) const {
  const MutexLock lock(mu_);
  for (const std::string& id : CollectAll(identity)) {
    if (id.starts_with(prefix)) return entries_.at(id).holder;
  }
  return std::nullopt;
}

std::set<std::string> StorageTable::VolumesOf(const std::string& prefix,
                                              const StorageIdentity& identity) const {
  std::set<std::string> volumes;
  const MutexLock lock(mu_);
  for (const std::string& id : CollectAll(identity)) {
    if (id.starts_with(prefix)) volumes.insert(entries_.at(id).holder.volume);
  }
  return volumes;
}

std::vector<StorageTable::Emptied> StorageTable::EmptiedOf(const std::string& prefix) const {
  std::vector<Emptied> emptied;
  const MutexLock lock(mu_);
  for (const auto& [key, ids] : exclusive_.own) {
    const auto beside = others_.own.find(key);
    if (beside == others_.own.end()) continue;
    for (const std::string& by : ids) {
      const StorageHolder& emptier = entries_.at(by).holder;
      if (emptier.use != StorageUse::kReclaim) continue;
      for (const std::string& id : beside->second) {
        const StorageHolder& of = entries_.at(id).holder;
        if (id.starts_with(prefix) && of.volume != emptier.volume) emptied.push_back({of, emptier});
      }
    }
  }
  return emptied;
}

void StorageTable::Mounted(const std::string& id) {
  const MutexLock lock(mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry entry = found->second;
  entry.holder.use = StorageUse::kMounted;
  Add(entry.holder, entry.identity);
}

bool StorageTable::Has(const std::string& id, StorageUse use) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.holder.use == use;
}

void StorageTable::ForgetExpected(const std::string& id) {
  expected_sharing_.erase(id);
  expected_.erase(id);
}

void StorageTable::Expect(KnownStorage known) {
  const MutexLock lock(mu_);
  const std::string id = known.holder.id;
  if (entries_.contains(id)) return;
  ForgetExpected(id);
  ExpectedOnes& expected = MayShare(known.holder.use) ? expected_sharing_ : expected_;
  expected[id] = std::move(known);
}

std::vector<KnownStorage> StorageTable::Expected(StorageUse use) const {
  std::vector<KnownStorage> wanted;
  const MutexLock lock(mu_);
  for (const auto& [id, entry] : expected_) {
    const bool are_two_mounts =
        use == StorageUse::kMounted && entry.holder.use == StorageUse::kMounted;
    const bool excludes = IsExclusive(use) || IsExclusive(entry.holder.use);
    if (excludes || are_two_mounts) wanted.push_back(entry);
  }
  if (!IsExclusive(use)) return wanted;
  for (const auto& [id, entry] : expected_sharing_) wanted.push_back(entry);
  return wanted;
}

void StorageTable::Identified(const std::string& id, const StorageIdentity& identity) {
  const MutexLock lock(mu_);
  for (const ExpectedOnes* expected : {&expected_, &expected_sharing_}) {
    const auto found = expected->find(id);
    if (found == expected->end()) continue;
    const StorageHolder holder = found->second.holder;
    return Add(holder, identity);
  }
}

}  // namespace volumed
