#include "os/filesystem_rename.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "os/btrfs_superblock.h"
#include "os/device_probe.h"
#include "os/filesystem_geometry.h"
#include "os/loop_devices.h"
#include "os/regular_file.h"
#include "os/safe_open.h"
#include "os/tool.h"
#include "os/xfs_uuid.h"

namespace volumed {
namespace {

using Family = FilesystemFamily;

class FilesystemRenamer {
 public:
  FilesystemRenamer(const ChangeFilesystemUuid& request, const KernelFeatures& features,
                    const std::vector<std::string>& tools, const CallOptions& options)
      : request_(request),
        features_(features),
        tools_(tools),
        options_(options),
        what_("change the UUID of " + request.path.Display()) {}

  Result<FilesystemName> Run() {
    const std::optional<Family> family = FilesystemFamilyOf(request_.fs_type);
    if (!family || request_.new_uuid.empty()) {
      return Refused(Code::kInvalidArgument, "no such filesystem type, or no UUID");
    }
    if (*family == Family::kXfs && !features_.fsopen) {
      return Refused(Code::kUnimplemented, "of an xfs it needs fsopen (Linux 5.2)");
    }
    RETURN_IF_ERROR(Open());
    ASSIGN_OR_RETURN(FilesystemName before, Look());
    RETURN_IF_ERROR(CheckIsKnown(before));
    const bool has_it = before.uuid == request_.new_uuid;
    // Of an xfs the first superblock does not tell whether the others have got it, too.
    if (has_it && *family != Family::kXfs) return before;
    RETURN_IF_ERROR(Change(*family, has_it));
    ASSIGN_OR_RETURN(FilesystemName after, Confirm());
    after.changed = !has_it;
    return after;
  }

 private:
  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }
  Error Failed(const std::string& step) const {
    return Error::FromErrno(errno, what_ + ", " + step, Outcome::kMaybeApplied);
  }
  static std::string Shown(const FilesystemName& name) {
    return (name.fs_type.empty() ? "no filesystem" : name.fs_type) + " with UUID \"" + name.uuid +
           "\"";
  }

  // A logical volume has no file: what is on it is reached by its device, which nobody may have
  // meanwhile. A device is told from others by whoever names it, and not by an object.
  Status Open() {
    constexpr int kFlags = O_RDWR | O_NONBLOCK | O_NOCTTY;
    ASSIGN_OR_RETURN(const Descriptor there, OpenSafePath(request_.path, O_PATH).With(what_));
    struct stat info = {};
    const bool is_block = ::fstat(there.get(), &info) == 0 && S_ISBLK(info.st_mode);
    if (is_block && request_.expected.inode == 0) return OpenDevice(there.get(), kFlags);
    ASSIGN_OR_RETURN(file_,
                     OpenRegularFile(request_.path, kFlags, request_.expected, features_, what_));
    ASSIGN_OR_RETURN(const std::string loop, FindLoopOn(file_.get(), what_));
    if (loop.empty()) return OkStatus();
    return Refused(Code::kFailedPrecondition, "it has a loop device, " + loop);
  }

  // The tools open it for themselves, too, so that it cannot be held so until they are done.
  Status OpenDevice(int there, int flags) {
    const std::string node = ProcFdPath(there);
    const Descriptor alone(::open(node.c_str(), flags | O_EXCL | O_CLOEXEC));
    if (!alone.valid() && errno == EBUSY) {
      return Refused(Code::kFailedPrecondition, "somebody has the device");
    }
    if (!alone.valid()) return Error::FromErrno(errno, what_, Outcome::kNotApplied);
    ASSIGN_OR_RETURN(file_, DescriptorFrom(::open(node.c_str(), flags | O_CLOEXEC), what_));
    is_device_ = true;
    return OkStatus();
  }

  Result<FilesystemName> Look() const {
    ASSIGN_OR_RETURN(const DeviceProbe probe, ProbeImage(file_.get(), request_.path.Display()));
    if (probe.spans_devices) {
      return Refused(Code::kFailedPrecondition,
                     "a part of its " + probe.fs_type +
                         " is on another device, which would be written to with it");
    }
    return FilesystemName{probe.fs_type, probe.unfinished ? "" : probe.identity.uuid};
  }

  Status CheckIsKnown(const FilesystemName& name) const {
    const bool known = name.uuid == request_.old_uuid || name.uuid == request_.new_uuid;
    if (name.fs_type == request_.fs_type && known) return OkStatus();
    return Refused(Code::kFailedPrecondition, "it has " + Shown(name));
  }

  Status Change(Family family, bool has_it) {
    switch (family) {
      case Family::kExt:
        return ChangeExt();
      case Family::kXfs:
        return ChangeXfs(has_it);
      case Family::kBtrfs:
        return ChangeBtrfs();
    }
    return OkStatus();
  }

  Result<ToolResult> RunOn(int device, const std::string& program, Family family,
                           std::vector<std::string> arguments) const {
    ToolRun run;
    run.program = program;
    run.package = ToolPackageOf(family);
    run.arguments = std::move(arguments);
    run.arguments.emplace_back(kToolDevice);
    run.device = device;
    return RunTool(run, tools_, options_).With(what_);
  }

  Status Expect(const Result<ToolResult>& result) const {
    if (!result.ok()) return result.error();
    if (result->exit_code == 0) return OkStatus();
    return Error::MaybeApplied(Code::kInternal, what_ + ": the tool ended with status " +
                                                    std::to_string(result->exit_code) + ": " +
                                                    result->output);
  }

  // One without the feature metadata_csum_seed has the UUID in every checksum, and tune2fs asks for
  // a check of the whole first.
  Status ChangeExt() const {
    const std::vector<std::string> arguments = {"-U", request_.new_uuid};
    ASSIGN_OR_RETURN(const ToolResult first,
                     RunOn(file_.get(), "tune2fs", Family::kExt, arguments));
    if (first.exit_code == 0) return OkStatus();
    if (first.output.find("e2fsck") == std::string::npos) return Expect(first);
    ASSIGN_OR_RETURN(const ToolResult checked,
                     RunOn(file_.get(), "e2fsck", Family::kExt, {"-f", "-p"}));
    // Source: e2fsck(8): with 1 the errors were corrected.
    if (checked.exit_code > 1) return Expect(checked);
    return Expect(RunOn(file_.get(), "tune2fs", Family::kExt, arguments));
  }

  // Of another kind of checksum than the usual one only the tool can make it, which makes a log
  // that is still to be replayed unreadable.
  Status ChangeBtrfs() const {
    ASSIGN_OR_RETURN(BtrfsSuperblock superblock, BtrfsSuperblock::Read(file_.get(), what_));
    if (superblock.IsKnownKind()) {
      RETURN_IF_ERROR(superblock.Rename(request_.new_uuid));
      return superblock.Write(file_.get());
    }
    if (superblock.HasLog()) {
      return Refused(Code::kFailedPrecondition,
                     "its checksums are not crc32c, and it has a log that only a mount replays: "
                     "mount what it is a copy of, and copy that anew");
    }
    return Expect(RunOn(file_.get(), "btrfstune", Family::kBtrfs, {"-f", "-M", request_.new_uuid}));
  }

  // Only a mount replays the log, as a freeze leaves it. The last one shows that the kernel takes
  // what was written.
  Status ChangeXfs(bool has_it) const {
    bool begun = false;
    if (!has_it) {
      ASSIGN_OR_RETURN(const XfsUuid left, XfsUuid::Open(file_.get(), request_.new_uuid, what_));
      ASSIGN_OR_RETURN(begun, left.IsLogBegun());
    }
    if (!begun) RETURN_IF_ERROR(MountOnce());
    // Not before: the mount may have written the first superblock.
    ASSIGN_OR_RETURN(const XfsUuid xfs, XfsUuid::Open(file_.get(), request_.new_uuid, what_));
    if (!has_it) {
      if (!begun) RETURN_IF_ERROR(Synced(xfs.BeginLog()));
      RETURN_IF_ERROR(Synced(xfs.WriteRestOfLog()));
    }
    RETURN_IF_ERROR(Synced(xfs.WriteSuperblocks()));
    return MountOnce();
  }

  Status Synced(const Status& written) const {
    if (!written.ok()) return written;
    return ::fsync(file_.get()) == 0 ? OkStatus() : Status(Failed("sync"));
  }

  Status MountOnce() const {
    if (is_device_) {
      RETURN_IF_ERROR(DropCache());
      RETURN_IF_ERROR(ReplayLog(ProcFdPath(file_.get())));
      return DropCache();
    }
    ASSIGN_OR_RETURN(const PrivateLoop loop, AttachPrivateLoop(file_.get(), what_));
    RETURN_IF_ERROR(ReplayLog(loop.path));
    return ::fsync(loop.device.get()) == 0 ? OkStatus() : Status(Failed("sync"));
  }

  // A mounted filesystem writes past the cache that this descriptor of the device reads from.
  Status DropCache() const {
    const bool is_clean = ::fsync(file_.get()) == 0 && ::ioctl(file_.get(), BLKFLSBUF, 0) == 0;
    return is_clean ? OkStatus() : Status(Failed("sync"));
  }

  // Nobody sees the mount, and with the end of this it is gone.
  Status ReplayLog(const std::string& device) const {
    const Descriptor context(::fsopen("xfs", FSOPEN_CLOEXEC));
    if (!context.valid() ||
        ::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", device.c_str(), 0) != 0 ||
        ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "nouuid", nullptr, 0) != 0 ||
        ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
      return Failed("mount it where nobody sees it");
    }
    const Descriptor mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
    return mount.valid() ? OkStatus() : Status(Failed("mount it where nobody sees it"));
  }

  Result<FilesystemName> Confirm() const {
    if (::fsync(file_.get()) != 0) return Failed("sync");
    Result<FilesystemName> after = Look();
    if (!after.ok()) return after.error().AsMaybeApplied();
    if (after->fs_type != request_.fs_type || after->uuid != request_.new_uuid) {
      return Error::MaybeApplied(Code::kInternal, what_ + ": after it, there is " + Shown(*after));
    }
    return after;
  }

  const ChangeFilesystemUuid& request_;
  const KernelFeatures& features_;
  const std::vector<std::string>& tools_;
  const CallOptions& options_;
  const std::string what_;
  Descriptor file_;
  bool is_device_ = false;
};

}  // namespace

Result<FilesystemName> DoChangeFilesystemUuid(const ChangeFilesystemUuid& request,
                                              const KernelFeatures& features,
                                              const std::vector<std::string>& tool_directories,
                                              const CallOptions& options) {
  return FilesystemRenamer(request, features, tool_directories, options).Run();
}

}  // namespace volumed
