#include "os/cgroup_limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "os/block_device.h"
#include "os/directory_reader.h"
#include "os/io_limits.h"
#include "os/mount_table.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr size_t kMostCgroups = 1024;  // of one request, of version 1: a pod has a few

// Whether the mount shows a hierarchy of cgroups from its root on.
bool IsWholeHierarchy(const MountEntry& mount) {
  return (mount.fs_type == "cgroup2" || mount.fs_type == "cgroup") && mount.root == "/";
}

bool IsGone(const Error& error) {
  return error.sys_errno() == ENOENT || error.sys_errno() == ENODEV;
}

// A cgroup that is open. Another one may have its name by now.
struct OpenCgroup {
  Descriptor directory;
  std::string path;
};

class CgroupLimiter {
 public:
  CgroupLimiter(const SetIoLimits& request, std::string number)
      : request_(request),
        number_(std::move(number)),
        what_("limit what is asked of " + request.device) {}

  Result<CgroupIoLimits> Run() {
    ASSIGN_OR_RETURN(const std::vector<MountEntry> mounts, ReadMountTable());
    std::string without_limits;
    for (const MountEntry& mount : mounts) {
      if (!IsWholeHierarchy(mount)) continue;
      for (const std::string& name : request_.cgroups) {
        ASSIGN_OR_RETURN(std::optional<OpenCgroup> cgroup, Open(mount, name));
        if (!cgroup) continue;
        answer_.cgroup = cgroup->path;
        if (Has(*cgroup, kIoMaxFile)) return Limit(*cgroup);
        if (Has(*cgroup, kBlkioThrottles[0].file)) return LimitEach(std::move(*cgroup));
        without_limits = cgroup->path;
      }
    }
    if (!without_limits.empty()) {
      return Refused("the cgroup " + without_limits +
                     " is there, but no hierarchy of cgroups limits devices for it (io.max of "
                     "version 2, blkio of version 1)");
    }
    return Refused("there is no cgroup " + request_.cgroups.front() + ", nor one of " +
                   std::to_string(request_.cgroups.size() - 1) + " other names that it may have");
  }

 private:
  Error Refused(const std::string& why) const {
    return Error::NotApplied(Code::kFailedPrecondition, what_ + ": " + why);
  }

  // Nothing if there is none, or if something else hides the hierarchy at this place.
  Result<std::optional<OpenCgroup>> Open(const MountEntry& mount, const std::string& name) const {
    const SafePath path{mount.mount_point, name};
    Result<Descriptor> directory = OpenSafePath(path, O_RDONLY | O_DIRECTORY);
    if (!directory.ok() && IsGone(directory.error())) return std::optional<OpenCgroup>();
    if (!directory.ok()) return directory.error().With(what_);
    struct stat info = {};
    if (::fstat(directory->get(), &info) != 0) {
      return Error::FromErrno(errno, what_, Outcome::kNotApplied);
    }
    if (info.st_dev != makedev(mount.device_major, mount.device_minor)) {
      return std::optional<OpenCgroup>();
    }
    return std::optional<OpenCgroup>(OpenCgroup{*std::move(directory), path.Display()});
  }

  static bool Has(const OpenCgroup& cgroup, const char* file) {
    return ::faccessat(cgroup.directory.get(), file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  }

  Outcome OutcomeNow() const {
    return answer_.changed ? Outcome::kMaybeApplied : Outcome::kNotApplied;
  }

  Result<std::string> Read(const OpenCgroup& cgroup, const char* file) const {
    const std::string what = what_ + ": read " + cgroup.path + "/" + file;
    const Descriptor open(OpenChild(cgroup.directory.get(), file, O_RDONLY | O_CLOEXEC));
    if (!open.valid()) return Error::FromErrno(errno, what, OutcomeNow());
    std::string content;
    std::array<char, 4096> part;
    while (true) {
      const ssize_t got = ::read(open.get(), part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::FromErrno(errno, what, OutcomeNow());
      if (got == 0) return content;
      content.append(part.data(), static_cast<size_t>(got));
    }
  }

  Status Write(const OpenCgroup& cgroup, const char* file, const std::string& line) {
    const std::string what = what_ + ": write to " + cgroup.path + "/" + file;
    const Descriptor open(OpenChild(cgroup.directory.get(), file, O_WRONLY | O_CLOEXEC));
    if (!open.valid() && (errno == EROFS || errno == EACCES || errno == EPERM)) {
      return Error::FromParts(Code::kFailedPrecondition, OutcomeNow(), errno,
                              what + ": it cannot be written");
    }
    if (!open.valid()) return Error::FromErrno(errno, what, OutcomeNow());
    ssize_t written = 0;
    do {
      written = ::write(open.get(), line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    // The kernel takes a line as a whole, or none of it.
    if (written < 0) return Error::FromErrno(errno, what, OutcomeNow());
    answer_.changed = true;
    return OkStatus();
  }

  Error ShownOtherwise(const OpenCgroup& cgroup) const {
    return Error::MaybeApplied(Code::kInternal,
                               what_ + ": the kernel shows other limits in " + cgroup.path);
  }

  // Version 2: what is below the cgroup is bound with it.
  Result<CgroupIoLimits> Limit(const OpenCgroup& cgroup) {
    ASSIGN_OR_RETURN(const std::string before, Read(cgroup, kIoMaxFile));
    if (IoMaxOf(before, number_) != request_.limits) {
      RETURN_IF_ERROR(Write(cgroup, kIoMaxFile, IoMaxLine(number_, request_.limits)));
    }
    ASSIGN_OR_RETURN(const std::string after, Read(cgroup, kIoMaxFile));
    answer_.limits = IoMaxOf(after, number_);
    if (answer_.limits != request_.limits) return ShownOtherwise(cgroup);
    return answer_;
  }

  // Version 1.
  Result<CgroupIoLimits> LimitEach(OpenCgroup cgroup) {
    answer_.is_each_alone = true;
    ASSIGN_OR_RETURN(answer_.limits, LimitAlone(cgroup));
    RETURN_IF_ERROR(LimitBelow(cgroup));
    return answer_;
  }

  Result<IoLimits> LimitAlone(const OpenCgroup& cgroup) {
    IoLimits shown;
    for (const BlkioThrottle& throttle : kBlkioThrottles) {
      const int64_t wanted = request_.limits.*throttle.limit;
      ASSIGN_OR_RETURN(const std::string before, Read(cgroup, throttle.file));
      if (BlkioLimitOf(before, number_) != wanted) {
        RETURN_IF_ERROR(Write(cgroup, throttle.file, number_ + " " + std::to_string(wanted)));
      }
      ASSIGN_OR_RETURN(const std::string after, Read(cgroup, throttle.file));
      shown.*throttle.limit = BlkioLimitOf(after, number_);
    }
    if (shown != request_.limits) return ShownOtherwise(cgroup);
    return shown;
  }

  // One that goes meanwhile has no process that could ask for anything.
  Status LimitBelow(const OpenCgroup& cgroup) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesBelow(cgroup));
    for (const std::string& name : names) {
      if (++cgroups_ > kMostCgroups) {
        return Error::FromParts(Code::kResourceExhausted, OutcomeNow(), 0,
                                what_ + ": there are more cgroups than " +
                                    std::to_string(kMostCgroups) + " below " + answer_.cgroup);
      }
      OpenCgroup child{Descriptor(OpenChild(cgroup.directory.get(), name.c_str(),
                                            O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                       cgroup.path + "/" + name};
      if (!child.directory.valid() && errno == ENOENT) continue;
      if (!child.directory.valid()) {
        return Error::FromErrno(errno, what_ + ": open " + child.path, OutcomeNow());
      }
      const Result<IoLimits> limited = LimitAlone(child);
      if (!limited.ok() && IsGone(limited.error())) continue;
      if (!limited.ok()) return limited.error();
      RETURN_IF_ERROR(LimitBelow(child));
    }
    return OkStatus();
  }

  Result<std::vector<std::string>> NamesBelow(const OpenCgroup& cgroup) const {
    std::vector<char> block(kDirectoryBlockBytes);
    DirectoryReader reader(cgroup.directory.get(), block);
    std::vector<std::string> names;
    for (RawEntry entry = {}; reader.Next(entry);) {
      if (entry.type == DT_DIR) names.emplace_back(entry.name);
    }
    if (reader.sys_errno() == 0 || reader.sys_errno() == ENOENT) return names;
    return Error::FromErrno(reader.sys_errno(), what_ + ": list " + cgroup.path, OutcomeNow());
  }

  const SetIoLimits& request_;
  const std::string number_;
  const std::string what_;
  CgroupIoLimits answer_{};
  size_t cgroups_ = 0;
};

}  // namespace

Result<CgroupIoLimits> DoSetIoLimits(const SetIoLimits& request) {
  RETURN_IF_ERROR(CheckIoLimits(request));
  ASSIGN_OR_RETURN(const Descriptor node, OpenBlockDevice(request.device, O_PATH));
  DeviceIdentity expected = request.expected;
  expected.uuid.clear();  // which the kernel does not know
  // It is open meanwhile, so that its number stays its own.
  ASSIGN_OR_RETURN(const Descriptor device,
                   OpenExpectedDevice(node.get(), request.device, expected));
  return CgroupLimiter(request, IoDeviceNumber(expected)).Run();
}

}  // namespace volumed
