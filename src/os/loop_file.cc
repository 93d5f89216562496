#include "os/loop_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/descriptor.h"
#include "base/failed_filesystem.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "os/fault_domain.h"
#include "os/mount_index.h"
#include "os/mount_table.h"
#include "os/place_names.h"
#include "os/safe_open.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

constexpr char kPartitions[] = "/proc/partitions";
constexpr uint64_t kSectorBytes = 512;  // of sysfs
constexpr auto kServedLately = std::chrono::seconds(1);
// Appended by the kernel once the file has lost its name.
constexpr std::string_view kDeletedFile = " (deleted)";

// In doubt each one is asked.
std::vector<MountEntry> MountsNow() {
  Result<std::vector<MountEntry>> mounts = ReadMountTable();
  return mounts.ok() ? *std::move(mounts) : std::vector<MountEntry>();
}

bool IsServed(const MountEntry& mount) {
  return !DomainOfMount(mount).lane.starts_with("filesystem ") || mount.fs_type.starts_with("fuse");
}

std::vector<MountEntry> ServedOf(const std::vector<MountEntry>& mounts) {
  std::vector<MountEntry> served;
  std::ranges::copy_if(mounts, std::back_inserter(served), IsServed);
  return served;
}

// Those that servers answered a moment ago: whoever attaches many devices does not read the whole
// table for each. Threads: any.
std::vector<MountEntry> ServedLately() {
  static Mutex mu;
  static std::vector<MountEntry> served GUARDED_BY(mu);
  static std::optional<std::chrono::steady_clock::time_point> read_at GUARDED_BY(mu);
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mu);
  if (!read_at || now - *read_at > kServedLately) {
    served = ServedOf(MountsNow());
    read_at = now;
  }
  return served;
}

LoopBacking BackingIn(std::string_view shown) {
  if (shown.ends_with('\n')) shown.remove_suffix(1);
  LoopBacking backing;
  backing.deleted = shown.ends_with(kDeletedFile);
  if (backing.deleted) shown.remove_suffix(kDeletedFile.size());
  backing.file = shown;
  return backing;
}

dev_t DeviceOf(const MountEntry& mount) { return makedev(mount.device_major, mount.device_minor); }

}  // namespace

Result<std::vector<std::string>> NamesOfAttachedLoops() {
  std::ifstream partitions(kPartitions);
  if (!partitions.is_open()) {
    return Error::FromErrno(errno, std::string("open ") + kPartitions, Outcome::kNotApplied);
  }
  std::vector<std::string> names;
  std::string line;
  while (std::getline(partitions, line)) {
    const size_t blank = line.find_last_of(' ');
    if (blank == std::string::npos) continue;
    const auto number = StripPrefix(std::string_view(line).substr(blank + 1), "loop");
    // The partitions of a loop device, as loop3p1, have its file as well.
    const bool is_whole = number && ParseUint64(*number);
    if (is_whole) names.push_back(line.substr(blank + 1));
  }
  if (!partitions.bad()) return names;
  return Error::FromErrno(EIO, std::string("read ") + kPartitions, Outcome::kNotApplied);
}

Result<LoopBacking> BackingOf(const std::string& name) {
  if (const auto shown = LoopAsker::ShownFile(name)) return BackingIn(*shown);
  const std::string path = SysfsOfLoop(name) + "/loop/backing_file";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return LoopBacking();  // it is attached to nothing, or gone by now
  std::array<char, PATH_MAX + 16> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0 && errno != ENXIO && errno != ENODEV) {
    return Error::FromErrno(errno, "read " + path, Outcome::kNotApplied);
  }
  return BackingIn(std::string_view(text.data(), size < 0 ? 0 : static_cast<size_t>(size)));
}

Result<std::optional<FileOfLoops>> FileOfLoops::At(const SafePath& path) {
  Result<Descriptor> file = OpenSafePath(path, O_PATH | O_NOFOLLOW);
  if (!file.ok()) {
    const int why = file.error().sys_errno();
    const bool none =
        why == ENOENT || why == ENOTDIR || why == ENAMETOOLONG || why == ELOOP || why == EXDEV;
    if (none || IsFailedFilesystem(why)) return std::optional<FileOfLoops>();
    return file.error();
  }
  struct stat info = {};
  if (::fstat(file->get(), &info) != 0) {
    if (IsFailedFilesystem(errno)) return std::optional<FileOfLoops>();
    return Error::FromErrno(errno, "look at " + path.Display(), Outcome::kNotApplied);
  }
  if (!S_ISREG(info.st_mode)) return std::optional<FileOfLoops>();
  return std::optional<FileOfLoops>(
      FileOfLoops(info.st_dev, info.st_ino, path.Display(), *std::move(file)));
}

const FileOfLoops::Mounts& FileOfLoops::MountsOfNode() {
  if (mounts_) return *mounts_;
  std::vector<MountEntry> all = MountsNow();
  std::vector<MountEntry> served = ServedOf(all);
  return mounts_.emplace(Mounts{std::move(all), std::move(served)});
}

bool FileOfLoops::IsShownAs(const LoopBacking& backing) const {
  if (backing.file == path_) return true;
  const bool has_directory = backing.file.find('/', 1) != std::string::npos;
  return has_directory && path_.ends_with(backing.file);
}

std::optional<MountEntry> FileOfLoops::MountAround(const std::string& path) {
  std::vector<MountEntry> around;
  std::ranges::copy_if(MountsOfNode().all, std::back_inserter(around),
                       [&path](const auto& mount) { return IsAtOrBelow(path, mount.mount_point); });
  const MountEntry* const closest = ClosestMount(around);
  if (closest == nullptr || closest->mount_point == "/") return std::nullopt;
  return *closest;
}

bool FileOfLoops::HasNamesOf(const LoopBacking& backing) const {
  const std::filesystem::path shown(backing.file);
  const std::filesystem::path own(path_);
  if (!shown.has_filename()) return true;
  if (shown.filename() != own.filename()) return false;
  const std::filesystem::path directory = shown.parent_path().filename();
  return directory.empty() || directory == own.parent_path().filename();
}

bool FileOfLoops::CanBe(const LoopBacking& backing) {
  if (backing.file.empty()) return false;
  if (IsShownAs(backing)) return true;
  const auto is_around = [&backing](const MountEntry& mount) {
    return IsAtOrBelow(backing.file, mount.mount_point);
  };
  // Most nodes have few mounts of servers and many others. To ask one too many costs a second.
  if (std::ranges::none_of(ServedLately(), is_around)) return true;
  if (std::ranges::none_of(MountsOfNode().served, is_around)) return true;
  const std::optional<MountEntry> closest = MountAround(backing.file);
  return !closest || !IsServed(*closest) || DeviceOf(*closest) == own_.device;
}

// A write lease is given to the only one that has a file open. Whoever opens it meanwhile waits for
// the lease to be given back, which SIGURG, that does nothing, asks for. Source: fcntl(2).
bool FileOfLoops::IsOpenElsewhere() const {
  int file = file_.get();
  Descriptor opened;
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0) return true;
  if ((flags & O_PATH) != 0) {
    constexpr int kFlags = O_RDONLY | O_NOATIME | O_NONBLOCK | O_CLOEXEC;
    opened = Descriptor(::open(ProcFdPath(file).c_str(), kFlags));
    file = opened.get();
  }
  if (::fcntl(file, F_SETSIG, SIGURG) != 0) return true;
  if (::fcntl(file, F_SETLEASE, F_WRLCK) != 0) return true;
  ::fcntl(file, F_SETLEASE, F_UNLCK);
  return false;
}

bool FileOfLoops::HasIt(const std::string& name) {
  if (const std::optional<LoopFile> known = LoopAsker::Known(name)) return *known == own_;
  const Result<LoopBacking> backing = BackingOf(name);
  if (!backing.ok() || !CanBe(*backing)) return false;
  const Result<LoopAnswer> answer = asker_->Ask(name);
  return answer.ok() && answer->kind == LoopAnswer::Kind::kFile && answer->file == own_;
}

bool FileOfLoops::IsOnAnotherThan(const std::string& name) {
  const Result<std::vector<std::string>> names = NamesOfAttachedLoops();
  return names.ok() && std::ranges::any_of(*names, [&](const std::string& other) {
           return other != name && HasIt(other);
         });
}

bool FileOfLoops::IsOfAnother(const std::string& name, const LoopBacking& backing) {
  if (!IsOpenElsewhere()) return true;
  if (!IsOnAnotherThan(name) || HasNamesOf(backing)) return false;
  const std::optional<uint64_t> own_bytes = SizeIfAnswers();
  if (!own_bytes) return false;
  const std::optional<MountEntry> closest = MountAround(backing.file);
  if (closest && DeviceOf(*closest) != own_.device) return true;
  const auto sectors = ParseUint64(ReadAttribute(SysfsOfLoop(name) + "/size").value_or(""));
  return sectors && *sectors != *own_bytes / kSectorBytes;
}

std::optional<uint64_t> FileOfLoops::SizeIfAnswers() const {
  struct statx info = {};
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_FORCE_SYNC;
  const bool answers =
      file_.valid() && ::statx(file_.get(), "", kFlags, STATX_BASIC_STATS, &info) == 0;
  return answers ? std::optional<uint64_t>(info.stx_size) : std::nullopt;
}

bool FileOfLoops::IsOfServer() {
  return std::ranges::any_of(MountsOfNode().served, [this](const MountEntry& mount) {
    return DeviceOf(mount) == own_.device;
  });
}

Result<bool> FileOfLoops::MayBeOn(const std::string& name, const std::string& what) {
  if (const std::optional<LoopFile> known = LoopAsker::Known(name)) return *known == own_;
  ASSIGN_OR_RETURN(const LoopBacking backing, BackingOf(name));
  return MayBeOn(name, backing, what);
}

Result<bool> FileOfLoops::MayBeOn(const std::string& name, const LoopBacking& backing,
                                  const std::string& what) {
  using Kind = LoopAnswer::Kind;
  if (!CanBe(backing)) return false;
  ASSIGN_OR_RETURN(LoopAnswer answer, asker_->Ask(name));
  const bool has_no_answer = answer.kind == Kind::kFailed || answer.kind == Kind::kSilent;
  if (has_no_answer && !IsShownAs(backing) && SizeIfAnswers()) {
    // The kernel has asked the file of the loop device; if it were this one, it would have answered
    // by now. But a server may answer the one question and have lost the other.
    ASSIGN_OR_RETURN(answer, asker_->Ask(name));
    if (answer.kind == Kind::kFailed) return false;
    if (answer.kind == Kind::kSilent && !IsOfServer()) return false;
  }
  switch (answer.kind) {
    case Kind::kFile:
      return answer.file == own_;
    case Kind::kNone:
      return false;
    case Kind::kNoNode:
      return true;
    case Kind::kFailed:
      return Error::FromErrno(answer.error, what, Outcome::kNotApplied);
    case Kind::kBusy:
      if (IsShownAs(backing)) return true;
      // Whoever changes it may wait for its file, and for ever.
      if (IsOfAnother(name, backing)) return false;
      return Error::NotApplied(Code::kUnavailable,
                               what + ": somebody changes it, and it may have this file");
    case Kind::kSilent:
      break;
  }
  return Error::NotApplied(
      Code::kUnavailable,
      what + ": the filesystem of its file does not answer, and it may have this file");
}

Result<std::optional<loop_info64>> FileOfLoops::StatusIfOn(int device,
                                                           const std::string& what) const {
  loop_info64 info = {};
  if (::ioctl(device, LOOP_GET_STATUS64, &info) != 0) {
    if (errno == ENXIO) return std::optional<loop_info64>();
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  const bool is_this = LoopFile{info.lo_device, info.lo_inode} == own_;
  return is_this ? std::optional<loop_info64>(info) : std::nullopt;
}

}  // namespace volumed
