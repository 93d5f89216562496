#include "os/loop_devices.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/strings.h"
#include "os/file_effects.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr char kBlockDevices[] = "/sys/block";
// Appended by the kernel once the file has lost its name.
constexpr std::string_view kDeleted = " (deleted)";

// What the kernel shows as the file of this loop device; empty when it has none.
Result<std::string> BackingFile(const std::string& name) {
  const std::string path = std::string(kBlockDevices) + "/" + name + "/loop/backing_file";
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return std::string();  // it is attached to nothing, or gone by now
  std::array<char, PATH_MAX + 16> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0 && errno != ENXIO && errno != ENODEV) {
    return Error::FromErrno(errno, "read " + path, Outcome::kNotApplied);
  }
  std::string_view shown(text.data(), size < 0 ? 0 : static_cast<size_t>(size));
  if (shown.ends_with('\n')) shown.remove_suffix(1);
  if (shown.ends_with(kDeleted)) shown.remove_suffix(kDeleted.size());
  return std::string(shown);
}

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

Result<bool> DetachOne(const std::string& name, const std::vector<std::string>& files) {
  const auto is_ours = [&files](const std::string& file) {
    return std::find(files.begin(), files.end(), file) != files.end();
  };
  ASSIGN_OR_RETURN(const std::string before, BackingFile(name));
  if (!is_ours(before)) return false;
  const std::string what = "detach loop device /dev/" + name;
  const Descriptor device(::open(("/dev/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!device.valid()) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  // While it is open nobody can give it another file, so what is read now is what is detached.
  ASSIGN_OR_RETURN(const std::string now, BackingFile(name));
  if (!is_ours(now)) return false;
  if (::ioctl(device.get(), LOOP_CLR_FD, 0) == 0 || errno == ENXIO) return true;
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

}  // namespace

Result<Changed> DoDetachLoops(const DetachLoops& request) {
  RETURN_IF_ERROR(ValidateSafePath(request.path));
  const std::vector<std::string> files = NamesOf(request.path);
  ASSIGN_OR_RETURN(const DirectoryListing devices,
                   DoListDirectory(ListDirectory{SafePath{kBlockDevices, ""}}));
  Changed any;
  for (const DirectoryEntry& entry : devices.entries) {
    if (!entry.name.starts_with("loop")) continue;
    const Result<bool> detached = DetachOne(entry.name, files);
    if (!detached.ok()) return any.changed ? detached.error().AsMaybeApplied() : detached.error();
    any.changed = any.changed || *detached;
  }
  return any;
}

}  // namespace volumed
