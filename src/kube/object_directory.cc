#include "kube/object_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "base/printable_text.h"
#include "base/random.h"
#include "kube/object_files.h"
#include "kube/object_finder.h"
#include "kube/pod_facts.h"
#include "kube/static_pod.h"
#include "kube/stored_object.h"
#include "kube/validate_update.h"

namespace volumed {
namespace {

constexpr std::string_view kQuarantine = "quarantine";

Error Failed(std::string_view what, const std::string& path, int sys_errno) {
  return Error::FromErrno(sys_errno, std::string(what) + " " + path, Outcome::kNotApplied);
}

bool IsReplacedBy(const Object& before, const std::set<PodUid>& replaces) {
  return replaces.contains(UidOfPod(before));
}

}  // namespace

ObjectDirectory::ObjectDirectory(std::string directory, NodeName node_name, Scheduler& scheduler,
                                 std::string version, RoomCheck has_room)
    : directory_(std::move(directory)),
      node_name_(std::move(node_name)),
      version_(std::move(version)),
      scheduler_(scheduler),
      has_room_(std::move(has_room)),
      removal_backoff_(scheduler.clock()) {}

void ObjectDirectory::Remember(SourceMemory memory) {
  MutexLock lock(mu_);
  for (KnownObject& object : memory.objects) {
    known_files_[object.file] = object.key;
    if (!object.is_ending) lost_[object.key] = std::move(object);
  }
}

void ObjectDirectory::Start(ObjectListener listener) {
  listener_ = std::make_shared<ObjectListener>(std::move(listener));
  scheduler_.RunBlocking([this] { LoadAndDeliver(/*accept=*/false); });
}

void ObjectDirectory::Forget() {
  scheduler_.RunBlocking([this] { LoadAndDeliver(/*accept=*/false); });
}

void ObjectDirectory::Accept() {
  scheduler_.RunBlocking([this] { LoadAndDeliver(/*accept=*/true); });
}

void ObjectDirectory::LoadAndDeliver(bool accept) {
  MutexLock lock(mu_);
  has_list_ = false;
  problems_.clear();
  const Status status = LoadLocked();
  if (!status.ok()) problems_.push_back({directory_, -1, "", "", status.error().message()});
  if (status.ok() && accept) lost_.clear();
  DeliverLocked();
}

Status ObjectDirectory::LoadLocked() {
  RETURN_IF_ERROR(MakePrivateDirectory(directory_));
  RetryRemovalsLocked();
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListObjectFiles(directory_));
  const std::map<ObjectKey, Stored> before = std::exchange(stored_, {});
  damaged_.clear();
  for (const std::string& file : files) {
    if (!unremoved_.contains(file)) LoadFile(file, before);
  }
  LookIntoQuarantine();
  NoteLostLocked(before);
  loaded_ = true;
  return OkStatus();
}

void ObjectDirectory::NoteLostLocked(const std::map<ObjectKey, Stored>& before) {
  for (const auto& [key, stored] : before) {
    if (unremoved_.contains(stored.file)) continue;  // a command has ended it
    lost_[key] = {key, MetaOf(*stored.object).uid, directory_ + "/" + stored.file, stored.object};
  }
  for (auto lost = lost_.begin(); lost != lost_.end();) {
    lost = HasFileLocked(lost->second) ? lost_.erase(lost) : std::next(lost);
  }
}

// A pod of a node that was called otherwise is known by today's name, and stored by its own.
bool ObjectDirectory::HasFileLocked(const KnownObject& object) const {
  if (stored_.contains(object.key)) return true;
  const auto is_it = [&](const auto& stored) {
    return object.key.kind == ObjectKind::kPod &&
           UidOfPod(*stored.second.object).str() == object.uid;
  };
  const auto is_damaged = [&](const auto& damaged) {
    return damaged.second.key == object.key || directory_ + "/" + damaged.first == object.file;
  };
  return std::any_of(stored_.begin(), stored_.end(), is_it) ||
         std::any_of(damaged_.begin(), damaged_.end(), is_damaged);
}

// A file that cannot be read, or not be understood, says nothing about the others.
void ObjectDirectory::LoadFile(const std::string& file, const std::map<ObjectKey, Stored>& before) {
  const std::string path = directory_ + "/" + file;
  const auto load = [&]() -> Result<StoredObject> {
    ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
    ASSIGN_OR_RETURN(StoredObject stored, DecodeStoredObject(path, bytes));
    if (ObjectFileName(KeyOf(stored.object)) == file) return stored;
    return Error::NotApplied(Code::kDataLoss, "holds " + ToString(KeyOf(stored.object)) +
                                                  ", which is not the object of the file");
  };
  Result<StoredObject> loaded = load();
  if (loaded.ok()) {
    const ObjectKey key = KeyOf(loaded->object);
    Stored stored{std::make_shared<const Object>(std::move(loaded->object)), file, loaded->number,
                  std::move(loaded->replaces)};
    if (const auto ended = ended_.find(key);
        ended != ended_.end() && stored.number < ended->second) {
      return RemoveEndedLocked({{file, key, std::move(stored)}});
    }
    stored_[key] = std::move(stored);
    return;
  }
  const std::string why = PrintableText(loaded.error().message());
  std::optional<ObjectKey> key = KeyOfObjectFile(file);
  if (const auto known = known_files_.find(path); !key && known != known_files_.end()) {
    key = known->second;
  }
  problems_.push_back({PrintableText(path), -1, key ? ToString(*key) : "", "",
                       why + "; the file stays as it is, and what depends on its object too, until "
                             "the object is deleted or applied anew"});
  damaged_[file] = {key, why};
  // What was good a moment ago is not bad now because its file is.
  if (!key) return;
  if (const auto good = before.find(*key); good != before.end()) stored_[*key] = good->second;
}

// Earlier programs have moved files that they could not read.
void ObjectDirectory::LookIntoQuarantine() {
  const std::string quarantine = directory_ + "/" + std::string(kQuarantine);
  const Result<std::vector<std::string>> files = ListObjectFiles(quarantine);
  if (!files.ok()) {
    if (files.error().code() == Code::kNotFound) return;
    problems_.push_back({quarantine, -1, "", "", files.error().message()});
    return;
  }
  for (const std::string& file : *files) {
    const std::optional<ObjectKey> key = KeyOfObjectFile(file);
    problems_.push_back({quarantine + "/" + file, -1, key ? ToString(*key) : "", "",
                         "was set aside by an earlier program, which could not read it; it is not "
                         "used: apply its object anew and remove the file"});
  }
}

Status ObjectDirectory::CheckUidLocked(const ObjectKey& key, const Pod& pod) const {
  for (const auto& [old_key, stored] : stored_) {
    const Pod* old = std::get_if<Pod>(stored.object.get());
    if (old == nullptr || old->metadata.uid != pod.metadata.uid || old_key == key) continue;
    return Error::NotApplied(Code::kAlreadyExists, ToString(key) + " has the uid of " +
                                                       ToString(old_key) + ", " + pod.metadata.uid);
  }
  return OkStatus();
}

Status ObjectDirectory::CheckUpdateLocked(const ObjectKey& key, const Object& now,
                                          const ApplyCommand& command) const {
  const ObjectPtr before = FindOrLostLocked(key);
  if (before == nullptr) return OkStatus();
  const std::string& uid = MetaOf(*before).uid;
  const bool identified = key.kind == ObjectKind::kPod || HasUidOnRecord(key.kind);
  if (identified && !uid.empty() && MetaOf(now).uid != uid) return RefuseOtherUid(key, uid);
  const std::vector<UpdateProblem> problems =
      ValidateUpdate(*before, now, command.bound.contains(key));
  if (problems.empty()) return OkStatus();
  return RefuseUpdate(*before, problems, command.replace);
}

Result<std::map<ObjectKey, ObjectDirectory::Stored>> ObjectDirectory::PrepareLocked(
    ApplyCommand command) const {
  std::map<ObjectKey, Stored> next;
  for (Object& object : command.objects) {
    std::set<PodUid> replaces;
    if (Pod* pod = std::get_if<Pod>(&object)) {
      ASSIGN_OR_RETURN(replaces, PreparePodLocked(*pod, command));
    }
    const ObjectKey key = KeyOf(object);
    if (HasUidOnRecord(key.kind)) IdentifyLocked(key, object);
    ObjectPtr before = FindOrLostLocked(key);
    if (before != nullptr && IsReplacedBy(*before, replaces)) before = nullptr;
    if (before != nullptr) RETURN_IF_ERROR(CheckUpdateLocked(key, object, command));
    DateLocked(before.get(), object);
    Stored stored{std::make_shared<const Object>(std::move(object)), ObjectFileName(key),
                  command.number, std::move(replaces)};
    if (!next.emplace(key, std::move(stored)).second) {
      return Error::NotApplied(Code::kInvalidArgument, ToString(key) + " is given twice");
    }
  }
  return next;
}

Result<std::set<PodUid>> ObjectDirectory::PreparePodLocked(Pod& pod,
                                                           const ApplyCommand& command) const {
  const std::string named = pod.metadata.uid;
  RETURN_IF_ERROR(CompletePodLocked(pod, command).With(ToString(KeyOf(Object(pod)))));
  const ObjectKey key = KeyOf(Object(pod));
  const Stored* stored = FindLocked(key);
  std::set<PodUid> replaces = stored == nullptr ? std::set<PodUid>() : stored->replaces;
  for (const PodUid& gone : command.gone) replaces.erase(gone);
  const ObjectPtr known = FindOrLostLocked(key);
  const Pod* before = known == nullptr ? nullptr : &std::get<Pod>(*known);
  const auto on_record = command.pods.find(key);
  const bool is_known = before != nullptr || on_record != command.pods.end();
  const bool is_same = before != nullptr && HaveSameVolumes(*before, pod);
  if (command.replace && is_known && !is_same) {
    const PodUid predecessor = before != nullptr ? before->uid() : on_record->second;
    if (named == predecessor.str()) {
      return Error::NotApplied(Code::kInvalidArgument,
                               ToString(key) + " names the uid of the pod that it is to replace, " +
                                   named + "; leave it out, or name another one");
    }
    if (named.empty()) SetPodUid(pod, NewUuid());
    replaces.insert(predecessor);
  }
  RETURN_IF_ERROR(CheckUidLocked(key, pod));
  return replaces;
}

Status ObjectDirectory::CompletePodLocked(Pod& pod, const ApplyCommand& command) const {
  if (!pod.metadata.uid.empty()) return OkStatus();
  const std::string base_name = pod.metadata.name;
  RETURN_IF_ERROR(ApplyStaticPodDefaults(node_name_, pod));
  // It is the pod that it was, whatever the node was called then.
  for (const auto& [key, stored] : stored_) {
    const Pod* before = std::get_if<Pod>(stored.object.get());
    if (before == nullptr || key.name_space != pod.metadata.name_space) continue;
    if (key.name != pod.metadata.name && StaticPodBaseName(*before) != base_name) continue;
    SetPodUid(pod, before->metadata.uid);
    pod.metadata.name = before->metadata.name;
    return OkStatus();
  }
  const auto on_record = command.pods.find(KeyOf(Object(pod)));
  SetPodUid(pod, on_record == command.pods.end() ? NewUuid() : on_record->second.str());
  return OkStatus();
}

const ObjectDirectory::Stored* ObjectDirectory::FindLocked(const ObjectKey& key) const {
  const auto stored = stored_.find(key);
  return stored == stored_.end() ? nullptr : &stored->second;
}

// What is kept though its file is gone is what it was, for whoever gives it anew.
ObjectPtr ObjectDirectory::FindOrLostLocked(const ObjectKey& key) const {
  if (const Stored* stored = FindLocked(key)) return stored->object;
  const auto lost = lost_.find(key);
  return lost == lost_.end() ? nullptr : lost->second.object;
}

// Source: kubernetes apiserver pkg/registry/rest/create.go@v1.36.2 (FillObjectMetaSystemFields),
// update.go (BeforeUpdate): the time in seconds, which stays as long as the object does.
void ObjectDirectory::DateLocked(const Object* before, Object& object) const {
  std::optional<int64_t>& created = MetaOf(object).creation_unix_millis;
  if (before != nullptr) {
    created = MetaOf(*before).creation_unix_millis;
  } else if (!created) {
    const int64_t now = scheduler_.clock().WallUnixMillis();
    created = now - now % 1000;
  }
}

void ObjectDirectory::IdentifyLocked(const ObjectKey& key, Object& object) const {
  ObjectMeta& metadata = MetaOf(object);
  if (!metadata.uid.empty()) return;
  const auto stored = stored_.find(key);
  if (stored != stored_.end()) metadata.uid = MetaOf(*stored->second.object).uid;
  if (const auto lost = lost_.find(key); metadata.uid.empty() && lost != lost_.end()) {
    metadata.uid = lost->second.uid;
  }
  if (metadata.uid.empty()) metadata.uid = NewUuid();
}

std::string ObjectDirectory::TemporaryOf(const Stored& stored) const {
  return directory_ + "/" + TemporaryFileOf(stored.file);
}

AppliedObject::What ObjectDirectory::ChangeLocked(const ObjectKey& key, const Stored& next) const {
  const Stored* stored = FindLocked(key);
  if (stored == nullptr) {
    return next.replaces.empty() ? AppliedObject::What::kCreated : AppliedObject::What::kReplaced;
  }
  if (IsReplacedBy(*stored->object, next.replaces)) return AppliedObject::What::kReplaced;
  if (damaged_.contains(stored->file)) return AppliedObject::What::kChanged;
  return *stored->object == *next.object ? AppliedObject::What::kUnchanged
                                         : AppliedObject::What::kChanged;
}

Result<std::vector<AppliedObject>> ObjectDirectory::Apply(ApplyCommand command) {
  MutexLock lock(mu_);
  if (!loaded_) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the object directory " + directory_ + " is not loaded");
  }
  // The removal of what a command has ended may not have had its turn yet.
  if (!command.ended.empty()) RemoveAllLocked({command.ended.begin(), command.ended.end()});
  using Prepared = std::map<ObjectKey, Stored>;
  ASSIGN_OR_RETURN(Prepared next, PrepareLocked(std::move(command)));
  std::vector<AppliedObject> applied;
  for (const auto& [key, stored] : next) {
    applied.push_back({stored.object, ChangeLocked(key, stored)});
    const Stored* before = FindLocked(key);
    const bool is_replaced = applied.back().what == AppliedObject::What::kReplaced;
    if (is_replaced && before != nullptr) applied.back().before = before->object;
  }
  RETURN_IF_ERROR(WriteLocked(next));
  bool replaced = false;
  std::optional<Error> error;
  auto change = applied.begin();
  for (auto& [key, stored] : next) {
    if ((change++)->what == AppliedObject::What::kUnchanged) continue;
    const std::string path = directory_ + "/" + stored.file;
    if (::rename(TemporaryOf(stored).c_str(), path.c_str()) != 0) {
      error = Failed("rename to", path, errno);
      RemoveTemporaries(next);
      break;
    }
    unremoved_.erase(stored.file);  // what was to go is overwritten
    ForgetDamageLocked(stored.file);
    changed_.insert(key);
    changed_files_.insert(stored.file);
    stored_[key] = std::move(stored);
    lost_.erase(key);
    replaced = true;
  }
  if (!error && replaced) {
    const Status synced = SyncDirectory(directory_);
    if (!synced.ok()) error = synced.error();
    RetryRemovalsLocked();  // the disk takes writes
  }
  if (replaced) DeliverLocked();
  if (error) return replaced ? error->AsMaybeApplied() : *error;
  return applied;
}

// They may hold secrets. What was renamed has none any more, and no name here.
void ObjectDirectory::RemoveTemporaries(const std::map<ObjectKey, Stored>& of) const {
  for (const auto& [key, stored] : of) {
    if (!stored.file.empty()) ::unlink(TemporaryOf(stored).c_str());
  }
}

Status ObjectDirectory::WriteLocked(const std::map<ObjectKey, Stored>& next) const {
  std::vector<std::string> written;
  Status status = OkStatus();
  for (auto it = next.begin(); status.ok() && it != next.end(); ++it) {
    const auto& [key, stored] = *it;
    if (ChangeLocked(key, stored) == AppliedObject::What::kUnchanged) continue;
    if (written.empty() && has_room_) status = has_room_();
    if (status.ok()) {
      written.push_back(TemporaryOf(stored));
      status = WriteTemporary(written.back(), EncodeStoredObject({*stored.object, stored.number,
                                                                  version_, stored.replaces}));
    }
    status = std::move(status).With("store " + ToString(key));
  }
  if (status.ok()) status = SyncFiles(written);
  // They may hold secrets, and take up what little room there is.
  if (!status.ok()) {
    for (const std::string& path : written) ::unlink(path.c_str());
  }
  return status;
}

}  // namespace volumed
