// Fault domains of paths: what a path of the node hangs with, found out without touching it.
#pragma once

#include <string>
#include <vector>

#include "base/lanes.h"
#include "os/mount_entry.h"

namespace volumed {

// What calls of one domain share, and what a person calls it.
struct FaultDomain {
  std::string lane;  // "filesystem 0:45", "nfs:nas-1"
  std::string name;  // "filesystem 0:45 (fuse.sshfs at /mnt/far)", "NFS server nas-1"
};

// Threads: any.
class FaultDomains {
 public:
  virtual ~FaultDomains() = default;
  // What CallOptions::domain stands for now. Touches no filesystem but the root's own. Blocks: for
  // the mount table, and for the root's filesystem if the domain is a path.
  virtual FaultDomain Locate(const std::string& domain) = 0;
  // Of a lane that Locate() has named. Blocks: never.
  virtual LaneHealth HealthOf(const std::string& lane) const = 0;
  // Why the lane is closed, in words for people that name it and say since when: "CSI driver x is
  // gone since ..: its socket refuses connections". Empty: it is not closed, or nobody knows why.
  // Blocks: never.
  virtual std::string WhyClosed(const std::string& /*lane*/) const { return ""; }
  // Of a lane that is closed to what takes away: when that goes on all the same, in words for
  // people. Empty: not before the lane is open. Blocks: never.
  virtual std::string WhenTakenAwayWithout(const std::string& /*lane*/) const { return ""; }
  // What is mounted at, above or below this directory of the agent's own root, as was last known.
  // Blocks: never.
  struct KnownMount {
    std::string mount_point;
    bool may_hang = false;  // it is neither of the root's filesystem nor in memory
  };
  virtual std::vector<KnownMount> MountsAround(const std::string& /*directory*/) const {
    return {};
  }
};

// The text of `path` with links replaced as long as they lie on the filesystem that is mounted at
// "/": from the first other mount on, the rest is as it was given, because looking there may hang.
// What does not exist stays as it is, too. So a link on the node's root that leads to a dead mount
// counts as that mount; a link on another filesystem counts as the filesystem that it lies on,
// until a worker of that has found it (WorkerKernel). Threads: any. Blocks: for the root's
// filesystem. Errors: none; in doubt, the path itself.
std::string FollowLinksOnRoot(const std::string& path);

// Whether FollowLinksOnRoot() would leave an absolute, clean path as it is, as one system call
// tells that waits for nothing: false also where the kernel would first have to read a directory,
// or where something is mounted on the way. Threads: any. Blocks: never.
bool HasNoLinkOnRoot(const std::string& path);

// What the mount is of. A network filesystem is its server, so that a hostPath on an NFS mount
// shares the lane of the server's other volumes; any other is its number. Pure.
FaultDomain DomainOfMount(const MountEntry& mount);

// The lane of the mount; empty if it does not hang by itself: it is of the filesystem that has
// `own_lane`, or in memory. Pure.
std::string LaneBeside(const std::string& own_lane, const MountEntry& mount);

// Of the mounts around a path in the table's order, the one that it lies on; null if there is none.
// Pure.
const MountEntry* ClosestMount(const std::vector<MountEntry>& around);

// The domain of an absolute path, out of the mounts around it (ListMounts::around) in the table's
// order. A path below /dev stands for the device itself. Pure.
FaultDomain DomainOfPath(const std::string& path, const std::vector<MountEntry>& around);

}  // namespace volumed
