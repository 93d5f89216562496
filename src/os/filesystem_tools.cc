#include "os/filesystem_tools.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "os/block_device.h"
#include "os/device_probe.h"
#include "os/filesystem_geometry.h"
#include "os/safe_open.h"
#include "os/tool.h"

namespace volumed {
namespace {

using Family = FilesystemFamily;

Result<Family> RequireFamily(const std::string& fs_type, const std::string& what) {
  if (const std::optional<Family> family = FilesystemFamilyOf(fs_type)) return *family;
  return Error::NotApplied(
      Code::kInvalidArgument,
      what + ": filesystem type \"" + fs_type + "\" is none of ext2, ext3, ext4, xfs, btrfs");
}

// mke2fs obeys the last -E only, so what the caller gives in another one goes into ours. The
// caller's words come last: of one word given twice the last holds.
std::vector<std::string> ExtArguments(const FormatDevice& request) {
  std::string extended = "nodiscard";
  if (request.fs_type == "ext4") {
    // Inode tables left for later are zeroed by the kernel, a journal is not: an old one that is
    // taken for its own would be replayed.
    extended += request.reads_zero ? ",lazy_itable_init=1,lazy_journal_init=1"
                                   : ",lazy_itable_init=1,lazy_journal_init=0";
  }
  std::vector<std::string> arguments;
  for (size_t i = 0; i < request.options.size(); ++i) {
    if (request.options[i] == "-E" && i + 1 < request.options.size()) {
      extended += "," + request.options[++i];
    } else {
      arguments.push_back(request.options[i]);
    }
  }
  arguments.insert(arguments.end(), {"-q", "-U", request.fs_uuid, "-E", extended});
  // Source: kubernetes mount-utils mount_linux.go@v1.36.2 (formatAndMountSensitive): -m0.
  if (request.fs_type != "ext2") arguments.emplace_back("-m0");
  return arguments;
}

// Without a word that forces it the tools refuse what they recognise: one more look, by others.
std::vector<std::string> OtherArguments(const FormatDevice& request,
                                        const std::vector<std::string>& ours) {
  std::vector<std::string> arguments = request.options;
  arguments.insert(arguments.end(), ours.begin(), ours.end());
  if (request.repeat) arguments.emplace_back("-f");
  return arguments;
}

Error Refusal(const std::string& what, const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, what + ": " + why);
}

// What an interrupted run of ours certainly left.
bool IsOurs(const FormatDevice& request, const DeviceProbe& probe) {
  return probe.unfinished && probe.partition_table.empty() && probe.fs_type == request.fs_type &&
         probe.identity.uuid == request.fs_uuid;
}

// Who may write is looked at under a claim, which excludes mounts and other claims. A tool cannot
// be given a claim: it is let go right before the tool takes its own.
Status CheckFormattable(const FormatDevice& request, int device, const std::string& what,
                        const CallOptions& options) {
  ASSIGN_OR_RETURN(const Descriptor claim,
                   OpenBlockDevice(ProcFdPath(device), O_RDONLY | O_EXCL | O_NONBLOCK)
                       .With(what + ": not to be had for itself"));
  ASSIGN_OR_RETURN(const DeviceProbe probe,
                   ProbeOpenDevice(claim.get(), request.device, {}, options).With(what));
  DeviceIdentity expected = request.expected;
  expected.uuid.clear();  // there is to be none
  if (const std::string difference = IdentityDifference(expected, probe.identity);
      !difference.empty()) {
    return Refusal(what, "it is not the device that was probed: " + difference);
  }
  if (probe.read_only) return Refusal(what, "the device is read-only");
  if (probe.blank || (request.repeat && IsOurs(request, probe))) return OkStatus();
  return Refusal(what, "the device is not blank: " + probe.why_not_blank);
}

Status CheckFormatted(const FormatDevice& request, int device, const std::string& what) {
  const Result<DeviceProbe> probe =
      ProbeOpenDevice(device, request.device, {false, false}, CallOptions{});
  if (!probe.ok()) return probe.error().With(what).AsMaybeApplied();
  if (probe->fs_type == request.fs_type && probe->identity.uuid == request.fs_uuid &&
      !probe->unfinished) {
    return OkStatus();
  }
  return Error::MaybeApplied(Code::kInternal,
                             what + ": after it, the device has " +
                                 (probe->fs_type.empty() ? "no filesystem" : probe->fs_type) +
                                 (probe->unfinished ? " that is marked as unfinished" : "") +
                                 " with UUID \"" + probe->identity.uuid + "\"");
}

ToolRun CheckRun(const CheckFilesystem& request, Family family) {
  ToolRun run;
  run.package = ToolPackageOf(family);
  switch (family) {
    case Family::kExt:
      run.program = "e2fsck";
      if (request.mode == CheckMode::kPreen) {
        run.arguments = {"-a"};
      } else {
        run.arguments = {"-f", "-n"};
      }
      break;
    case Family::kXfs:
      run.program = "xfs_repair";
      run.arguments = {"-n"};
      break;
    case Family::kBtrfs:
      run.program = "btrfs";
      run.arguments = {"check", "--readonly"};
      break;
  }
  return run;
}

}  // namespace

Result<std::vector<std::string>> MkfsArguments(const FormatDevice& request) {
  ASSIGN_OR_RETURN(const Family family, RequireFamily(request.fs_type, "format " + request.device));
  switch (family) {
    case Family::kExt:
      return ExtArguments(request);
    case Family::kXfs:
      return OtherArguments(request, {"-q", "-K", "-m", "uuid=" + request.fs_uuid});
    case Family::kBtrfs:
      return OtherArguments(request, {"-q", "-K", "-U", request.fs_uuid});
  }
  return Error::NotApplied(Code::kInternal, "format: unknown family of filesystems");
}

Result<Done> DoFormatDevice(const FormatDevice& request,
                            const std::vector<std::string>& tool_directories,
                            const CallOptions& options) {
  const std::string what = "format " + request.device + " as " + request.fs_type;
  ToolRun run;
  ASSIGN_OR_RETURN(run.arguments, MkfsArguments(request));
  ASSIGN_OR_RETURN(const Family family, RequireFamily(request.fs_type, what));
  if (request.fs_uuid.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no UUID is given");
  }
  run.program = "mkfs." + request.fs_type;
  run.package = ToolPackageOf(family);
  run.arguments.emplace_back(kToolDevice);
  // Open until the end: its number then stays this device's.
  ASSIGN_OR_RETURN(const Descriptor device, OpenBlockDevice(request.device, O_RDONLY | O_NONBLOCK));
  run.device = device.get();
  RETURN_IF_ERROR(CheckFormattable(request, device.get(), what, options));
  ASSIGN_OR_RETURN(const ToolResult result, RunTool(run, tool_directories, options).With(what));
  if (result.exit_code != 0) {
    return Error::MaybeApplied(Code::kInternal, what + ": " + run.program + " ended with status " +
                                                    std::to_string(result.exit_code) + ": " +
                                                    result.output);
  }
  RETURN_IF_ERROR(CheckFormatted(request, device.get(), what));
  return Done{};
}

Result<FilesystemCheck> DoCheckFilesystem(const CheckFilesystem& request,
                                          const std::vector<std::string>& tool_directories,
                                          const CallOptions& options) {
  const std::string what = "check " + request.fs_type + " on " + request.device;
  ASSIGN_OR_RETURN(const Family family, RequireFamily(request.fs_type, what));
  ASSIGN_OR_RETURN(const PinnedDevice pinned,
                   PinDevice(request.device, request.expected, request.fs_type));
  if (request.mode == CheckMode::kPreen && family != Family::kExt) return FilesystemCheck{};
  // Let go at once: the tool takes its own claim.
  ASSIGN_OR_RETURN(Descriptor claim,
                   OpenBlockDevice(ProcFdPath(pinned.device.get()), O_RDONLY | O_EXCL | O_NONBLOCK)
                       .With(what + ": not to be had for itself"));
  claim.Reset();
  ToolRun run = CheckRun(request, family);
  run.device = pinned.device.get();
  run.arguments.emplace_back(kToolDevice);
  ASSIGN_OR_RETURN(const ToolResult result, RunTool(run, tool_directories, options).With(what));
  FilesystemCheck check;
  check.result = ClassifyCheck(request.fs_type, result.exit_code);
  check.exit_code = result.exit_code;
  check.output = result.output;
  run.arguments.pop_back();
  check.tool = run.program;
  for (const std::string& argument : run.arguments) check.tool += " " + argument;
  return check;
}

}  // namespace volumed
