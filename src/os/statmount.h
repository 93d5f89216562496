// statmount(2) and listmount(2): what the kernel says of one mount, without reading the table.
// Mounts are named by their unique id, which is never used again while the node runs; mountinfo's
// id, MountEntry::mount_id, is. Nothing here touches a mounted filesystem.
// Source: statmount(2), listmount(2), Linux include/uapi/linux/mount.h@v6.18.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel_requests.h"
#include "os/mount_entry.h"
#include "os/mount_places.h"

namespace volumed {

// A mount namespace, so that any thread may ask about it. Needs Linux 6.11.
// Threads: any. Blocks: never (microseconds per mount).
// Errors: the errno of the call, not applied.
class StatMounts {
 public:
  // The namespace that `ns_fd`, an open /proc/.../ns/mnt, names.
  static Result<StatMounts> Of(int ns_fd);

  // Unique ids of all mounts that the calling process can reach, in the order of mountinfo.
  Result<std::vector<uint64_t>> Ids() const;
  // Where it is mounted now; nothing when it is not, or not below this process's root.
  Result<std::optional<MountPlace>> Place(uint64_t unique_id) const;
  // The line of mountinfo, as it is now; nothing as above. Needs Linux 6.13: Unimplemented where
  // the kernel leaves a field out.
  Result<std::optional<MountEntry>> Entry(uint64_t unique_id) const;

 private:
  explicit StatMounts(uint64_t namespace_id) : namespace_id_(namespace_id) {}

  uint64_t namespace_id_;
};

// The mount that a descriptor was opened on.
struct MountOfFile {
  std::string mount_point;
  bool shared = false;  // has peers, or could have
};

// Of the calling thread's namespace; nothing when the mount is not attached there. Two system calls
// with the feature statmount, without it a read of the whole table.
// Threads: any. Blocks: never on the filesystem. Errors: errno of the calls, not applied.
Result<std::optional<MountOfFile>> FindMountOf(int fd, const KernelFeatures& features);
// The same with all of its line of mountinfo, of which a statmount before Linux 6.13 leaves fields
// out: then the whole table is read.
Result<std::optional<MountEntry>> FindMountEntryOf(int fd, const KernelFeatures& features);

}  // namespace volumed
