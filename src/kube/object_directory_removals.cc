// ObjectDirectory: how objects leave it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>
#include <vector>

#include "kube/object_directory.h"
#include "kube/object_files.h"

namespace volumed {

Status ObjectDirectory::RemoveFileLocked(const std::string& file) const {
  const std::string path = directory_ + "/" + file;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error::FromErrno(errno, "remove " + path, Outcome::kNotApplied);
  }
  const Status synced = SyncDirectory(directory_);
  if (!synced.ok()) return synced.error().AsMaybeApplied();
  return OkStatus();
}

void ObjectDirectory::Remove(const ObjectKey& key, uint64_t number) {
  MutexLock lock(mu_);
  RemoveLocked(key, number);
}

void ObjectDirectory::RemoveLocked(const ObjectKey& key, uint64_t number) {
  ended_[key] = std::max(ended_[key], number);
  changed_.insert(key);
  std::set<std::string> files;
  const auto stored = stored_.find(key);
  if (stored != stored_.end() && stored->second.number < number) {
    files.insert(stored->second.file);
    stored_.erase(stored);
  }
  // What a damaged file holds is of an earlier command: a later one would have replaced it.
  for (const auto& [file, damaged] : damaged_) {
    if (damaged.key == key) files.insert(file);
  }
  for (const std::string& file : files) RemoveEndedLocked(file, key);
  const bool was_lost = lost_.erase(key) > 0;
  if ((was_lost && loaded_) || !files.empty()) DeliverLocked();
}

void ObjectDirectory::RemoveEndedLocked(const std::string& file, const ObjectKey& key) {
  ForgetDamageLocked(file);
  const Status removed = RemoveFileLocked(file);
  if (removed.ok()) return;
  RemoveLaterLocked(file, ToString(key) + " was deleted, but its file could not be removed: " +
                              removed.error().message() + "; this is retried");
}

void ObjectDirectory::ForgetDamageLocked(const std::string& file) {
  if (damaged_.erase(file) == 0) return;
  changed_files_.insert(file);
  std::erase_if(problems_, [path = directory_ + "/" + file](const DecodeProblem& problem) {
    return problem.file == path;
  });
}

std::string ObjectDirectory::RemoveStoredLocked(std::map<ObjectKey, Stored>::iterator stored) {
  const std::string object = ToString(stored->first);
  const std::string file = stored->second.file;
  changed_.insert(stored->first);
  stored_.erase(stored);
  ForgetDamageLocked(file);
  const Status removed = RemoveFileLocked(file);
  if (removed.ok()) {
    RetryRemovalsLocked();
    return "";
  }
  RemoveLaterLocked(file, object + " was deleted, but its file could not be removed: " +
                              removed.error().message() +
                              "; this is retried, and until then a restart of the agent brings it "
                              "back");
  return unremoved_.at(file);
}

Result<std::string> ObjectDirectory::DeletePod(const PodUid& uid, bool successor_too) {
  MutexLock lock(mu_);
  const auto stored = std::find_if(stored_.begin(), stored_.end(), [&](const auto& entry) {
    const Pod* pod = std::get_if<Pod>(entry.second.object.get());
    return pod != nullptr &&
           (pod->uid() == uid || (successor_too && entry.second.replaces.contains(uid)));
  });
  std::vector<ObjectKey> lost;
  for (const auto& [key, known] : lost_) {
    if (key.kind == ObjectKind::kPod && known.uid == uid.str()) lost.push_back(key);
  }
  for (const ObjectKey& key : lost) {
    lost_.erase(key);
    changed_.insert(key);
  }
  const bool was_lost = !lost.empty();
  if (was_lost && stored == stored_.end()) {
    DeliverLocked();
    return std::string();
  }
  if (stored == stored_.end()) {
    return Error::NotApplied(Code::kNotFound, "no pod with uid " + uid.str() + " was applied here");
  }
  std::string told = RemoveStoredLocked(stored);
  DeliverLocked();
  return told;
}

void ObjectDirectory::RemoveLaterLocked(const std::string& file, std::string told) {
  unremoved_[file] = std::move(told);
  changed_files_.insert(file);
  ArmRemovalLocked();
}

// All files share one disk, and so one back-off.
void ObjectDirectory::ArmRemovalLocked() {
  if (unremoved_.empty() || removal_armed_) return;
  removal_armed_ = true;
  scheduler_.PostAfter(removal_backoff_.RecordFailure("files", "remove", ""),
                       [this] { scheduler_.RunBlocking([this] { RetryRemovals(); }); });
}

bool ObjectDirectory::RetryRemovalsLocked() {
  bool any = false;
  for (auto it = unremoved_.begin(); it != unremoved_.end();) {
    const Status removed = RemoveFileLocked(it->first);
    if (removed.ok()) {
      changed_files_.insert(it->first);
      it = unremoved_.erase(it);
      any = true;
    } else {
      ++it;
    }
  }
  if (unremoved_.empty()) removal_backoff_.Reset("files");
  return any;
}

void ObjectDirectory::RetryRemovals() {
  MutexLock lock(mu_);
  removal_armed_ = false;
  if (RetryRemovalsLocked()) DeliverLocked();
  ArmRemovalLocked();
}

}  // namespace volumed
