// ObjectDirectory: how objects leave it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "kube/object_directory.h"
#include "kube/object_files.h"

namespace volumed {

std::vector<Status> ObjectDirectory::RemoveFilesLocked(
    const std::vector<std::string>& files) const {
  std::vector<Status> removed;
  removed.reserve(files.size());
  for (const std::string& file : files) {
    const std::string path = directory_ + "/" + file;
    removed.push_back(::unlink(path.c_str()) != 0 && errno != ENOENT
                          ? Status(Error::FromErrno(errno, "remove " + path, Outcome::kNotApplied))
                          : OkStatus());
  }
  if (std::none_of(removed.begin(), removed.end(), [](const Status& one) { return one.ok(); })) {
    return removed;
  }
  ++removal_syncs_;
  if (const Status synced = SyncDirectory(directory_); !synced.ok()) {
    for (Status& one : removed) {
      if (one.ok()) one = synced.error().AsMaybeApplied();
    }
  }
  return removed;
}

void ObjectDirectory::Remove(const ObjectKey& key, uint64_t number) { RemoveAll({{key, number}}); }

void ObjectDirectory::RemoveAll(const std::vector<std::pair<ObjectKey, uint64_t>>& commands) {
  MutexLock lock(mu_);
  RemoveAllLocked(commands);
}

void ObjectDirectory::RemoveAllLocked(const std::vector<std::pair<ObjectKey, uint64_t>>& commands) {
  std::vector<EndedFile> files;
  bool is_news = false;
  for (const auto& [key, number] : commands) {
    std::vector<EndedFile> ended = TakeEndedLocked(key, number);
    std::move(ended.begin(), ended.end(), std::back_inserter(files));
    const bool was_lost = lost_.erase(key) > 0;
    is_news = is_news || (was_lost && loaded_);
  }
  is_news = is_news || !files.empty();
  RemoveEndedLocked(std::move(files));
  if (is_news) DeliverLocked();
}

void ObjectDirectory::RemoveEndedLocked(std::vector<EndedFile> files) {
  std::vector<std::string> names;
  for (const EndedFile& ended : files) {
    ForgetDamageLocked(ended.file);
    names.push_back(ended.file);
  }
  const std::vector<Status> removed = RemoveFilesLocked(names);
  for (size_t i = 0; i < names.size(); ++i) {
    if (removed[i].ok()) continue;
    EndedFile& ended = files[i];
    if (ended.key.kind == ObjectKind::kPod) ended.stored.reset();
    RemoveLaterLocked(names[i],
                      {ToString(ended.key) + " was deleted, but its file could not be removed: " +
                           removed[i].error().message() + "; this is retried",
                       std::move(ended.stored)});
  }
}

std::vector<ObjectDirectory::EndedFile> ObjectDirectory::TakeEndedLocked(const ObjectKey& key,
                                                                         uint64_t number) {
  ended_[key] = std::max(ended_[key], number);
  changed_.insert(key);
  std::vector<EndedFile> files;
  const auto stored = stored_.find(key);
  if (stored != stored_.end() && stored->second.number < number) {
    const std::string file = stored->second.file;
    files.push_back({file, key, std::move(stored->second)});
    stored_.erase(stored);
  }
  const std::string taken = files.empty() ? "" : files.front().file;
  // What a damaged file holds is of an earlier command: a later one would have replaced it.
  for (const auto& [file, damaged] : damaged_) {
    if (damaged.key == key && file != taken) files.push_back({file, key});
  }
  return files;
}

void ObjectDirectory::ForgetDamageLocked(const std::string& file) {
  if (damaged_.erase(file) == 0) return;
  changed_files_.insert(file);
  std::erase_if(problems_, [path = directory_ + "/" + file](const DecodeProblem& problem) {
    return problem.file == path;
  });
}

std::string ObjectDirectory::NoteRemovedLocked(const std::string& file, const ObjectKey& key,
                                               const Status& removed) {
  if (removed.ok()) return "";
  RemoveLaterLocked(file, {ToString(key) + " was deleted, but its file could not be removed: " +
                           removed.error().message() +
                           "; this is retried, and until then a restart of the agent brings it "
                           "back"});
  return unremoved_.at(file).told;
}

Result<std::string> ObjectDirectory::DeletePod(const PodUid& uid, bool successor_too) {
  return std::move(DeletePods({{uid, successor_too}}).front());
}

// One walk over what is stored, however many are to go.
std::map<PodUid, ObjectKey> ObjectDirectory::StoredPodsLocked(
    const std::vector<PodToDelete>& pods) const {
  std::map<PodUid, bool> asked;
  for (const PodToDelete& pod : pods) asked[pod.uid] = asked[pod.uid] || pod.successor_too;
  std::map<PodUid, ObjectKey> found;
  for (const auto& [key, stored] : stored_) {
    const Pod* pod = std::get_if<Pod>(stored.object.get());
    if (pod == nullptr) continue;
    if (asked.contains(pod->uid())) found.emplace(pod->uid(), key);
    for (const PodUid& replaced : stored.replaces) {
      const auto at = asked.find(replaced);
      if (at != asked.end() && at->second) found.emplace(replaced, key);
    }
  }
  return found;
}

bool ObjectDirectory::ForgetLostPodsLocked(const std::set<PodUid>& pods) {
  std::vector<ObjectKey> lost;
  for (const auto& [key, known] : lost_) {
    if (key.kind == ObjectKind::kPod && pods.contains(PodUid(known.uid))) lost.push_back(key);
  }
  for (const ObjectKey& key : lost) {
    lost_.erase(key);
    changed_.insert(key);
  }
  return !lost.empty();
}

std::vector<Result<std::string>> ObjectDirectory::DeletePods(const std::vector<PodToDelete>& pods) {
  MutexLock lock(mu_);
  const std::map<PodUid, ObjectKey> found = StoredPodsLocked(pods);
  std::set<PodUid> lost;
  for (const auto& [key, known] : lost_) {
    if (key.kind == ObjectKind::kPod) lost.insert(PodUid(known.uid));
  }
  std::set<PodUid> uids;
  std::map<ObjectKey, std::string> files;
  for (const PodToDelete& pod : pods) {
    uids.insert(pod.uid);
    const auto key = found.find(pod.uid);
    if (key != found.end()) files.emplace(key->second, stored_.at(key->second).file);
  }
  const bool was_lost = ForgetLostPodsLocked(uids);
  std::vector<std::string> to_remove;
  for (const auto& [key, file] : files) {
    changed_.insert(key);
    stored_.erase(key);
    ForgetDamageLocked(file);
    to_remove.push_back(file);
  }
  const std::vector<Status> removed = RemoveFilesLocked(to_remove);
  std::map<ObjectKey, std::string> told;
  size_t at = 0;
  bool any_removed = false;
  for (const auto& [key, file] : files) {
    any_removed = any_removed || removed[at].ok();
    told[key] = NoteRemovedLocked(file, key, removed[at++]);
  }
  // The disk takes removals: those that it refused before are tried too.
  if (any_removed) RetryRemovalsLocked();
  if (was_lost || !files.empty()) DeliverLocked();
  std::vector<Result<std::string>> answers;
  for (const PodToDelete& pod : pods) {
    const auto key = found.find(pod.uid);
    if (key != found.end()) {
      answers.emplace_back(told.at(key->second));
    } else if (lost.contains(pod.uid)) {
      answers.emplace_back(std::string());
    } else {
      answers.emplace_back(Error::NotApplied(
          Code::kNotFound, "no pod with uid " + pod.uid.str() + " was applied here"));
    }
  }
  return answers;
}

void ObjectDirectory::RemoveLaterLocked(const std::string& file, Unremoved unremoved) {
  unremoved_[file] = std::move(unremoved);
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
  if (unremoved_.empty()) return false;
  std::vector<std::string> files;
  for (const auto& [file, unremoved] : unremoved_) files.push_back(file);
  const std::vector<Status> removed = RemoveFilesLocked(files);
  bool any = false;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!removed[i].ok()) continue;
    changed_files_.insert(files[i]);
    const auto gone = unremoved_.extract(files[i]);
    if (const auto& listed = gone.mapped().listed) changed_.insert(KeyOf(*listed->object));
    any = true;
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
