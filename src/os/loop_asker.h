// LoopAsker: which file a loop device has, asked by a child process that may be left waiting.
//
// Nothing that the kernel shows of a loop device tells for certain which file it has: a path may be
// one of another mount namespace, or of a mount that is gone. Its device and inode do, but for them
// the kernel asks the file's filesystem, and a server that does not answer holds up whoever asks.
// Source: Linux drivers/block/loop.c (loop_get_status), fs/fuse/dev.c (request_wait_answer).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

struct LoopFile {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const LoopFile&, const LoopFile&) = default;
};

// Where sysfs has a loop device ("loop3").
inline std::string SysfsOfLoop(const std::string& name) {
  return "/sys/devices/virtual/block/" + name;
}

struct LoopAnswer {
  enum class Kind {
    kFile,    // it has `file`
    kNone,    // it has none
    kFailed,  // `error`, as the filesystem of its file has it
    kSilent,  // the filesystem of its file has not answered yet
    kBusy,    // somebody changes it, or nobody can tell what is waited for
    kNoNode,  // it cannot be opened: `error`
  };
  Kind kind = Kind::kNone;
  LoopFile file{};
  int error = 0;
};

// What was found is remembered for as long as the loop device keeps its file, by the process: a
// loop device is asked once. So is the child that waits: there is one for each loop device at most.
// Threads: one at a time. Blocks: for a second at most for a loop device that does not answer, and
// never for one that has not answered since it was asked before.
class LoopAsker {
 public:
  LoopAsker() = default;
  ~LoopAsker();
  LoopAsker(const LoopAsker&) = delete;
  LoopAsker& operator=(const LoopAsker&) = delete;

  // Of the kernel's name ("loop3"). Errors, not applied: errno's of starting a process; Unavailable
  // if somebody ends it each time.
  Result<LoopAnswer> Ask(const std::string& name);
  // What is remembered of it; nothing if it has to be asked. Blocks: never.
  static std::optional<LoopFile> Known(const std::string& name);
  // What sysfs shows as its file, of one that is remembered; nothing if it has to be looked up, as
  // of one that has another file by now. Blocks: never.
  static std::optional<std::string> ShownFile(const std::string& name);
  // What is known without asking, as it was just attached. Blocks: never.
  static void Remember(const std::string& name, const LoopFile& file);

 private:
  Status Start();
  void End();

  pid_t pid_ = -1;
  Descriptor socket_;
};

}  // namespace volumed
