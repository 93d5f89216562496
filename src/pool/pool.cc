#include "pool/pool.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include "base/failed_filesystem.h"
#include "base/random.h"
#include "pool/pool_directory.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

constexpr uint32_t kDirectoryMode = 0700;
constexpr uint32_t kMarkerMode = 0600;

Error NotThere(const std::string& why) {
  return Error::NotApplied(Code::kUnavailable, why).About(kStorageAway);
}

Error NotPossible(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

// A person has to mount it anew, which no caller's rights have to do with.
Status SayIfReadOnly(Status opened) {
  if (opened.ok() || opened.error().sys_errno() != EROFS) return opened;
  const Error& error = opened.error();
  return Error::FromParts(Code::kFailedPrecondition, error.outcome(), error.sys_errno(),
                          "the pool's filesystem is mounted read-only: " + error.message());
}

// Whether it is certain that the pool's directory is not there, or cannot be used. One that does
// not answer in time, or a worker that dies, tells nothing of it.
bool IsAway(const Error& error) {
  const int why = error.sys_errno();
  return error.IsAbout(kStorageAway) || SaysFilesystemFailed(error) || why == ENODEV ||
         why == ENXIO || why == ESTALE || why == ENOTCONN;
}

bool HasFailed(const Status& state) { return !state.ok() && SaysFilesystemFailed(state.error()); }

// A pool that a reboot would empty holds nobody's data.
bool IsInMemory(const std::string& fs_type) { return fs_type == "tmpfs" || fs_type == "ramfs"; }

// Nullopt if there is none.
Result<std::optional<std::string>> ReadMarker(Kernel& kernel, const PoolLayout& layout,
                                              const CallOptions& call) {
  const Result<FileContent> content = kernel.Call(ReadFile{layout.Marker()}, call);
  if (content.ok()) {
    ASSIGN_OR_RETURN(std::string uuid, ParsePoolMarker(content->bytes));
    return std::optional(std::move(uuid));
  }
  if (content.error().code() == Code::kNotFound) return std::optional<std::string>();
  return content.error();
}

Error NoDirectory() { return NotThere("no directory is there"); }

Status CheckIsRecorded(const StorageObject& recorded, const StorageIdentity& there) {
  const std::string difference = LastingDifference(recorded, there.object);
  if (difference.empty()) return OkStatus();
  return NotThere("another directory is there than the one on record (is its disk mounted?): " +
                  difference);
}

// A directory may become a pool if there is nothing in it but what mkfs has put there, and what an
// agent leaves that ended while it adopted it.
Status CheckEmpty(Kernel& kernel, const PoolLayout& layout, const CallOptions& call) {
  const std::set<std::string> harmless = {"lost+found", kPoolLockFile,
                                          UnfinishedName(kPoolMarkerFile)};
  ASSIGN_OR_RETURN(const DirectoryListing listing,
                   kernel.Call(ListDirectory{layout.Directory()}, call));
  for (const DirectoryEntry& entry : listing.entries) {
    if (harmless.contains(entry.name)) continue;
    return NotPossible("it is no pool, and cannot become one, as it is not empty: it has \"" +
                       entry.name + "\"");
  }
  return OkStatus();
}

}  // namespace

bool SaysFilesystemFailed(const Error& error) {
  const int why = error.sys_errno();
  return IsFailedFilesystem(why) && error.code() == CodeFromErrno(why);
}

Pool::Pool(PoolSettings settings, Kernel& kernel, RecordStore& store, const Clock& clock,
           Logger& log)
    : settings_(std::move(settings)),
      kernel_(kernel),
      store_(store),
      clock_(clock),
      log_(log),
      state_(Error::NotApplied(Code::kUnavailable,
                               "pool " + settings_.name + " was not opened yet")) {}

Pool::~Pool() = default;

void Pool::Restore(const PoolRecord& record) {
  MutexLock lock(mu_);
  record_ = record;
}

void Pool::RestoreUnreadable(const std::string& reason) {
  MutexLock lock(mu_);
  unreadable_ = reason;
}

Status Pool::state() const {
  MutexLock lock(mu_);
  return state_;
}

std::string Pool::tag() const {
  MutexLock lock(mu_);
  return record_ ? PoolTag(record_->uuid) : "";
}

std::string Pool::filesystem() const {
  MutexLock lock(mu_);
  if (!record_ || record_->root.fs_uuid.empty()) return "";
  return record_->root.fs_type + " " + record_->root.fs_uuid;
}

bool Pool::writes_elsewhere() const {
  MutexLock lock(mu_);
  return record_ && record_->root.fs_type == "btrfs";
}

Status Pool::CheckThere(const CallOptions& call) const {
  std::optional<PoolRecord> recorded;
  {
    MutexLock lock(mu_);
    recorded = record_;
  }
  if (!recorded) return state();
  const auto checked = [&]() -> Status {
    ASSIGN_OR_RETURN(
        const StorageIdentity root,
        kernel_.Call(IdentifyStorage{.path = PoolLayout(recorded->path).Directory()}, call));
    if (root.type != FileType::kDirectory) return NoDirectory();
    return CheckIsRecorded(recorded->root, root);
  };
  Status there = checked().With("pool " + settings_.name + " at " + settings_.path);
  if (there.ok() || !IsAway(there.error())) return there;
  there = there.error().About(kStorageAway);
  NoteAway(there);
  return there;
}

void Pool::NoteAway(const Status& found) const {
  if (!state().ok()) return;
  SetState(found);
  if (away_) away_();
}

const Pool::Opened* Pool::opened() const {
  MutexLock lock(mu_);
  return opened_.get();
}

// The lock keeps others from nothing on a filesystem that has failed, and keeps that from being
// unmounted.
void Pool::SetState(const Status& state) const {
  const std::string now = state.ok() ? "" : state.error().ToString();
  std::string before;
  FilePin unlocked;
  {
    MutexLock lock(mu_);
    before = state_.ok() ? "" : state_.error().ToString();
    state_ = state;
    if (HasFailed(state)) unlocked = std::exchange(lock_, nullptr);
  }
  if (now == before) return;
  if (now.empty()) {
    log_.Info("pool opened", {{"pool", settings_.name}, {"path", settings_.path}});
  } else {
    log_.Warning("pool is not available",
                 {{"pool", settings_.name}, {"path", settings_.path}, {"error", now}});
  }
}

Status Pool::Open(bool may_adopt, const CallOptions& call) {
  Status opened = SayIfReadOnly(TryOpen(may_adopt, call))
                      .With("pool " + settings_.name + " at " + settings_.path);
  SetState(opened);
  if (!HasFailed(opened)) return opened;
  MutexLock lock(mu_);
  if (record_) MakeOpened(*record_);
  return opened;
}

Status Pool::TryOpen(bool may_adopt, const CallOptions& call) {
  std::optional<PoolRecord> recorded;
  {
    MutexLock lock(mu_);
    if (!unreadable_.empty()) {
      return NotPossible("its record cannot be read, so that nobody knows which directory it is: " +
                         unreadable_);
    }
    recorded = record_;
  }
  ASSIGN_OR_RETURN(Found found, Look(recorded, may_adopt, call));
  const PoolLayout layout(found.record.path);
  for (const SafePath& directory : {layout.Volumes(), layout.Cuts()}) {
    RETURN_IF_ERROR(kernel_.Call(MakeDirectory{.path = directory, .mode = kDirectoryMode}, call));
  }
  if (!recorded || *recorded != found.record) {
    RETURN_IF_ERROR(store_.Put(EncodeRecord(found.record), kPoolRecordDurability));
  }
  MutexLock lock(mu_);
  record_ = found.record;
  lock_ = std::move(found.lock);
  MakeOpened(found.record);
  return OkStatus();
}

void Pool::MakeOpened(const PoolRecord& record) {
  if (opened_ != nullptr) return;
  const PoolLayout layout(record.path);
  opened_ = std::make_unique<Opened>(Opened{layout, {}});
  const auto add = [&backends = opened_->backends](PoolBackendKind kind,
                                                   std::unique_ptr<PoolBackend> backend) {
    backends.emplace(kind, std::move(backend));
  };
  add(PoolBackendKind::kImage, MakeImageBackend(kernel_, layout, record.uuid));
  add(PoolBackendKind::kDirectory, MakeDirectoryBackend(kernel_, layout, record.uuid));
  add(PoolBackendKind::kSubvolume, MakeSubvolumeBackend(kernel_, layout, record.uuid));
  for (const PoolBackendKind kind : {PoolBackendKind::kStatic, PoolBackendKind::kExport}) {
    add(kind, MakeStaticBackend(kernel_, kind));
  }
  if (!settings_.lvm) return;
  add(PoolBackendKind::kLvm, MakeLvmBackend(kernel_, layout, record.uuid, *settings_.lvm));
}

// Finds out which directory is at the path, and whether it is this pool; makes it one if it may.
Result<Pool::Found> Pool::Look(const std::optional<PoolRecord>& before, bool may_adopt,
                               const CallOptions& call) {
  const Result<std::string> path = FindPoolDirectory(kernel_, settings_.path, call);
  if (!path.ok() && path.error().code() == Code::kNotFound) return NotThere("nothing is there");
  if (!path.ok()) return path.error();
  if (const Opened* open = opened(); open != nullptr && open->layout.root() != *path) {
    return NotThere("the path leads to " + *path + " now, and led to " + open->layout.root() +
                    " when this agent opened the pool: start the agent again");
  }
  const PoolLayout layout(*path);
  ASSIGN_OR_RETURN(const StorageIdentity root,
                   kernel_.Call(IdentifyStorage{.path = layout.Directory()}, call));
  if (root.type != FileType::kDirectory) return NoDirectory();
  if (IsInMemory(root.object.fs_type)) {
    return NotPossible("it lies in memory, on a " + root.object.fs_type);
  }
  ASSIGN_OR_RETURN(const std::optional<PoolRecord> recorded,
                   Expected(before, may_adopt, layout, root, call));
  ASSIGN_OR_RETURN(std::optional<std::string> uuid, ReadMarker(kernel_, layout, call));
  if (recorded && uuid && *uuid != recorded->uuid) {
    return NotThere("another pool is there than the one on record: its uuid is " + *uuid);
  }
  if (!uuid) {
    if (recorded) return NotThere(std::string("its marker is missing: ") + kPoolMarkerFile);
    if (!may_adopt) {
      return NotPossible(
          "it is no pool yet, and records are in doubt: it may be the place of a disk that has it");
    }
    RETURN_IF_ERROR(CheckEmpty(kernel_, layout, call));
  }
  PoolRecord record{settings_.name, *path, uuid.value_or(""), root.object, clock_.WallUnixMillis()};
  // A copy is not even locked.
  if (!recorded && uuid) RETURN_IF_ERROR(TakeUuid(record));
  if (recorded && uuids_ != nullptr) RETURN_IF_ERROR(uuids_->CheckNoOtherName(record));
  ASSIGN_OR_RETURN(FilePin lock, LockFor(layout, call));
  if (!uuid) {
    ASSIGN_OR_RETURN(record.uuid, Adopt(layout, call));
    RETURN_IF_ERROR(TakeUuid(record));
  }
  if (recorded) {
    // What was not to be known of the directory this time must not be forgotten for that.
    record.root = recorded->root;
    record.created_unix_ms = recorded->created_unix_ms;
    record.had_lost = recorded->had_lost;
  }
  return Found{std::move(record), std::move(lock)};
}

Result<std::optional<PoolRecord>> Pool::Expected(const std::optional<PoolRecord>& recorded,
                                                 bool may_adopt, const PoolLayout& layout,
                                                 const StorageIdentity& root,
                                                 const CallOptions& call) {
  if (!recorded) return recorded;
  const Status same = CheckIsRecorded(recorded->root, root);
  if (same.ok()) return recorded;
  const bool may_have_any = recorded->had_lost || is_used_ == nullptr || is_used_();
  if (opened() != nullptr || !may_adopt || may_have_any) return same.error();
  ASSIGN_OR_RETURN(const FileInfo there,
                   kernel_.Call(Stat{.path = layout.Directory(), .only_mount_point = true}, call));
  if (!there.is_mount_point) return same.error();
  log_.Warning("a pool without volumes comes to the disk that is mounted at its path",
               {{"pool", settings_.name}, {"path", layout.root()}, {"why", same.error()}});
  return std::optional<PoolRecord>();
}

Status Pool::NoteLost() {
  PoolRecord record;
  {
    MutexLock lock(mu_);
    record = record_.value();
  }
  if (record.had_lost) return OkStatus();
  record.had_lost = true;
  RETURN_IF_ERROR(store_.Put(EncodeRecord(record), kPoolRecordDurability));
  MutexLock lock(mu_);
  record_ = record;
  return OkStatus();
}

Status Pool::TakeUuid(const PoolRecord& found) const {
  return uuids_ == nullptr ? OkStatus() : uuids_->Take(found);
}

// The place of a disk that is not mounted looks as any other empty directory.
void Pool::WarnOfNoDisk(const PoolLayout& layout, const CallOptions& call) const {
  const Result<FileInfo> there =
      kernel_.Call(Stat{.path = layout.Directory(), .only_mount_point = true}, call);
  if (!there.ok() || there->is_mount_point) return;
  log_.Warning(
      "a pool is made in a directory that is no mount point: if a disk of its own is to be mounted "
      "there, do that, and start the agent again before a volume is made",
      {{"pool", settings_.name}, {"path", layout.root()}});
}

// REQUIRES: the directory is locked. Whoever had the lock before may have adopted it meanwhile.
Result<std::string> Pool::Adopt(const PoolLayout& layout, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> there, ReadMarker(kernel_, layout, call));
  if (there) return *there;
  WarnOfNoDisk(layout, call);
  const std::string uuid = NewUuid();
  const WriteFile marker{.path = layout.Marker(),
                         .content = Secret<std::string>(PoolMarkerText(uuid)),
                         .mode = kMarkerMode};
  RETURN_IF_ERROR(kernel_.Call(marker, call));
  return uuid;
}

Result<FilePin> Pool::LockFor(const PoolLayout& layout, const CallOptions& call) {
  {
    MutexLock lock(mu_);
    if (lock_ != nullptr) return lock_;
  }
  Result<FileLock> taken =
      kernel_.Call(TakeFileLock{.path = layout.Lock(), .content = settings_.holder}, call);
  if (taken.ok()) return std::move(taken)->pin;
  if (taken.error().code() != Code::kAborted) return taken.error();
  return NotThere("another agent has it: " + taken.error().message());
}

}  // namespace volumed
