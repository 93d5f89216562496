// The file of a loop device, as the kernel shows it and as the loop device is asked for it.
//
// To ask a loop device for its file makes the kernel ask the file's filesystem, so a server that
// does not answer holds up whoever asks. Source: Linux drivers/block/loop.c (loop_get_status).
#pragma once

#include <linux/loop.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/loop_asker.h"
#include "os/mount_entry.h"
#include "os/safe_path.h"

namespace volumed {

struct LoopBacking {
  std::string file{};  // empty: it has none
  bool deleted = false;
};

// The kernel's names ("loop3") of the loop devices that have a file of at least 512 bytes. One that
// was detached keeps its name for ever, so a node has many more that have none. One read, whatever
// there is. Threads: any. Blocks: never. Errors, not applied: errno of reading it.
// Source: proc(5), /proc/partitions.
Result<std::vector<std::string>> NamesOfAttachedLoops();

// What the kernel shows as the file of this loop device ("loop3"). Threads: any. Blocks: never.
// Errors, not applied: errno of reading it.
Result<LoopBacking> BackingOf(const std::string& name);

// A file as loop devices are asked for theirs. The same file has another path once its filesystem
// is mounted elsewhere, too, and none at all once that mount was taken away under the loop device.
// Threads: one at a time.
class FileOfLoops {
 public:
  // `file`: the file itself, open in whatever way; without it nobody asks whether it answers.
  FileOfLoops(dev_t device, ino_t inode, std::string path, Descriptor file = Descriptor())
      : own_{device, inode}, path_(std::move(path)), file_(std::move(file)) {}

  // The regular file that is at the path, if one is, and its filesystem has not failed: of one that
  // has nobody can say which file it is, and its loop devices are known by what the kernel shows
  // alone. Blocks: as the path's filesystem does. Errors, not applied: errno of looking there.
  static Result<std::optional<FileOfLoops>> At(const SafePath& path);
  const std::string& path() const { return path_; }

  // Whether the loop device of this name may have the file by what it says itself. Nobody asks
  // those whose file is a server's that is not this file's own. One whose filesystem has failed or
  // does not answer has another one, as long as this file answers and is not shown there: else a
  // disk of somebody else would stop each attachment. So has one that somebody changes for long, if
  // nobody else has this file open, or by what is shown (IsOfAnother). True also if it cannot be
  // opened. To be called before it is opened, which may hang as well. Costs one small read for a
  // loop device that was asked before. Blocks: for a second for one that does not answer
  // (LoopAsker), and as this file does. Errors, not applied: errno of asking, with `what`;
  // Unavailable if one that may have this file does not answer.
  Result<bool> MayBeOn(const std::string& name, const std::string& what);
  // The same of one that was never asked and is shown with this backing.
  Result<bool> MayBeOn(const std::string& name, const LoopBacking& backing,
                       const std::string& what);

  // What the open loop device, which MayBeOn, does with this file; nothing if it has another one or
  // none. Blocks: as this file does. Errors, not applied: errno of asking, with `what`.
  Result<std::optional<loop_info64>> StatusIfOn(int device, const std::string& what) const;

 private:
  // Whether a loop device with this backing may be asked whether it has the file. Blocks: never.
  bool CanBe(const LoopBacking& backing);
  // What is shown of a file whose mount was taken away is the end of the file's path. Its last name
  // alone says nothing, as each volume's file has the same: the directory, which is the volume's,
  // has to be in it.
  bool IsShownAs(const LoopBacking& backing) const;
  // Whether what is shown has the last two names of the file's path, which stay the same wherever
  // its filesystem is mounted; one with fewer names may have lost them.
  bool HasNamesOf(const LoopBacking& backing) const;
  // Of a loop device that nobody can ask, as somebody changes it: whether it has another file. That
  // is certain if nobody else has this one open. If another loop device has it, what is shown
  // decides, for then there is none that could come to be a second one. Blocks: as this file does.
  bool IsOfAnother(const std::string& name, const LoopBacking& backing);
  // Whether anybody else, or the kernel for a loop device, has the file open. True in doubt.
  bool IsOpenElsewhere() const;
  // Whether another loop device certainly has the file. Blocks: as MayBeOn().
  bool IsOnAnotherThan(const std::string& name);
  bool HasIt(const std::string& name);
  // The file's size, for which what nobody has in memory is asked for; nothing if that fails.
  std::optional<uint64_t> SizeIfAnswers() const;
  bool IsOfServer();
  // The node's mounts, read once they are needed, and those of them that servers answer.
  struct Mounts {
    std::vector<MountEntry> all;
    std::vector<MountEntry> served;
  };
  const Mounts& MountsOfNode();
  // The mount that the path lies on, as the agent sees it; nothing if that is the root, as all
  // paths lie on that, and those that are none, too.
  std::optional<MountEntry> MountAround(const std::string& path);

  LoopFile own_;
  std::string path_;
  Descriptor file_;
  std::optional<Mounts> mounts_{};
  std::unique_ptr<LoopAsker> asker_ = std::make_unique<LoopAsker>();
};

}  // namespace volumed
