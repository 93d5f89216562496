#include "os/grow_filesystem.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "os/block_device.h"
#include "os/device_probe.h"
#include "os/filesystem_geometry.h"
#include "os/kernel_features.h"
#include "os/safe_open.h"
#include "os/tool.h"

namespace volumed {
namespace {

using Family = FilesystemFamily;

Error Refusal(const std::string& what, const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, what + ": " + why);
}

// Everything that a run knows.
struct Run {
  const GrowFilesystem& request;
  const std::vector<std::string>& tools;
  const CallOptions& options;
  std::string what;
  Family family = Family::kExt;
  PinnedDevice device{};
  Descriptor mounted{};  // when it is
  FilesystemGeometry on_device{};
  FilesystemGeometry geometry{};
  FilesystemGrowth growth{};

  int device_fd() const { return device.device.get(); }
};

Result<FilesystemGeometry> Measure(const Run& run) {
  if (!run.mounted.valid()) return ReadGeometry(run.family, run.device_fd(), run.what);
  return AskGeometry(run.family, run.mounted.get(), run.device_fd(), run.on_device, run.what);
}

Status Look(Run& run) {
  ASSIGN_OR_RETURN(run.device,
                   PinDevice(run.request.device, run.request.expected, run.request.fs_type));
  ASSIGN_OR_RETURN(run.on_device, ReadGeometry(run.family, run.device_fd(), run.what));
  if (run.request.mounted_at) {
    ASSIGN_OR_RETURN(run.mounted,
                     OpenSafePath(*run.request.mounted_at, O_RDONLY | O_DIRECTORY).With(run.what));
    RETURN_IF_ERROR(
        CheckMountedFrom(run.family, run.mounted.get(), run.device_fd(), run.on_device, run.what));
  }
  ASSIGN_OR_RETURN(run.geometry, Measure(run));
  run.growth.fs_type = run.request.fs_type;
  run.growth.device_bytes = run.request.expected.size_bytes;
  run.growth.before_bytes = run.growth.after_bytes = run.geometry.size_bytes;
  run.growth.fills_device = FillsDevice(run.geometry, run.growth.device_bytes);
  run.growth.has_errors = run.geometry.has_errors;
  return OkStatus();
}

// ---- mounted ------------------------------------------------------------------------------------

Error Refused(const Run& run, int error) {
  if (error == EPERM && run.family == Family::kExt && !HasCapability(CAP_SYS_RESOURCE)) {
    return Error::FromParts(
        Code::kFailedPrecondition, Outcome::kNotApplied, EPERM,
        run.what + ": " + run.request.fs_type +
            " cannot be grown while it is mounted, as the agent lacks the capability "
            "CAP_SYS_RESOURCE (EXT4_IOC_RESIZE_FS: EPERM); give it the capability, or let every "
            "pod leave the volume: it is grown before its next mount");
  }
  switch (error) {
    case EROFS:
      return Error::FromParts(Code::kFailedPrecondition, Outcome::kNotApplied, error,
                              run.what + ": it is mounted read-only");
    // What the kernel asks before it begins.
    case EPERM:
    case EBUSY:
    case EOPNOTSUPP:
    case ENOTTY:
    case ETXTBSY:
      return Error::FromErrno(error, run.what, Outcome::kNotApplied);
    default:
      return Error::FromErrno(error, run.what, Outcome::kMaybeApplied);
  }
}

Status GrowByKernel(Run& run) {
  const int error =
      GrowMounted(run.family, run.mounted.get(), run.geometry, run.growth.device_bytes);
  return error == 0 ? OkStatus() : Status(Refused(run, error));
}

// ---- not mounted --------------------------------------------------------------------------------

Result<ToolResult> RunOn(const Run& run, const std::string& program,
                         std::vector<std::string> arguments) {
  ToolRun tool;
  tool.program = program;
  tool.package = ToolPackageOf(run.family);
  tool.arguments = std::move(arguments);
  tool.arguments.emplace_back(kToolDevice);
  tool.device = run.device_fd();
  return RunTool(tool, run.tools, run.options).With(run.what);
}

// resize2fs takes no filesystem that was not wholly checked since its last mount.
Status CheckWholly(const Run& run) {
  ASSIGN_OR_RETURN(const ToolResult checked, RunOn(run, "e2fsck", {"-f", "-p"}));
  switch (ClassifyCheck(run.request.fs_type, checked.exit_code)) {
    case CheckResult::kClean:
    case CheckResult::kFixed:
    case CheckResult::kSkipped:
      return OkStatus();
    case CheckResult::kUncorrected:
    case CheckResult::kOperationalError:
      break;
  }
  return Refusal(run.what, "it has errors that 'e2fsck -f -p' did not correct (status " +
                               std::to_string(checked.exit_code) + "): " + checked.output);
}

Status GrowByTool(Run& run) {
  {
    // Let go at once: the tools take their own claim.
    ASSIGN_OR_RETURN(const Descriptor claim,
                     OpenBlockDevice(ProcFdPath(run.device_fd()), O_RDONLY | O_EXCL | O_NONBLOCK)
                         .With(run.what + ": not to be had for itself"));
  }
  RETURN_IF_ERROR(CheckWholly(run));
  run.growth.tool = "resize2fs";
  ASSIGN_OR_RETURN(const ToolResult grown, RunOn(run, "resize2fs", {}));
  if (grown.exit_code == 0) return OkStatus();
  return Error::MaybeApplied(Code::kInternal, run.what + ": resize2fs ended with status " +
                                                  std::to_string(grown.exit_code) + ": " +
                                                  grown.output);
}

Status CheckMayGrow(const Run& run) {
  ASSIGN_OR_RETURN(const bool read_only, IsReadOnlyDevice(run.device_fd(), run.request.device));
  if (read_only) return Refusal(run.what, "the device is read-only");
  if (run.mounted.valid() && run.geometry.has_errors) {
    return Refusal(run.what,
                   "the filesystem has errors (its superblock says so), and is not grown before "
                   "they are mended: let every pod leave the volume, and have 'e2fsck -f' check "
                   "the device");
  }
  return OkStatus();
}

}  // namespace

bool IsGrowable(const std::string& fs_type) {
  return fs_type != "ext2" && FilesystemFamilyOf(fs_type).has_value();
}

Result<FilesystemGrowth> DoGrowFilesystem(const GrowFilesystem& request,
                                          const std::vector<std::string>& tool_directories,
                                          const CallOptions& options) {
  Run run{.request = request,
          .tools = tool_directories,
          .options = options,
          .what = (request.only_measure ? "measure " : "grow ") + request.fs_type + " on " +
                  request.device};
  if (!IsGrowable(request.fs_type)) {
    return Error::NotApplied(Code::kInvalidArgument, run.what + ": filesystem type \"" +
                                                         request.fs_type +
                                                         "\" is none of ext3, ext4, xfs, btrfs");
  }
  run.family = *FilesystemFamilyOf(request.fs_type);
  RETURN_IF_ERROR(Look(run));
  if (request.only_measure || run.growth.fills_device) return run.growth;
  RETURN_IF_ERROR(CheckMayGrow(run));
  if (run.mounted.valid()) {
    RETURN_IF_ERROR(GrowByKernel(run));
  } else if (run.family == Family::kExt) {
    RETURN_IF_ERROR(GrowByTool(run));
  } else {
    return Error::NotApplied(Code::kInvalidArgument,
                             run.what + ": " + request.fs_type + " grows only while it is mounted");
  }
  const Result<FilesystemGeometry> after = Measure(run);
  if (!after.ok()) return after.error().AsMaybeApplied();
  run.growth.after_bytes = after->size_bytes;
  run.growth.fills_device = FillsDevice(*after, run.growth.device_bytes);
  run.growth.has_errors = after->has_errors;
  return run.growth;
}

}  // namespace volumed
