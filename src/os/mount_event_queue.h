// MountEventQueue: the kernel's queue of what was mounted, moved and unmounted in one namespace.
// Source: fanotify_init(2), fanotify_mark(2): FAN_REPORT_MNT, Linux 6.15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

struct MountEvents {
  std::vector<uint64_t> mounts;  // unique ids, each once: ask where it is now
  bool lost = false;             // the queue had run full: anything may have changed
};

// Threads: external lock; fd() any. Blocks: never; the destructor some 20 ms, for the kernel.
class MountEventQueue {
 public:
  // Of the namespace that `ns_fd` names. Errors: errno, not applied: EPERM without CAP_SYS_ADMIN,
  // EMFILE when the user has too many groups (fs.fanotify.max_user_groups).
  static Result<MountEventQueue> Open(int ns_fd);

  int fd() const { return group_.get(); }
  // How many events wait. Errors: errno, not applied.
  Result<size_t> Waiting() const;
  // Takes up to one buffer of events, at least `at_least` where there are so many.
  // Errors: errno, not applied; what was taken is then lost.
  Result<MountEvents> Take(size_t at_least);

 private:
  explicit MountEventQueue(Descriptor group) : group_(std::move(group)) {}

  Descriptor group_;
};

}  // namespace volumed
