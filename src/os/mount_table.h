// The mount table as mountinfo has it, read whole. It never touches a mounted filesystem, so it
// cannot hang with one. os/kept_mount_table.h is the one that is not read again for every question.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "os/mount_entry.h"
#include "os/mount_places.h"

namespace volumed {

// The calling thread's mount namespace, in the kernel's order.
// Errors: errno of the file, not applied; DataLoss, not applied, naming the line that is malformed.
Result<std::vector<MountEntry>> ReadMountTable();

// That the root directory of the calling process is the root of a mount, which the table has. After
// a chroot(2) into a directory the table lacks the mount that everything lies on: nobody could tell
// then what is mounted at a path, and what a directory is shown by.
// Errors, not applied: FailedPrecondition if it is none; those of ReadMountTable.
// Source: proc_pid_mountinfo(5), statx(2) (STATX_MNT_ID, since Linux 5.8).
Status CheckRootIsMounted();

// The same from any stream in mountinfo's format. Source: proc_pid_mountinfo(5).
Result<std::vector<MountEntry>> ParseMountTable(std::FILE* stream, const std::string& name);

// One state of the table. Immutable. Threads: any. Blocks: never.
class MountSnapshot {
 public:
  explicit MountSnapshot(std::vector<MountEntry> entries);

  const std::vector<MountEntry>& entries() const { return entries_; }
  // The topmost mount at exactly this path: the one that a lookup of it ends in, or, if all are
  // hidden by what is mounted above, the topmost of these. Null if it is no mount point.
  const MountEntry* FindTop(const std::string& mount_point) const;
  // By the id of mountinfo; null if there is none now. What these functions point to lives as long
  // as the snapshot.
  const MountEntry* FindById(uint64_t mount_id) const;
  // The mount that a lookup of the clean, absolute, link-free `path` ends in. Null only if the
  // table has it not: where "/" is no mount point, what lies on none of the others.
  const MountEntry* FindCovering(const std::string& path) const;
  // The answer to a question that CheckMountQuestion() has let pass, in the kernel's order. Does
  // not grow with the table.
  std::vector<MountEntry> Find(const ListMounts& question) const;

 private:
  const MountEntry* TopOf(const std::vector<uint64_t>& stack) const;
  // Where look-ups begin: what is mounted over "/" later is on no path. Null if the root is a
  // directory of a mount that the table has not, as in a chroot.
  const MountEntry* FindRoot() const;
  // What is mounted there on this mount (null: on the one that the table has not), one upon the
  // other: no mount of another parent.
  std::vector<uint64_t> StackUpon(const MountEntry* below, const std::string& mount_point) const;

  std::vector<MountEntry> entries_;
  MountPlaces places_;  // of positions in entries_
  std::unordered_map<uint64_t, size_t> by_id_;
};

// What is different between two states.
struct MountTableChange {
  std::vector<MountEntry> added;
  std::vector<MountEntry> removed;
  // Same mount, other content: moved, remounted, propagation. The new content.
  std::vector<MountEntry> changed;

  bool empty() const { return added.empty() && removed.empty() && changed.empty(); }
};

// Compares two states by the ids of mounts. An id with another filesystem or root is another mount:
// the old one was removed, and one was added. Pure.
MountTableChange DiffMounts(const MountSnapshot& before, const MountSnapshot& after);

}  // namespace volumed
