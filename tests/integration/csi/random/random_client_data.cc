// What clients write to volumes, and read of them, where these are published.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "integration/agent/agent_fixture.h"
#include "integration/csi/random/random_client.h"

namespace volumed::random_clients {
namespace {

constexpr char kFile[] = "log";

// A volume at its target. As long as `mount` or `file` is open nothing can be taken from there.
struct OpenVolume {
  Descriptor mount;
  Descriptor file;  // not valid, without a problem: nobody has written to it
  bool is_read_only = false;
  std::string problem;  // why it is not there
};

std::string Errno(const std::string& what) { return what + ": " + std::strerror(errno); }

// The directory below which all targets are is on another filesystem than any volume.
OpenVolume OpenFiles(const std::string& co, const std::string& path, bool writes) {
  OpenVolume open;
  open.mount = Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat at_co = {};
  struct stat at_target = {};
  if (!open.mount.valid() || ::stat(co.c_str(), &at_co) != 0 ||
      ::fstat(open.mount.get(), &at_target) != 0) {
    open.problem = Errno(path);
  } else if (at_co.st_dev == at_target.st_dev) {
    open.problem = path + " is no mount";
  }
  if (!open.problem.empty()) return open;
  const int flags = writes ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC;
  open.file = Descriptor(::openat(open.mount.get(), kFile, flags, 0600));
  open.is_read_only = !open.file.valid() && errno == EROFS;
  const bool is_new = !writes && errno == ENOENT;
  if (!open.file.valid() && !open.is_read_only && !is_new) open.problem = Errno(path);
  return open;
}

// A device that is open cannot become another file's, so it is looked at afterwards.
OpenVolume OpenDevice(const std::string& path, const std::string& id, bool writes) {
  OpenVolume open;
  open.file = Descriptor(::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  struct stat info = {};
  if (!open.file.valid() || ::fstat(open.file.get(), &info) != 0) {
    open.problem = Errno(path);
  } else if (!S_ISBLK(info.st_mode)) {
    open.problem = path + " is no device";
  } else {
    const std::string file =
        ReadText("/sys/dev/block/" + std::to_string(major(info.st_rdev)) + ":" +
                 std::to_string(minor(info.st_rdev)) + "/loop/backing_file");
    if (file.find(id) == std::string::npos) open.problem = path + " is a device of " + file;
  }
  return open;
}

OpenVolume OpenAt(const Places& places, const VolumeTruth& volume, const std::string& path,
                  bool writes) {
  if (volume.plan->kind == VolumeKind::kBlock) return OpenDevice(path, volume.id, writes);
  return OpenFiles(places.co, path, writes);
}

// What is behind the end of the file was never written. Nullopt: it cannot be read.
std::optional<Blocks> ReadAll(const OpenVolume& open) {
  Blocks blocks = EmptyBlocks();
  if (!open.file.valid()) return blocks;
  for (size_t place = 0; place < kBlocks; ++place) {
    const ssize_t got = ::pread(open.file.get(), blocks[place].data(), kBlockBytes,
                                static_cast<off_t>(place * kBlockBytes));
    if (got < 0) return std::nullopt;
  }
  return blocks;
}

bool WriteOne(const OpenVolume& open, uint64_t tag, uint64_t number) {
  const std::string block = BlockOfWrite(tag, number);
  const auto offset = static_cast<off_t>(PlaceOfWrite(number) * kBlockBytes);
  return ::pwrite(open.file.get(), block.data(), block.size(), offset) ==
             static_cast<ssize_t>(block.size()) &&
         ::fsync(open.file.get()) == 0;
}

}  // namespace

// Holds the content against the model, which learns from it what a cut had. REQUIRES: the lock of
// the volume's content. Empty, or what is wrong.
std::string Client::Learn(const VolumeTruth& volume, const Blocks& blocks) {
  WriteHistory& history = *volume.history;
  if (history.knows_base()) {
    return PrefixBetween(history, blocks, history.acknowledged(), history.issued()).problem;
  }
  const Prefix prefix = volume.origin->Learn(blocks);
  if (!prefix.problem.empty()) return prefix.problem;
  history.Continue(volume.origin->of(), prefix.last);
  world_.Count(volume.plan->of_snapshot ? "content of a snapshot" : "content of a clone");
  return "";
}

bool Client::Verify(const SharedVolume& volume, const std::string& path) {
  const CsiFact& published = world_.Published(*volume, path);
  const auto before = world_.VersionIfThere(published);
  if (!before) return false;
  const MutexLock lock(volume->content);
  OpenVolume open = OpenAt(places_, *volume, path, /*writes=*/false);
  std::optional<Blocks> blocks;
  if (open.problem.empty()) blocks = ReadAll(open);
  if (open.problem.empty() && !blocks) open.problem = Errno("read " + path);
  // Somebody may take it away just now.
  if (world_.VersionIfThere(published) != before) return false;
  if (open.problem.empty()) open.problem = Learn(*volume, *blocks);
  world_.Count("verified");
  if (open.problem.empty()) return true;
  Violate("volume " + volume->id + ", published at " + path + ": " + open.problem);
  return false;
}

// Each write is on the disk before the next one begins.
void Client::Write(const SharedVolume& volume) {
  const std::string path = places_.Target(volume->slot);
  const CsiFact& published = world_.Published(*volume, path);
  const auto before = world_.VersionIfThere(published);
  if (!before) return;
  const MutexLock lock(volume->content);
  OpenVolume open = OpenAt(places_, *volume, path, /*writes=*/true);
  if (world_.VersionIfThere(published) != before) return;
  WriteHistory& history = *volume->history;
  if (open.problem.empty() && !open.file.valid()) open.problem = "it is read-only";
  if (open.problem.empty() && !history.knows_base()) {
    const std::optional<Blocks> blocks = ReadAll(open);
    open.problem = blocks ? Learn(*volume, *blocks) : Errno("read");
  }
  for (size_t left = 1 + Dice(4); left > 0 && open.problem.empty(); --left) {
    const uint64_t number = history.Issue(world_.Now());
    if (WriteOne(open, history.tag(), number)) {
      history.Acknowledge(number, world_.Now());
      world_.Count("written");
    } else {
      open.problem = Errno("write " + std::to_string(number));
    }
  }
  if (!open.problem.empty()) {
    Violate("volume " + volume->id + ", published at " + path + ": " + open.problem);
  }
}

}  // namespace volumed::random_clients
