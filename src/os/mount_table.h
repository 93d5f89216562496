// The mount table: read once (ReadMountTable), or kept up to date (MountTable). It is read from
// mountinfo and never touches a mounted filesystem, so it cannot hang with one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/mount_entry.h"

namespace volumed {

// The calling thread's mount namespace, in the kernel's order.
// Errors: errno of the file, not applied; DataLoss, not applied, naming the line that is malformed.
Result<std::vector<MountEntry>> ReadMountTable();

// The same from any stream in mountinfo's format. Source: proc_pid_mountinfo(5).
Result<std::vector<MountEntry>> ParseMountTable(std::FILE* stream, const std::string& name);

// One state of the table. Immutable. Threads: any. Blocks: never.
class MountSnapshot {
 public:
  explicit MountSnapshot(std::vector<MountEntry> entries);

  const std::vector<MountEntry>& entries() const { return entries_; }
  // The topmost mount at exactly this path; null if it is no mount point.
  const MountEntry* FindTop(const std::string& mount_point) const;
  const MountEntry* FindById(uint64_t mount_id) const;
  // The mount that a lookup of the clean, absolute, link-free `path` ends in; null only without
  // "/".
  const MountEntry* FindCovering(const std::string& path) const;
  // Mount points at or below the clean, absolute `path`, in the kernel's order.
  std::vector<const MountEntry*> FindBelow(const std::string& path) const;

 private:
  std::vector<MountEntry> entries_;
  std::unordered_map<std::string, size_t> by_path_;  // the last one of each path
  std::unordered_map<uint64_t, size_t> by_id_;
};

// What one refresh found.
struct MountTableChange {
  std::vector<MountEntry> added;
  std::vector<MountEntry> removed;
  // Same mount, other content: moved, remounted, propagation. The new content.
  std::vector<MountEntry> changed;

  bool empty() const { return added.empty() && removed.empty() && changed.empty(); }
};

// The table of the mount namespace in which it was opened. Changes of propagation and of superblock
// options alone do not wake change_fd(): the kernel does not announce them.
// Threads: any. Blocks: Refresh() for the time of a read, 2 ms per 1,000 mounts.
class MountTable {
 public:
  static Result<std::unique_ptr<MountTable>> Open();

  // Becomes readable for POLLPRI when something was mounted or unmounted.
  int change_fd() const { return change_fd_.get(); }
  // Reads the table and says what is different from the last snapshot.
  Result<MountTableChange> Refresh();
  std::shared_ptr<const MountSnapshot> snapshot() const;

 private:
  explicit MountTable(Descriptor change_fd);

  const Descriptor change_fd_;
  mutable Mutex mu_;
  std::shared_ptr<const MountSnapshot> snapshot_ GUARDED_BY(mu_);
};

// Pure; for Refresh() and its tests.
MountTableChange DiffMounts(const MountSnapshot& before, const MountSnapshot& after);

}  // namespace volumed
