// Inotify: changes in directories. Thin over inotify(7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// One event, in the order in which the kernel queued it. Source: inotify(7).
struct InotifyEvent {
  int wd = -1;        // the watch, as AddWatch returned it; -1 with overflow
  uint32_t mask = 0;  // IN_CREATE, IN_MOVED_TO, IN_IGNORED, ...
  std::string name;   // the entry in the directory; empty when the directory itself is meant
  // Events were lost: read the directories anew.
  bool overflow = false;
};

// Threads: one at a time. Blocks: never, but for AddWatch's path look-up: only trusted paths on
// filesystems that answer.
class Inotify {
 public:
  // Errors (NotApplied): ResourceExhausted if the user has too many instances
  // (fs.inotify.max_user_instances), or the process too many descriptors.
  static Result<Inotify> Create();

  // An EventLoop may watch it: it is readable when ReadEvents() has something. It stays this
  // object's.
  int fd() const { return fd_.get(); }

  // Watches a directory (IN_ONLYDIR is added) and returns the number of the watch. The same
  // directory gives the same number again, with the new mask in place of the old. Errors
  // (NotApplied): NotFound, PermissionDenied, FailedPrecondition (ENOTDIR), ResourceExhausted
  // (fs.inotify.max_user_watches).
  Result<int> AddWatch(const std::string& directory, uint32_t mask);
  // Watches what the path itself names: a symbolic link, not what it leads to. The rest is as for
  // AddWatch, but it may be any kind of file.
  Result<int> AddLinkWatch(const std::string& link, uint32_t mask);
  // An IN_IGNORED event with this number follows; events that were queued before come all the same.
  // InvalidArgument (NotApplied) for a watch that is gone.
  Status RemoveWatch(int wd);

  // Everything that is there now; empty when there is nothing. Errors (NotApplied): errno of
  // read(2); events that were read before it are lost, without an event that says so.
  Result<std::vector<InotifyEvent>> ReadEvents();

 private:
  Result<int> Add(const std::string& path, uint32_t mask);

  explicit Inotify(Descriptor fd) : fd_(std::move(fd)) {}

  Descriptor fd_;
};

}  // namespace volumed
