// KeptMountTable: the mount table of one namespace, kept in memory and told of changes by the
// kernel, so that a question costs what its answer costs and not what the table does.
//
// Two ways to be told, chosen at Open:
//  - events (Linux 6.15): a fanotify group on the mount namespace names each mount that came, went
//    or was moved; statmount(2) of that one mount says where it is now, and what it shows there.
//    Only this is kept: flags and the like may change without an event (remount, propagation), so
//    every answer asks statmount again for each mount in it.
//  - poll: poll(2) of mountinfo says whether something changed since it was last read; then the
//    whole of it is read again.
//
// How fresh an answer is: whatever was mounted, moved or unmounted by a system call that returned
// before the question began is in it, whoever made the call. The kernel queues events, and marks
// mountinfo as changed, before the system call returns; and every question first takes what is
// queued (or polls, which costs one system call while nothing changed). Measured on 6.18, and held
// by kept_mount_table_test.
//
// What the kernel announces to nobody:
//  - the rename of a directory above a mount point. A mount that this brings below a path is missed
//    there until the table is read whole again; one that it takes away is noticed, and found again
//    wherever it comes to later. So nothing may be deleted because this table shows no mount:
//    deletes look for themselves (os/remove_tree.h), or read the table as it is.
//  - the rename of a directory that is the root of a bind, or lies above it, on its filesystem: the
//    bind is missed likewise when it is asked for by that root.
//  - by poll only: changes of propagation, and of superblock options by fsconfig(2). In answers by
//    poll these two are as old as the last announced change. ReadMountTable has them as they are.
// Source: fanotify_mark(2), Linux fs/namespace.c (namespace_unlock, touch_mnt_namespace)@v6.18.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel_requests.h"
#include "os/mount_entry.h"
#include "os/mount_table_stats.h"

namespace volumed {

// Who is told of mounts that come and go. Several changes may come as one call, and a mount that
// goes and one that is moved away are the same. What comes and goes between two readings of the
// table is not told. Both are called on any thread, without a lock held.
struct MountWatch {
  using Told = std::function<void(const std::vector<std::string>& mount_points)>;

  std::string below;  // an absolute path; empty: nobody is told of anything
  Told gone;          // of mounts at `below` or below it
  // Of mounts anywhere else: those that came, and those that went.
  Told changed_elsewhere = {};
};

// Threads: any. Blocks: never on a filesystem. A question by events costs about 2 us and 4 us per
// mount in its answer; by poll about 1 us, and 3 ms per 1,000 mounts of the table after a change.
class KeptMountTable {
 public:
  // The calling thread's mount namespace. By events where `features` have statmount and
  // mount-events and the kernel grants a mark; else by poll, and stats() say why.
  // Errors: those of the first reading, not applied.
  static Result<std::unique_ptr<KeptMountTable>> Open(const KernelFeatures& features,
                                                      MountWatch watch = {});
  virtual ~KeptMountTable() = default;

  // The mounts that a question is about, in the kernel's order.
  // REQUIRES: CheckMountQuestion() has let it pass.
  // Errors: errno of the system calls, not applied; the next question reads the table whole.
  virtual Result<std::vector<MountEntry>> Find(const ListMounts& question) = 0;

  // Of the mounts that were asked for those that lie below `directory`, as the table was when
  // somebody last took events or asked: nothing is caught up with. In the kernel's order.
  // REQUIRES: it asks for a part; all paths are absolute and clean. Costs 1 us where there are
  // none. Errors: none; a mount that cannot be asked about is left out.
  virtual std::vector<MountEntry> LastKnown(const ListMounts& question,
                                            const std::string& directory) const = 0;

  // Readable while events wait; -1 by poll. TakeEvents() takes some of them and may be called as
  // often as is liked, so that they are not lost by the queue running full between two questions.
  // It never reads the table whole, but waits while another thread does. Costs 5 us per event, at
  // most 1,000 of them.
  virtual int event_fd() const = 0;
  virtual void TakeEvents() = 0;

  // By poll, this has EPOLLPRI when the table has changed, and tells epoll of a change once. Then
  // somebody should CatchUpNow(), or the watch is told no sooner than at the next question. It is
  // of the mount namespace of the thread that called Open. By events it is -1.
  virtual int change_fd() const { return -1; }
  // Reads the table if it has changed. Blocks: for that reading. Errors: the next question reports
  // what goes wrong.
  virtual void CatchUpNow() {}

  // Blocks: never, not even while the table is read.
  MountTableStats stats() const;

 protected:
  KeptMountTable(MountTableSource source, std::string why_poll, MountWatch watch);
  KeptMountTable(const KeptMountTable&) = delete;
  KeptMountTable& operator=(const KeptMountTable&) = delete;

  // What the watch is to be told. Threads: the owner's lock.
  class News {
   public:
    void Came(const std::string& mount_point) { came_.push_back(mount_point); }
    void Went(const std::string& mount_point) { went_.push_back(mount_point); }

   private:
    friend class KeptMountTable;
    std::vector<std::string> came_;
    std::vector<std::string> went_;
  };
  // Calls the watch. REQUIRES: no lock is held.
  void Tell(const News& news) const;

  // For stats(); written by the implementation.
  std::atomic<uint64_t> mounts_known_{0};
  std::atomic<uint64_t> updates_{0};
  std::atomic<uint64_t> full_reads_{0};

 private:
  const MountTableSource source_;
  const std::string why_poll_;
  const MountWatch watch_;
};

}  // namespace volumed
