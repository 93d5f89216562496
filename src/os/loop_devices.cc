#include "os/loop_devices.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/block_device.h"
#include "os/file_effects.h"
#include "os/loop_asker.h"
#include "os/loop_file.h"
#include "os/loop_leftovers.h"
#include "os/mount_index.h"
#include "os/regular_file.h"
#include "os/safe_open.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

// The path as it was given, and without links among its trusted parents.
std::vector<std::string> NamesOf(const SafePath& path) {
  std::vector<std::string> names = {path.Display()};
  const Descriptor root(::open(path.root.c_str(), O_PATH | O_CLOEXEC));
  std::array<char, PATH_MAX> real;
  const ssize_t size =
      root.valid() ? ::readlink(ProcFdPath(root.get()).c_str(), real.data(), real.size()) : -1;
  if (size > 0) {
    const std::string resolved(real.data(), static_cast<size_t>(size));
    names.push_back(SafePath{resolved, path.relative}.Display());
  }
  return names;
}

Descriptor OpenLoopNode(const std::string& name) {
  return Descriptor(::open(("/dev/" + name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

// Of an open file; empty if nobody knows.
std::string ShownPathOf(int file) {
  std::array<char, PATH_MAX> path;
  const ssize_t size = ::readlink(ProcFdPath(file).c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<size_t>(size)) : std::string();
}

// The loop devices of a path: those that the kernel shows with it, and those that have the regular
// file that is there.
class LoopsOfPath {
 public:
  static Result<LoopsOfPath> Of(const SafePath& path) {
    RETURN_IF_ERROR(ValidateSafePath(path));
    LoopsOfPath loops;
    loops.names_ = NamesOf(path);
    ASSIGN_OR_RETURN(loops.file_, FileOfLoops::At(path));
    return loops;
  }

  bool IsShownBelow(const LoopBacking& backing) const {
    return std::any_of(names_.begin(), names_.end(),
                       [&](const std::string& path) { return IsAtOrBelow(backing.file, path); });
  }
  // Others' loop devices may have no node here (a container's /dev).
  Result<bool> HaveSameFile(const std::string& name) {
    const std::string what = "ask /dev/" + name;
    ASSIGN_OR_RETURN(const bool may_have, MayHave(name, what));
    if (!may_have) return false;
    const Descriptor device = OpenLoopNode(name);
    if (!device.valid()) return false;
    ASSIGN_OR_RETURN(const auto status, file_->StatusIfOn(device.get(), what));
    return status.has_value();
  }

  // Whether it was one of them.
  Result<bool> Detach(const std::string& name) {
    ASSIGN_OR_RETURN(const LoopBacking before, BackingOf(name));
    if (before.file.empty()) return false;
    const bool was_shown = IsShownAt(before);
    const std::string what = "detach loop device /dev/" + name;
    if (!was_shown) {
      ASSIGN_OR_RETURN(const bool may_have, MayHave(name, what));
      if (!may_have) return false;
    }
    const Descriptor device = OpenLoopNode(name);
    if (!device.valid() && !was_shown) return false;
    if (!device.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
    // While it is open nobody can give it another file, so what is read now is what is detached.
    ASSIGN_OR_RETURN(const LoopBacking now, BackingOf(name));
    if (!IsShownAt(now)) {
      ASSIGN_OR_RETURN(const bool may_have, MayHave(name, what));
      if (!may_have) return false;
      ASSIGN_OR_RETURN(const auto status, file_->StatusIfOn(device.get(), what));
      if (!status) return false;
    }
    if (::ioctl(device.get(), LOOP_CLR_FD, 0) == 0 || errno == ENXIO) return true;
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }

 private:
  Result<bool> MayHave(const std::string& name, const std::string& what) {
    if (!file_) return false;
    return file_->MayBeOn(name, what);
  }
  bool IsShownAt(const LoopBacking& backing) const {
    return std::find(names_.begin(), names_.end(), backing.file) != names_.end();
  }

  std::vector<std::string> names_{};
  std::optional<FileOfLoops> file_{};
};

// ---- attach -------------------------------------------------------------------------------------

constexpr int64_t kSector = 512;  // of sizes in sysfs, whatever the device's blocks are
constexpr uint32_t kSmallestBlock = 512;
constexpr uint32_t kLargestBlock = 4096;  // the smallest page
constexpr int kAttempts = 64;             // while others take each free device first
constexpr char kLoopControl[] = "/dev/loop-control";

int64_t NumberIn(const std::string& path) {
  return ParseInt64(ReadAttribute(path).value_or("")).value_or(0);
}

LoopEntry EntryOf(const std::string& name, const LoopBacking& backing) {
  const std::string directory = SysfsOfLoop(name);
  LoopEntry entry;
  entry.path = "/dev/" + name;
  entry.file = backing.file;
  entry.deleted = backing.deleted;
  entry.size_bytes = NumberIn(directory + "/size") * kSector;
  entry.block_size = static_cast<uint32_t>(NumberIn(directory + "/queue/logical_block_size"));
  entry.read_only = NumberIn(directory + "/ro") != 0;
  entry.direct_io = NumberIn(directory + "/loop/dio") != 0;
  return entry;
}

// A loop device that is open, so that it keeps its file.
struct OpenLoop {
  std::string name;  // the kernel's
  Descriptor device;
  LoopBacking backing{};
  loop_info64 status{};
};

// The loop device that the file has, or nothing.
Result<std::optional<OpenLoop>> FindOpenLoop(int file, const std::string& what) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  FileOfLoops wanted(info.st_dev, info.st_ino, ShownPathOf(file),
                     Descriptor(::fcntl(file, F_DUPFD_CLOEXEC, 0)));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfAttachedLoops());
  for (const std::string& name : names) {
    const std::string ask = what + ": ask /dev/" + name;
    ASSIGN_OR_RETURN(const bool may_have, wanted.MayBeOn(name, ask));
    if (!may_have) continue;
    OpenLoop loop;
    loop.name = name;
    ASSIGN_OR_RETURN(loop.backing, BackingOf(name));
    loop.device = OpenLoopNode(name);
    if (!loop.device.valid()) {
      // Others' devices may have no node here (a container's /dev); ours has to.
      if (wanted.path() == loop.backing.file) {
        return Error::FromErrno(errno, what + ": open /dev/" + name, Outcome::kNotApplied);
      }
      continue;
    }
    ASSIGN_OR_RETURN(const auto status, wanted.StatusIfOn(loop.device.get(), ask));
    if (!status) continue;
    loop.status = *status;
    return std::optional<OpenLoop>(std::move(loop));
  }
  return std::optional<OpenLoop>();
}

// Without the kernel's module there is no control device, or what has its name is another thing.
Error NoLoopControl(int sys_errno, const std::string& what) {
  const Error error = Error::FromErrno(sys_errno, what + ": " + kLoopControl, Outcome::kNotApplied);
  return Error::FromParts(Code::kFailedPrecondition, error.outcome(), sys_errno,
                          error.message() + ": this node has no loop devices: `modprobe loop`, " +
                              "and see that " + kLoopControl + " is the kernel's");
}

bool IsNoLoopControl(int sys_errno) {
  return sys_errno == ENOENT || sys_errno == ENOTTY || sys_errno == ENODEV || sys_errno == ENXIO;
}

// One that cannot be used is free again.
Status TakeOver(const OpenLoop& loop, const std::string& what) {
  Status cleared = ClearLoopLeftovers(loop.device.get(), loop.name, what);
  if (!cleared.ok()) (void)::ioctl(loop.device.get(), LOOP_CLR_FD);
  return cleared;
}

// Attaches a free one; `flags` are LO_FLAGS_*.
Result<OpenLoop> AttachFree(int file, uint32_t flags, uint32_t block_size,
                            const std::string& what) {
  const Descriptor control(::open(kLoopControl, O_RDWR | O_CLOEXEC));
  if (!control.valid()) {
    if (IsNoLoopControl(errno)) return NoLoopControl(errno, what);
    return Error::FromErrno(errno, what + ": open " + kLoopControl, Outcome::kNotApplied);
  }
  loop_config config = {};
  config.fd = static_cast<unsigned>(file);
  config.block_size = block_size;
  config.info.lo_flags = flags;
  struct stat info = {};
  if (::fstat(file, &info) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  const int access = (flags & LO_FLAGS_READ_ONLY) != 0 ? O_RDONLY : O_RDWR;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) {
      if (errno == ENOTTY) return NoLoopControl(errno, what);
      return Error::FromErrno(errno, what + ": no loop device is free", Outcome::kNotApplied);
    }
    OpenLoop loop;
    loop.name = "loop" + std::to_string(number);
    loop.device = Descriptor(::open(("/dev/" + loop.name).c_str(), access | O_CLOEXEC));
    if (!loop.device.valid()) {
      return Error::FromErrno(errno, what + ": open /dev/" + loop.name, Outcome::kNotApplied);
    }
    if (::ioctl(loop.device.get(), LOOP_CONFIGURE, &config) == 0) {
      if (access == O_RDWR) RETURN_IF_ERROR(TakeOver(loop, what));
      LoopAsker::Remember(loop.name, {info.st_dev, info.st_ino});
      return loop;
    }
    if (errno != EBUSY) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  return Error::FromErrno(EBUSY, what + ": others take each free loop device first",
                          Outcome::kNotApplied);
}

class LoopAttacher {
 public:
  LoopAttacher(const AttachLoop& request, const KernelFeatures& features)
      : request_(request),
        features_(features),
        what_("attach a loop device to " + request.path.Display()) {}

  Result<AttachedLoop> Run() {
    const uint32_t size = request_.block_size;
    if (size < kSmallestBlock || size > kLargestBlock || (size & (size - 1)) != 0) {
      return Refused(Code::kInvalidArgument, "its block size cannot be " + std::to_string(size));
    }
    const int flags = (request_.read_only ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_NOCTTY;
    ASSIGN_OR_RETURN(file_,
                     OpenRegularFile(request_.path, flags, request_.expected, features_, what_));
    struct stat info = {};
    if (::fstat(file_.get(), &info) != 0) {
      return Error::FromErrno(errno, what_, Outcome::kNotApplied);
    }
    if (info.st_size < static_cast<int64_t>(size)) {
      return Refused(Code::kFailedPrecondition, "the file is smaller than a block");
    }
    AttachedLoop loop;
    ASSIGN_OR_RETURN(std::string name, Find());
    if (name.empty()) {
      ASSIGN_OR_RETURN(name, Attach());
      loop.changed = true;
    }
    // It is open meanwhile, so that it keeps its file.
    Result<IdentifiedDevice> device =
        DoIdentifyDevice(IdentifyDevice{SafePath{"/dev/" + name, ""}}).With(what_);
    if (!device.ok()) return loop.changed ? device.error().AsMaybeApplied() : device.error();
    loop.device = *std::move(device);
    loop.direct_io = NumberIn(SysfsOfLoop(name) + "/loop/dio") != 0;
    return loop;
  }

 private:
  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }

  // The kernel's name of the loop device that the file has, which is open then; or nothing.
  Result<std::string> Find() {
    ASSIGN_OR_RETURN(std::optional<OpenLoop> loop, FindOpenLoop(file_.get(), what_));
    if (!loop) return std::string();
    RETURN_IF_ERROR(CheckFits(loop->status, EntryOf(loop->name, loop->backing)));
    // Whoever has attached it may not have lived to do so.
    if (!request_.read_only) {
      RETURN_IF_ERROR(ClearLoopLeftovers(loop->device.get(), loop->name, what_));
    }
    device_ = std::move(loop->device);
    return loop->name;
  }

  // A second device is never attached, so one that is there has to do.
  Status CheckFits(const loop_info64& status, const LoopEntry& entry) const {
    const auto refuse = [&](const std::string& why) {
      return Refused(Code::kFailedPrecondition, "its loop device " + entry.path + " " + why);
    };
    if (status.lo_offset != 0 || status.lo_sizelimit != 0) return refuse("has a part of it alone");
    if ((status.lo_flags & LO_FLAGS_AUTOCLEAR) != 0) {
      return refuse("goes when nobody has it open any more");
    }
    if (entry.read_only != request_.read_only) {
      return refuse(entry.read_only ? "is read-only" : "is not read-only");
    }
    if (entry.block_size == request_.block_size) return OkStatus();
    return refuse("has blocks of " + std::to_string(entry.block_size) + " bytes, not " +
                  std::to_string(request_.block_size));
  }

  Result<std::string> Attach() {
    uint32_t flags = 0;
    if (request_.read_only) flags |= LO_FLAGS_READ_ONLY;
    if (request_.direct_io) flags |= LO_FLAGS_DIRECT_IO;
    ASSIGN_OR_RETURN(OpenLoop loop, AttachFree(file_.get(), flags, request_.block_size, what_));
    device_ = std::move(loop.device);
    return loop.name;
  }

  const AttachLoop& request_;
  const KernelFeatures& features_;
  const std::string what_;
  Descriptor file_;
  Descriptor device_;
};

}  // namespace

Result<Changed> DoDetachLoops(const DetachLoops& request) {
  ASSIGN_OR_RETURN(LoopsOfPath loops, LoopsOfPath::Of(request.path));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfAttachedLoops());
  Changed any;
  for (const std::string& name : names) {
    const Result<bool> detached = loops.Detach(name);
    if (!detached.ok()) return any.changed ? detached.error().AsMaybeApplied() : detached.error();
    any.changed = any.changed || *detached;
  }
  return any;
}

Result<AttachedLoop> DoAttachLoop(const AttachLoop& request, const KernelFeatures& features) {
  return LoopAttacher(request, features).Run();
}

Result<std::string> FindLoopOn(int file, const std::string& what) {
  ASSIGN_OR_RETURN(const std::optional<OpenLoop> loop, FindOpenLoop(file, what));
  return loop ? "/dev/" + loop->name : std::string();
}

Result<PrivateLoop> AttachPrivateLoop(int file, const std::string& what) {
  ASSIGN_OR_RETURN(OpenLoop loop, AttachFree(file, LO_FLAGS_AUTOCLEAR, kSmallestBlock, what));
  return PrivateLoop{"/dev/" + loop.name, std::move(loop.device)};
}

Result<LoopList> DoListLoops(const ListLoops& request) {
  ASSIGN_OR_RETURN(LoopsOfPath loops, LoopsOfPath::Of(request.path));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfAttachedLoops());
  LoopList list;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(LoopBacking backing, BackingOf(name));
    if (backing.file.empty()) continue;
    if (!loops.IsShownBelow(backing)) {
      ASSIGN_OR_RETURN(const bool same, loops.HaveSameFile(name));
      if (!same) continue;
      backing.deleted = false;  // but for another name of the file
    }
    list.loops.push_back(EntryOf(name, backing));
  }
  return list;
}

}  // namespace volumed
