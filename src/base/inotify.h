// Inotify: changes in directories. Thin over inotify(7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

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
  // ResourceExhausted (NotApplied) when the user has too many instances.
  static Result<Inotify> Create();

  // For an EventLoop: readable when ReadEvents has something.
  int fd() const { return fd_.get(); }

  // Watches a directory (IN_ONLYDIR is added). The same directory gives the same number again, with
  // the new mask. Errors (NotApplied): NotFound, FailedPrecondition (ENOTDIR), ResourceExhausted.
  Result<int> AddWatch(const std::string& directory, uint32_t mask);
  // Watches what the path names itself: a symbolic link, not what it leads to. Else as AddWatch.
  Result<int> AddLinkWatch(const std::string& link, uint32_t mask);
  // InvalidArgument (NotApplied) for a watch that is gone. An IN_IGNORED event follows.
  Status RemoveWatch(int wd);

  // Everything that is there now; empty when there is nothing.
  Result<std::vector<InotifyEvent>> ReadEvents();

 private:
  Result<int> Add(const std::string& path, uint32_t mask);

  explicit Inotify(Descriptor fd) : fd_(std::move(fd)) {}

  Descriptor fd_;
};

}  // namespace volumed
