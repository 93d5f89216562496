// Pool: one directory in which the node keeps volumes. It is opened once it is there and is the one
// on record, and is this agent's alone as long as the agent lives.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_backend.h"
#include "pool/pool_capacity.h"
#include "pool/pool_uuids.h"
#include "records/record_store.h"

namespace volumed {

struct PoolSettings {
  std::string name;
  std::string path;  // absolute and clean; it may be a link
  PoolLimits limits;
  std::optional<LvmNames> lvm = std::nullopt;  // nullopt: it has no logical volumes
  // Who has the pool, for whoever else wants it: "the agent of node n1, with pid 4711".
  std::string holder;
};

// Whether the filesystem that was asked has failed. The error of a worker that could not be started
// may have the errno of another filesystem. Pure.
bool SaysFilesystemFailed(const Error& error);

// Threads: any. Blocks: Open and CheckThere alone.
class Pool {
 public:
  // Kernel, store, clock and log outlive this object.
  Pool(PoolSettings settings, Kernel& kernel, RecordStore& store, const Clock& clock, Logger& log);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // What is on record of it; before the first Open().
  void Restore(const PoolRecord& record) EXCLUDES(mu_);
  // Its row cannot be read, so that nobody knows which directory it is.
  void RestoreUnreadable(const std::string& reason) EXCLUDES(mu_);

  // Opens the pool, or says why it is not there. A directory that is empty becomes a pool if
  // nothing is on record of it and `may_adopt` is set, as it is unless records are missing: the
  // empty directory may be where a disk is to be mounted that has the pool. What is mounted where
  // another directory is on record takes its place if nothing of the pool is on record (SetIsUsed)
  // and it was not opened by this agent: the disk was not mounted yet at the first start. May be
  // called again at any time, by one thread at a time. Blocks: until the call's deadline and for
  // the store.
  // Errors, not applied: Unavailable, if nothing is at the path, or another directory or pool than
  // the one on record, or if another agent has it, naming that; FailedPrecondition, if the
  // directory is not empty and no pool, lies in memory, may not be adopted, or is a copy of another
  // pool's, or that one itself by another name (PoolUuids says what a person is to do); those
  // of the effects and of the store. After an error that may have been applied the directory may
  // have become a pool.
  Status Open(bool may_adopt, const CallOptions& call) EXCLUDES(mu_);
  // As the last Open() answered, or CheckThere() after it; Unavailable, not applied, before.
  Status state() const EXCLUDES(mu_);
  // Whether the directory is the pool's now: its disk may have been unmounted or have failed since
  // Open(), and what is not found at the path then is not gone. One that is certainly not there is
  // not open from then on. Blocks: until the call's deadline. Errors, not applied: Unavailable, if
  // it is another one, or none; those of the effect. What a person has to mend is about
  // kStorageAway.
  Status CheckThere(const CallOptions& call) const EXCLUDES(mu_);
  // Something without a row was found in it, which is on record from then on. Blocks: for the
  // store. Errors: the store's. REQUIRES: it was opened.
  Status NoteLost() EXCLUDES(mu_);
  // Called whenever CheckThere() finds that a pool which was open is not there, on its thread. Set
  // before any other call.
  void SetAway(std::function<void()> away) { away_ = std::move(away); }
  // Asked before a directory becomes this pool of which nothing is on record; it outlives this
  // object. Set before any other call.
  void SetUuids(PoolUuids* uuids) { uuids_ = uuids; }
  // Whether anything of this pool is, or may be, on record; without it there may be. Asked of a
  // pool that is on record as another directory. Set before any other call.
  void SetIsUsed(std::function<bool()> is_used) { is_used_ = std::move(is_used); }

  const std::string& name() const { return settings_.name; }
  const PoolLimits& limits() const { return settings_.limits; }
  // As it was configured: for paths that are named before the pool is open, and for lanes.
  const std::string& path() const { return settings_.path; }
  // What its ids have; empty until it was opened once, by this agent or one before.
  std::string tag() const EXCLUDES(mu_);
  // Of the directory on record; empty if there is none, or its filesystem has no identity.
  std::string filesystem() const EXCLUDES(mu_);
  // Whether that writes what is written anew to other blocks, so that none can be kept for a file.
  // False if there is none on record.
  bool writes_elsewhere() const EXCLUDES(mu_);

  // What is needed for effects in the pool.
  struct Opened {
    PoolLayout layout;
    std::map<PoolBackendKind, std::unique_ptr<PoolBackend>> backends;
  };
  // Null until it was opened once by this agent, or its filesystem was found to have failed: what
  // is open on that can be closed. It lives as long as the pool.
  const Opened* opened() const EXCLUDES(mu_);

 private:
  struct Found {
    PoolRecord record;
    FilePin lock;
  };
  Result<Found> Look(const std::optional<PoolRecord>& before, bool may_adopt,
                     const CallOptions& call) EXCLUDES(mu_);
  // What is on record, unless the pool has come to another directory.
  Result<std::optional<PoolRecord>> Expected(const std::optional<PoolRecord>& recorded,
                                             bool may_adopt, const PoolLayout& layout,
                                             const StorageIdentity& root, const CallOptions& call)
      EXCLUDES(mu_);
  Status TakeUuid(const PoolRecord& found) const;
  void WarnOfNoDisk(const PoolLayout& layout, const CallOptions& call) const;
  Result<std::string> Adopt(const PoolLayout& layout, const CallOptions& call);
  Result<FilePin> LockFor(const PoolLayout& layout, const CallOptions& call) EXCLUDES(mu_);
  Status TryOpen(bool may_adopt, const CallOptions& call) EXCLUDES(mu_);
  void MakeOpened(const PoolRecord& record) REQUIRES(mu_);
  // Notes what was found of a pool that is open, or was to be opened.
  void SetState(const Status& state) const EXCLUDES(mu_);
  void NoteAway(const Status& found) const EXCLUDES(mu_);

  const PoolSettings settings_;
  Kernel& kernel_;
  RecordStore& store_;
  const Clock& clock_;
  Logger& log_;
  std::function<void()> away_;
  PoolUuids* uuids_ = nullptr;
  std::function<bool()> is_used_;
  mutable Mutex mu_;
  std::optional<PoolRecord> record_ GUARDED_BY(mu_);
  std::string unreadable_ GUARDED_BY(mu_);  // why; empty: its row is none of these
  // What was last seen of it, by whoever has looked.
  mutable Status state_ GUARDED_BY(mu_);
  mutable FilePin lock_ GUARDED_BY(mu_);  // of what was opened
  std::unique_ptr<Opened> opened_ GUARDED_BY(mu_);
};

}  // namespace volumed
