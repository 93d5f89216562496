#include "os/loop_file.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <iterator>
#include <string_view>

#include "base/descriptor.h"
#include "base/failed_filesystem.h"
#include "os/fault_domain.h"
#include "os/mount_index.h"
#include "os/mount_table.h"
#include "os/place_names.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

// Appended by the kernel once the file has lost its name.
constexpr std::string_view kDeletedFile = " (deleted)";

// In doubt each one is asked.
std::vector<MountEntry> MountsNow() {
  Result<std::vector<MountEntry>> mounts = ReadMountTable();
  return mounts.ok() ? *std::move(mounts) : std::vector<MountEntry>();
}

// All paths lie on the root, and those that are none, too.
bool IsServed(const MountEntry& mount) {
  return mount.mount_point != "/" && (!DomainOfMount(mount).lane.starts_with("filesystem ") ||
                                      mount.fs_type.starts_with("fuse"));
}

}  // namespace

Result<LoopBacking> BackingOf(const std::string& name) {
  const std::string path = "/sys/block/" + name + "/loop/backing_file";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return LoopBacking();  // it is attached to nothing, or gone by now
  std::array<char, PATH_MAX + 16> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0 && errno != ENXIO && errno != ENODEV) {
    return Error::FromErrno(errno, "read " + path, Outcome::kNotApplied);
  }
  std::string_view shown(text.data(), size < 0 ? 0 : static_cast<size_t>(size));
  if (shown.ends_with('\n')) shown.remove_suffix(1);
  LoopBacking backing;
  backing.deleted = shown.ends_with(kDeletedFile);
  if (backing.deleted) shown.remove_suffix(kDeletedFile.size());
  backing.file = shown;
  return backing;
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

bool FileOfLoops::CanBe(const LoopBacking& backing) {
  if (backing.file.empty()) return false;
  if (IsShownAs(backing)) return true;
  if (!mounts_) mounts_ = MountsNow();
  std::vector<MountEntry> around;
  std::copy_if(
      mounts_->begin(), mounts_->end(), std::back_inserter(around),
      [&backing](const MountEntry& mount) { return IsAtOrBelow(backing.file, mount.mount_point); });
  const MountEntry* const closest = ClosestMount(around);
  if (closest == nullptr || !IsServed(*closest)) return true;
  return makedev(closest->device_major, closest->device_minor) == device_;
}

bool FileOfLoops::Answers() const {
  struct stat info = {};
  return file_.valid() && ::fstat(file_.get(), &info) == 0;
}

Result<std::optional<loop_info64>> FileOfLoops::StatusIfOn(int device, const LoopBacking& backing,
                                                           const std::string& what) const {
  loop_info64 info = {};
  if (::ioctl(device, LOOP_GET_STATUS64, &info) != 0) {
    const int why = errno;
    if (why == ENXIO) return std::optional<loop_info64>();
    // The kernel has asked the file of the loop device, which this one would have been, too.
    if (!IsShownAs(backing) && Answers()) return std::optional<loop_info64>();
    return Error::FromErrno(why, what, Outcome::kNotApplied);
  }
  const bool is_this = info.lo_device == device_ && info.lo_inode == inode_;
  return is_this ? std::optional<loop_info64>(info) : std::nullopt;
}

}  // namespace volumed
