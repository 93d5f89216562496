#include "kube/object_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>
#include <variant>

#include "base/descriptor.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/digest.h"
#include "kube/static_pod.h"

namespace volumed {
namespace {

constexpr std::string_view kQuarantine = "quarantine";
// Begins with a dot and has no ".json": never taken for an object after a crash.
constexpr std::string_view kTemporarySuffix = ".tmp";

Error Failed(std::string_view what, const std::string& path, int sys_errno) {
  return Error::FromErrno(sys_errno, std::string(what) + " " + path, Outcome::kNotApplied);
}

Status MakePrivateDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Failed("make directory", path, errno);
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return Failed("examine directory", path, errno);
  if (!S_ISDIR(status.st_mode)) return Failed("use as a directory", path, ENOTDIR);
  // It holds secrets: what was there before must not be wider.
  if ((status.st_mode & 07777) != 0700 && ::chmod(path.c_str(), 0700) != 0) {
    return Failed("restrict directory", path, errno);
  }
  return OkStatus();
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return OkStatus();
}

// Durable under a temporary name.
Status WriteTemporary(const std::string& path, std::string_view bytes) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("remove", path, errno);
  const Descriptor fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return Failed("create", path, errno);
  RETURN_IF_ERROR(WriteAll(fd.get(), bytes, path));
  if (::fsync(fd.get()) != 0) return Failed("sync", path, errno);
  return OkStatus();
}

// Kinds whose objects wait, once deleted, until nobody uses them.
bool IsProtected(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume || kind == ObjectKind::kPersistentVolumeClaim;
}

// REQUIRES: IsProtected(kind).
std::string_view ProtectionOf(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolume ? kPersistentVolumeProtection
                                               : kPersistentVolumeClaimProtection;
}

Status SyncDirectory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return Failed("sync directory", path, errno);
  return OkStatus();
}

Result<std::string> ReadWhole(const std::string& path) {
  ASSIGN_OR_RETURN(
      const Descriptor fd,
      DescriptorFrom(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
                     "open " + path));
  std::string bytes;
  std::array<char, 64 * 1024> buffer;
  // One byte more than allowed, which the decoder then refuses.
  while (bytes.size() <= kMaxManifestBytes) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("read", path, errno);
    bytes.append(buffer.data(), static_cast<size_t>(count));
  }
  return bytes;
}

// Object files; what a crash left half-written is removed on the way: it may hold a secret.
Result<std::vector<std::string>> ListObjectFiles(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (stream == nullptr) return Failed("read directory", directory, errno);
  std::vector<std::string> files;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name.front() == '.' && StripSuffix(name, kTemporarySuffix)) {
      ::unlinkat(::dirfd(stream.get()), entry->d_name, 0);
    } else if (name.front() != '.' && StripSuffix(name, ".json")) {
      files.emplace_back(name);
    }
    errno = 0;
  }
  if (errno != 0) return Failed("read directory", directory, errno);
  return files;
}

// Names are DNS labels and subdomains, so there is no '/' in them; the length stays below
// NAME_MAX only when the name does, which a hash takes care of.
std::string FileNameOf(const ObjectKey& key) {
  std::string name(ObjectKindName(key.kind));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  name += "." + key.name_space + "." + key.name;
  constexpr size_t kMaxStem = 200;
  if (name.size() > kMaxStem) {
    name = name.substr(0, kMaxStem) + "~" + HalfSha256Hex(name);
  }
  return name + ".json";
}

}  // namespace

ObjectDirectory::ObjectDirectory(std::string directory, NodeName node_name, Scheduler& scheduler,
                                 RoomCheck has_room)
    : directory_(std::move(directory)),
      node_name_(std::move(node_name)),
      scheduler_(scheduler),
      has_room_(std::move(has_room)),
      removal_backoff_(scheduler.clock()) {}

void ObjectDirectory::Start(ObjectListener listener) {
  listener_ = std::make_shared<ObjectListener>(std::move(listener));
  scheduler_.RunBlocking([this] { LoadAndDeliver(); });
}

void ObjectDirectory::Forget() {
  scheduler_.RunBlocking([this] { LoadAndDeliver(); });
}

void ObjectDirectory::LoadAndDeliver() {
  MutexLock lock(mu_);
  problems_.clear();
  const Status status = LoadLocked();
  if (!status.ok()) problems_.push_back({directory_, -1, "", "", status.error().message()});
  DeliverLocked();
}

Status ObjectDirectory::LoadLocked() {
  RETURN_IF_ERROR(MakePrivateDirectory(directory_));
  RetryRemovalsLocked();
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListObjectFiles(directory_));
  stored_.clear();
  for (const std::string& file : files) {
    if (!unremoved_.contains(file)) RETURN_IF_ERROR(LoadFile(file));
  }
  loaded_ = true;
  return OkStatus();
}

Status ObjectDirectory::LoadFile(const std::string& file_name) {
  const std::string path = directory_ + "/" + file_name;
  // A file that cannot be read (EIO) says nothing about its objects: the list is not complete.
  ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
  ManifestDecode decode = DecodeManifest(path, bytes);
  if (decode.problems.empty() && decode.objects.size() != 1) {
    decode.problems.push_back({path, -1, "", "", "does not hold exactly one object"});
  }
  if (decode.problems.empty()) {
    Object& object = decode.objects.front().object;
    const ObjectKey key = KeyOf(object);
    if (FileNameOf(key) == file_name) {
      stored_[key] = {std::make_shared<const Object>(std::move(object)), file_name};
      return OkStatus();
    }
    decode.problems.push_back(
        {path, 0, ToString(key), "metadata", "is not the object of the file"});
  }
  Quarantine(file_name, std::move(decode.problems));
  return OkStatus();
}

void ObjectDirectory::Quarantine(const std::string& file_name,
                                 std::vector<DecodeProblem> problems) {
  const std::string from = directory_ + "/" + file_name;
  const std::string quarantine = directory_ + "/" + std::string(kQuarantine);
  Status moved = MakePrivateDirectory(quarantine);
  if (moved.ok() && ::rename(from.c_str(), (quarantine + "/" + file_name).c_str()) != 0) {
    moved = Failed("move to quarantine", from, errno);
  }
  for (DecodeProblem& problem : problems) {
    problem.reason += moved.ok() ? "; moved to " + quarantine : "; " + moved.error().message();
    problems_.push_back(std::move(problem));
  }
}

ObjectList ObjectDirectory::ListLocked() const {
  ObjectList list;
  list.source = name_;
  list.complete = loaded_;
  for (const auto& [key, stored] : stored_) {
    list.objects.push_back({stored.object, directory_ + "/" + stored.file, 0});
  }
  list.problems = problems_;
  for (const auto& [file, told] : unremoved_) {
    list.problems.push_back({directory_ + "/" + file, -1, "", "", told});
  }
  return list;
}

void ObjectDirectory::DeliverLocked() {
  // In the order of the changes, since each is posted under the lock.
  scheduler_.Post([listener = listener_, list = ListLocked()] { (*listener)(list); });
}

Status ObjectDirectory::CheckUidLocked(const ObjectKey& key, const Pod& pod) const {
  for (const auto& [old_key, stored] : stored_) {
    const Pod* old = std::get_if<Pod>(stored.object.get());
    if (old == nullptr || old->metadata.uid != pod.metadata.uid) continue;
    if (old_key != key) {
      return Error::NotApplied(
          Code::kAlreadyExists,
          ToString(key) + " has the uid of " + ToString(old_key) + ", " + pod.metadata.uid);
    }
    if (old->spec.volumes != pod.spec.volumes) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               ToString(key) + ": spec.volumes is immutable under the same uid");
    }
  }
  return OkStatus();
}

Result<std::map<ObjectKey, ObjectDirectory::Stored>> ObjectDirectory::PrepareLocked(
    std::vector<Object> objects) const {
  std::map<ObjectKey, Stored> next;
  for (Object& object : objects) {
    if (Pod* pod = std::get_if<Pod>(&object)) {
      RETURN_IF_ERROR(
          ApplyStaticPodDefaults(node_name_, kSourceName, *pod).With(ToString(KeyOf(object))));
    }
    const ObjectKey key = KeyOf(object);
    if (const Pod* pod = std::get_if<Pod>(&object)) RETURN_IF_ERROR(CheckUidLocked(key, *pod));
    if (IsProtected(key.kind)) RETURN_IF_ERROR(IdentifyLocked(key, object));
    Stored stored{std::make_shared<const Object>(std::move(object)), FileNameOf(key)};
    if (!next.emplace(key, std::move(stored)).second) {
      return Error::NotApplied(Code::kInvalidArgument, ToString(key) + " is given twice");
    }
  }
  return next;
}

Status ObjectDirectory::IdentifyLocked(const ObjectKey& key, Object& object) const {
  const auto stored = stored_.find(key);
  const ObjectMeta* before = stored == stored_.end() ? nullptr : &MetaOf(*stored->second.object);
  if (before != nullptr && before->deletion_unix_millis) {
    // Source: kubernetes apiserver registry/generic/registry/store.go@v1.36.2 (Create).
    return Error::NotApplied(Code::kAlreadyExists, "object is being deleted: " + ToString(key) +
                                                       " already exists; apply it again when it "
                                                       "is gone");
  }
  ObjectMeta& metadata = MetaOf(object);
  if (!metadata.uid.empty()) return OkStatus();
  metadata.uid = before == nullptr || before->uid.empty() ? NewUuid() : before->uid;
  return OkStatus();
}

std::string ObjectDirectory::TemporaryOf(const Stored& stored) const {
  return directory_ + "/." + stored.file + std::string(kTemporarySuffix);
}

AppliedObject::What ObjectDirectory::ChangeLocked(const ObjectKey& key,
                                                  const Object& object) const {
  const auto found = stored_.find(key);
  if (found == stored_.end()) return AppliedObject::What::kCreated;
  return *found->second.object == object ? AppliedObject::What::kUnchanged
                                         : AppliedObject::What::kChanged;
}

Result<std::vector<AppliedObject>> ObjectDirectory::Apply(std::vector<Object> objects) {
  MutexLock lock(mu_);
  if (!loaded_) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the object directory " + directory_ + " is not loaded");
  }
  using Prepared = std::map<ObjectKey, Stored>;
  ASSIGN_OR_RETURN(Prepared next, PrepareLocked(std::move(objects)));
  std::vector<AppliedObject> applied;
  for (const auto& [key, stored] : next) {
    applied.push_back({stored.object, ChangeLocked(key, *stored.object)});
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
      break;
    }
    unremoved_.erase(stored.file);  // what was to go is overwritten
    stored_[key] = std::move(stored);
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

Status ObjectDirectory::WriteLocked(const std::map<ObjectKey, Stored>& next) const {
  std::vector<std::string> written;
  Status status = OkStatus();
  for (auto it = next.begin(); status.ok() && it != next.end(); ++it) {
    const auto& [key, stored] = *it;
    if (ChangeLocked(key, *stored.object) == AppliedObject::What::kUnchanged) continue;
    if (written.empty() && has_room_) status = has_room_();
    if (status.ok()) {
      written.push_back(TemporaryOf(stored));
      status = WriteTemporary(written.back(),
                              EncodeObjectJson(*stored.object, SecretEncoding::kWithSecrets));
    }
    status = std::move(status).With("store " + ToString(key));
  }
  // They may hold secrets, and take up what little room there is.
  if (!status.ok()) {
    for (const std::string& path : written) ::unlink(path.c_str());
  }
  return status;
}

// ---- removal ------------------------------------------------------------------------------------

Status ObjectDirectory::RemoveFileLocked(const std::string& file) const {
  const std::string path = directory_ + "/" + file;
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("remove", path, errno);
  const Status synced = SyncDirectory(directory_);
  if (!synced.ok()) return synced.error().AsMaybeApplied();
  return OkStatus();
}

Status ObjectDirectory::MarkDeletedLocked(const ObjectKey& key, Stored& stored) {
  if (MetaOf(*stored.object).deletion_unix_millis) return OkStatus();
  Object marked = *stored.object;
  ObjectMeta& metadata = MetaOf(marked);
  metadata.deletion_unix_millis = scheduler_.clock().WallUnixMillis();
  const std::string finalizer(ProtectionOf(key.kind));
  if (std::find(metadata.finalizers.begin(), metadata.finalizers.end(), finalizer) ==
      metadata.finalizers.end()) {
    metadata.finalizers.push_back(finalizer);
  }
  const std::string temporary = TemporaryOf(stored);
  const std::string path = directory_ + "/" + stored.file;
  Status written =
      WriteTemporary(temporary, EncodeObjectJson(marked, SecretEncoding::kWithSecrets));
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = Failed("rename to", path, errno);
  }
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return std::move(written).With("mark " + ToString(key) + " as deleted");
  }
  stored.object = std::make_shared<const Object>(std::move(marked));
  DeliverLocked();
  const Status synced = SyncDirectory(directory_);
  if (!synced.ok()) return synced.error().AsMaybeApplied();
  return OkStatus();
}

Status ObjectDirectory::Delete(const ObjectKey& key) {
  MutexLock lock(mu_);
  const auto stored = stored_.find(key);
  if (stored == stored_.end()) {
    return Error::NotApplied(Code::kNotFound, ToString(key) + " was not applied here");
  }
  if (IsProtected(key.kind)) return MarkDeletedLocked(key, stored->second);
  const Status removed = RemoveFileLocked(stored->second.file);
  if (!removed.ok() && !removed.error().maybe_applied()) return removed;
  stored_.erase(stored);
  if (removed.ok()) RetryRemovalsLocked();
  DeliverLocked();
  return removed;
}

void ObjectDirectory::Remove(const ObjectKey& key, const std::string& uid) {
  MutexLock lock(mu_);
  const auto stored = stored_.find(key);
  if (stored == stored_.end()) return;
  const ObjectMeta& metadata = MetaOf(*stored->second.object);
  const bool same = metadata.uid.empty() || metadata.uid == uid;
  if (!same || !metadata.deletion_unix_millis) return;
  (void)RemoveStoredLocked(stored);
  DeliverLocked();
}

std::string ObjectDirectory::RemoveStoredLocked(std::map<ObjectKey, Stored>::iterator stored) {
  const std::string object = ToString(stored->first);
  const std::string file = stored->second.file;
  stored_.erase(stored);
  const Status removed = RemoveFileLocked(file);
  if (removed.ok()) {
    RetryRemovalsLocked();
    return "";
  }
  RemoveLaterLocked(file, object, removed.error());
  return unremoved_.at(file);
}

Result<std::string> ObjectDirectory::DeletePod(const PodUid& uid) {
  MutexLock lock(mu_);
  const auto stored = std::find_if(stored_.begin(), stored_.end(), [&](const auto& entry) {
    const Pod* pod = std::get_if<Pod>(entry.second.object.get());
    return pod != nullptr && pod->uid() == uid;
  });
  if (stored == stored_.end()) {
    return Error::NotApplied(Code::kNotFound, "no pod with uid " + uid.str() + " was applied here");
  }
  std::string told = RemoveStoredLocked(stored);
  DeliverLocked();
  return told;
}

void ObjectDirectory::RemoveLaterLocked(const std::string& file, const std::string& object,
                                        const Error& error) {
  unremoved_[file] = object +
                     " was deleted, but its file could not be removed: " + error.message() +
                     "; this is retried, and until then a restart of the agent brings it back";
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
