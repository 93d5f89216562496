#include "mounter/resize_fs.h"

#include <utility>

namespace volumed {
namespace {

Error NotSupported(const ResizeRequest& request, const std::string& format) {
  const std::string place = request.mounted_at ? request.mounted_at->Display() : "no place";
  return Error::NotApplied(Code::kInvalidArgument, "resize of format " + format +
                                                       " is not supported for device " +
                                                       request.device + " mounted at " + place);
}

}  // namespace

Result<std::optional<FilesystemGrowth>> ResizeFs::Ask(const ResizeRequest& request,
                                                      bool only_measure, const CallOptions& call) {
  ASSIGN_OR_RETURN(const DeviceProbe probe, kernel_.Call(ProbeDevice{request.device}, call)
                                                .With("get the format of disk " + request.device));
  if (probe.fs_type.empty() && probe.partition_table.empty()) {
    return std::optional<FilesystemGrowth>();
  }
  const bool known = probe.fs_type == "ext3" || probe.fs_type == "ext4" || probe.fs_type == "xfs" ||
                     probe.fs_type == "btrfs";
  if (!probe.partition_table.empty() || !known) {
    return NotSupported(request, probe.partition_table.empty()
                                     ? probe.fs_type
                                     : "unknown data, probably partitions");
  }
  GrowFilesystem grow;
  grow.device = request.device;
  grow.expected = probe.identity;
  grow.fs_type = probe.fs_type;
  grow.mounted_at = request.mounted_at;
  grow.only_measure = only_measure || probe.read_only;
  ASSIGN_OR_RETURN(FilesystemGrowth growth, kernel_.Call(grow, call));
  if (probe.read_only && !only_measure && !growth.fills_device) {
    return Error::NotApplied(Code::kFailedPrecondition, "device " + request.device +
                                                            " is read-only: its filesystem (" +
                                                            GrowthText(growth) + ") is not grown");
  }
  return std::optional<FilesystemGrowth>(std::move(growth));
}

Result<std::optional<FilesystemGrowth>> ResizeFs::Resize(const ResizeRequest& request,
                                                         const CallOptions& call) {
  return Ask(request, false, call);
}

Result<bool> ResizeFs::NeedResize(const ResizeRequest& request, const CallOptions& call) {
  ASSIGN_OR_RETURN(
      const DeviceProbe probe,
      kernel_.Call(ProbeDevice{request.device}, call).With("look at " + request.device));
  if (probe.read_only) return false;
  ASSIGN_OR_RETURN(const std::optional<FilesystemGrowth> growth, Ask(request, true, call));
  return growth.has_value() && !growth->fills_device;
}

bool ProvesSize(const FilesystemGrowth& growth, int64_t target_bytes) {
  if (growth.device_bytes < target_bytes) return false;
  return growth.after_bytes >= target_bytes || growth.fills_device;
}

std::string GrowthText(const FilesystemGrowth& growth) {
  std::string text = growth.fs_type + " of " + std::to_string(growth.after_bytes) + " bytes";
  if (growth.before_bytes != growth.after_bytes) {
    text += " (before: " + std::to_string(growth.before_bytes) + ")";
  }
  return text + " on a device of " + std::to_string(growth.device_bytes) + " bytes";
}

}  // namespace volumed
