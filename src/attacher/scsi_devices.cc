#include "attacher/scsi_devices.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

// The prefix of the UUID of a device-mapper device that multipath has made. Source: multipath-tools
// libmultipath/defaults.h (UUID_PREFIX).
constexpr char kMultipathUuid[] = "mpath-";
constexpr char kMapName[] = "dm-";
// The directories in which Debian and its like have multipath-tools, in the order of root's PATH.
constexpr const char* kToolDirectories[] = {"/usr/sbin", "/sbin"};

bool IsMissing(const Error& error) {
  // The attributes of a disk that is going away answer ENODEV or ENXIO.
  return error.sys_errno() == ENOENT || error.sys_errno() == ENODEV || error.sys_errno() == ENXIO;
}

// "-" stands for any. Source: Linux drivers/scsi/scsi_sysfs.c (scsi_scan).
template <typename Number>
std::string ScanPart(const std::optional<Number>& part) {
  return part ? std::to_string(*part) : "-";
}

// "8:16"
std::optional<DeviceNumber> ParseNumber(const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const std::optional<uint64_t> major = ParseUint64(parts[0]);
  const std::optional<uint64_t> minor = ParseUint64(parts[1]);
  if (!major || !minor) return std::nullopt;
  return DeviceNumber{static_cast<uint32_t>(*major), static_cast<uint32_t>(*minor)};
}

// The LUN of "host:channel:target:lun"; nothing for what is no such address.
std::optional<int64_t> LunOf(const std::string& address) {
  const std::vector<std::string> parts = Split(address, ':');
  if (parts.size() != 4) return std::nullopt;
  for (const std::string& part : parts) {
    if (!ParseInt64(part)) return std::nullopt;
  }
  return ParseInt64(parts[3]);
}

Error InUse(const std::string& node, const std::vector<std::string>& holders) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + node + " is still in use" +
                               (holders.empty() ? std::string() : " by " + Join(holders, ", ")));
}

// The error, as one that may have been applied if an earlier step has changed the node.
Status After(Status status, bool changed) {
  if (status.ok() || !changed) return status;
  return status.error().AsMaybeApplied();
}

}  // namespace

// ---- sysfs --------------------------------------------------------------------------------------

SafePath ScsiDevices::Sys(const std::string& relative) const {
  return {sys_root_, relative, Resolve::kBeneath};
}

Result<std::string> ScsiDevices::Attribute(const std::string& relative, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileContent content, kernel_.Call(ReadFile{Sys(relative)}, call));
  return std::string(TrimSpace(content.bytes));
}

Result<std::vector<std::string>> ScsiDevices::NamesIn(const std::string& relative,
                                                      const CallOptions& call) {
  const Result<DirectoryListing> listing = kernel_.Call(ListDirectory{Sys(relative)}, call);
  std::vector<std::string> names;
  if (!listing.ok()) {
    if (IsMissing(listing.error())) return names;
    return listing.error();
  }
  for (const DirectoryEntry& entry : listing->entries) names.push_back(entry.name);
  return names;
}

// The kernel's name of what is at the end of the path's links. A node may be gone already while
// sysfs still has the device: then it is the name of the node.
Result<std::optional<std::string>> ScsiDevices::NameOf(const std::string& device,
                                                       const CallOptions& call) {
  constexpr int kMostLinks = 8;
  std::filesystem::path at(device);
  for (int i = 0; i <= kMostLinks; ++i) {
    const auto below = StripPrefix(at.native(), dev_root_ + "/");
    if (!below || below->empty()) {
      return Error::NotApplied(Code::kInvalidArgument,
                               "\"" + device + "\" does not lead to a device below " + dev_root_);
    }
    const Result<FileContent> target =
        kernel_.Call(ReadLink{{dev_root_, std::string(*below), Resolve::kBeneath}}, call);
    if (target.ok()) {
      at = (at.parent_path() / target->bytes).lexically_normal();
      continue;
    }
    if (IsMissing(target.error()) && (i == 0 && at.parent_path() != dev_root_)) {
      return std::optional<std::string>();
    }
    if (!IsMissing(target.error()) && target.error().sys_errno() != EINVAL) return target.error();
    return std::optional(SysfsNameOf(std::string(*below)));
  }
  return Error::NotApplied(Code::kInvalidArgument, "\"" + device + "\": too many links");
}

Result<bool> ScsiDevices::IsThere(const std::string& name, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info, kernel_.Call(Stat{.path = Sys("block/" + name)}, call));
  return info.type != FileType::kMissing;
}

Result<std::optional<ScsiDisk>> ScsiDevices::DiskByName(const std::string& name,
                                                        const CallOptions& call) {
  const Result<FileContent> link = kernel_.Call(ReadLink{Sys("block/" + name)}, call);
  if (!link.ok()) {
    if (IsMissing(link.error())) return std::optional<ScsiDisk>();
    return link.error();
  }
  const std::filesystem::path place =
      (std::filesystem::path("block") / link->bytes).lexically_normal();
  ScsiDisk disk;
  disk.name = name;
  disk.node = dev_root_ + "/" + NodeNameOf(name);
  // .. / <address> / block / <name>
  disk.sysfs_path = place.parent_path().parent_path().native();
  disk.address = place.parent_path().parent_path().filename().native();
  const std::optional<int64_t> lun = LunOf(disk.address);
  if (!lun) {
    return Error::NotApplied(Code::kFailedPrecondition, "device " + disk.node + " is no SCSI disk");
  }
  disk.lun = *lun;
  const Result<std::string> number = Attribute(place.native() + "/dev", call);
  if (!number.ok()) {
    if (IsMissing(number.error())) return std::optional<ScsiDisk>();
    return number.error();
  }
  const std::optional<DeviceNumber> parsed = ParseNumber(*number);
  if (!parsed) {
    return Error::NotApplied(Code::kDataLoss, "sysfs says no number of " + disk.node);
  }
  disk.number = *parsed;
  // A disk may have no page 0x83, and older kernels do not have the attribute.
  const Result<std::string> wwid = Attribute(disk.sysfs_path + "/wwid", call);
  if (wwid.ok()) disk.wwid = *wwid;
  const Result<std::string> state = Attribute(disk.sysfs_path + "/state", call);
  if (state.ok()) disk.state = *state;
  return std::optional(std::move(disk));
}

Result<std::optional<ScsiDisk>> ScsiDevices::FindDisk(const std::string& disk,
                                                      const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(disk, call));
  if (!name) return std::optional<ScsiDisk>();
  return DiskByName(*name, call);
}

Result<std::optional<std::string>> ScsiDevices::NodeOf(uint64_t device_number,
                                                       const CallOptions& call) {
  const DeviceNumber number{major(device_number), minor(device_number)};
  const Result<FileContent> link =
      kernel_.Call(ReadLink{Sys("dev/block/" + number.ToString())}, call);
  if (!link.ok() && IsMissing(link.error())) return std::optional<std::string>();
  if (!link.ok()) return link.error();
  return std::optional(dev_root_ + "/" +
                       NodeNameOf(std::filesystem::path(link->bytes).filename().native()));
}

Result<std::vector<ScsiDisk>> ScsiDevices::ListDisks(const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn("block", call));
  std::vector<ScsiDisk> disks;
  for (const std::string& name : names) {
    Result<std::optional<ScsiDisk>> disk = DiskByName(name, call);
    if (!disk.ok() && disk.error().code() == Code::kFailedPrecondition) continue;  // another kind
    if (!disk.ok()) return disk.error();
    if (*disk) disks.push_back(std::move(**disk));
  }
  return disks;
}

// ---- hosts --------------------------------------------------------------------------------------

Status ScsiDevices::ScanHost(int host, std::optional<int> channel, std::optional<int> target,
                             std::optional<int64_t> lun, const CallOptions& call) {
  const std::string name = "host" + std::to_string(host);
  const std::string where = ScanPart(channel) + " " + ScanPart(target) + " " + ScanPart(lun);
  RETURN_IF_ERROR(
      kernel_.Call(WriteAttribute{Sys("class/scsi_host/" + name + "/scan"), where}, call)
          .With("scan SCSI " + name));
  return OkStatus();
}

Status ScsiDevices::RescanAllHosts(const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts, NamesIn("class/scsi_host", call));
  if (hosts.empty()) {
    return Error::NotApplied(Code::kNotFound, "this node has no SCSI hosts (" + sys_root_ +
                                                  "/class/scsi_host is missing or empty): no host "
                                                  "bus adapter, or its driver is not loaded");
  }
  Status first_refusal;
  for (const std::string& host : hosts) {
    const auto scanned =
        kernel_.Call(WriteAttribute{Sys("class/scsi_host/" + host + "/scan"), "- - -"}, call);
    if (scanned.ok() || !first_refusal.ok()) continue;
    first_refusal = scanned.error().With("scan SCSI " + host);
  }
  return first_refusal;
}

// ---- multipath ----------------------------------------------------------------------------------

Result<bool> ScsiDevices::IsMap(const std::string& name, const CallOptions& call) {
  if (!StripPrefix(name, kMapName)) return false;
  const Result<std::string> uuid = Attribute("block/" + name + "/dm/uuid", call);
  if (uuid.ok()) return StripPrefix(*uuid, kMultipathUuid).has_value();
  if (IsMissing(uuid.error())) return false;
  return uuid.error();
}

Result<bool> ScsiDevices::IsMultipath(const std::string& device, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(device, call));
  if (!name) return false;
  return IsMap(*name, call);
}

Result<ScsiMap> ScsiDevices::DescribeMap(const std::string& dm, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(dm, call));
  if (!name) return Error::NotApplied(Code::kNotFound, "there is no " + dm);
  ASSIGN_OR_RETURN(const std::string number, Attribute("block/" + *name + "/dev", call));
  ScsiMap map;
  ASSIGN_OR_RETURN(map.uuid, Attribute("block/" + *name + "/dm/uuid", call));
  const std::optional<DeviceNumber> parsed = ParseNumber(number);
  if (!parsed) return Error::NotApplied(Code::kDataLoss, "sysfs says no number of " + dm);
  map.number = *parsed;
  return map;
}

Result<std::optional<std::string>> ScsiDevices::MultipathOf(const std::string& disk,
                                                            const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(disk, call));
  if (!name) return std::optional<std::string>();
  ASSIGN_OR_RETURN(const std::vector<std::string> holders,
                   NamesIn("block/" + *name + "/holders", call));
  for (const std::string& holder : holders) {
    ASSIGN_OR_RETURN(const bool is_map, IsMap(holder, call));
    if (is_map) return std::optional(dev_root_ + "/" + holder);
  }
  return std::optional<std::string>();
}

Result<std::vector<std::string>> ScsiDevices::PathsOf(const std::string& dm,
                                                      const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(dm, call));
  if (!name) return std::vector<std::string>();
  ASSIGN_OR_RETURN(std::vector<std::string> paths, NamesIn("block/" + *name + "/slaves", call));
  for (std::string& path : paths) path = dev_root_ + "/" + NodeNameOf(path);
  return paths;
}

Result<ProgramEnd> ScsiDevices::RunMultipathTool(const std::string& tool,
                                                 const std::vector<std::string>& arguments,
                                                 const std::string& device,
                                                 const CallOptions& call) {
  for (const char* directory : kToolDirectories) {
    RunProgram run;
    run.arguments = {std::string(directory) + "/" + tool};
    run.arguments.insert(run.arguments.end(), arguments.begin(), arguments.end());
    Result<ProgramEnd> end = kernel_.Call(run, call);
    if (end.ok() || end.error().sys_errno() != ENOENT) return end;
  }
  return Error::NotApplied(Code::kNotFound, device +
                                                " is a multipath device, and this node has no " +
                                                tool + ": install the package multipath-tools");
}

Status ScsiDevices::FlushMap(const std::string& name, const CallOptions& call) {
  const std::string node = dev_root_ + "/" + name;
  ASSIGN_OR_RETURN(const ProgramEnd end, RunMultipathTool("multipath", {"-f", node}, node, call));
  // Only what is there now counts: somebody else may have flushed the map, and a flush that ended
  // well may have left it.
  ASSIGN_OR_RETURN(const bool is_there, IsThere(name, call));
  if (!is_there) return OkStatus();
  const std::string said = std::string(TrimSpace(end.output));
  const std::string what = "multipath -f " + node;
  if (end.exit_status != 0) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             what + " ended with " + std::to_string(end.exit_status) +
                                 (said.empty() ? std::string() : ": " + said));
  }
  return Error::MaybeApplied(Code::kInternal,
                             what + " ended well, and " + node + " is still there");
}

// ---- sizes --------------------------------------------------------------------------------------

Status ScsiDevices::RescanSize(const std::string& device, const CallOptions& call) {
  ASSIGN_OR_RETURN(const bool is_map, IsMultipath(device, call));
  std::vector<std::string> disks = {device};
  if (is_map) {
    ASSIGN_OR_RETURN(disks, PathsOf(device, call));
  }
  std::string silent;
  std::vector<std::string> answered;
  for (const std::string& path : disks) {
    ASSIGN_OR_RETURN(const std::optional<ScsiDisk> disk, FindDisk(path, call));
    // A path that is down does not count, for nobody reads from it either.
    if (!disk || (is_map && !disk->running())) {
      silent += (silent.empty() ? "" : "; ") + path + (disk ? " is " + disk->state : " is gone");
      continue;
    }
    const auto asked = kernel_.Call(WriteAttribute{Sys(disk->sysfs_path + "/rescan"), "1"}, call);
    if (!asked.ok()) return asked.error().With("ask " + path + " for its size");
    answered.push_back(disk->name);
  }
  if (answered.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "no disk of " + device + " can be asked for its size: " + silent);
  }
  return is_map ? ResizeMap(device, answered, silent, call) : OkStatus();
}

Result<int64_t> ScsiDevices::BytesOf(const std::string& name, const CallOptions& call) {
  constexpr int64_t kSector = 512;  // whatever the device's own is
  ASSIGN_OR_RETURN(const std::string sectors, Attribute("block/" + name + "/size", call));
  const std::optional<int64_t> parsed = ParseInt64(sectors);
  if (parsed) return *parsed * kSector;
  return Error::NotApplied(Code::kDataLoss, "sysfs says no size of " + dev_root_ + "/" + name);
}

// How multipathd ends is no proof either way: it asks one path for the size, and if that one is
// down it says "ok" or "fail" by the order of the paths. Linux refuses a map that is larger than
// one of its paths, so a path that is down may keep the map as it was. What counts is the size that
// the map has. Source: multipath-tools multipathd/cli_handlers.c (cli_resize, resize_map).
Status ScsiDevices::ResizeMap(const std::string& device, const std::vector<std::string>& answered,
                              const std::string& silent, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(device, call));
  if (!name) return Error::NotApplied(Code::kNotFound, "there is no " + device);
  ASSIGN_OR_RETURN(const ProgramEnd end,
                   RunMultipathTool("multipathd", {"resize", "map", *name}, device, call));
  std::string said;
  if (end.exit_status != 0) {
    said = "multipathd resize map " + *name + " ended with " + std::to_string(end.exit_status) +
           ": " + std::string(TrimSpace(end.output));
  }
  ASSIGN_OR_RETURN(const int64_t map_bytes, BytesOf(*name, call));
  for (const std::string& path : answered) {
    ASSIGN_OR_RETURN(const int64_t path_bytes, BytesOf(path, call));
    if (path_bytes == map_bytes) continue;
    const std::string sizes = "multipath device " + dev_root_ + "/" + *name + " has " +
                              std::to_string(map_bytes) + " bytes, its path " + dev_root_ + "/" +
                              path + " " + std::to_string(path_bytes);
    // If every path runs, only multipathd can still be late.
    if (silent.empty() && !said.empty()) {
      return Error::MaybeApplied(Code::kFailedPrecondition, sizes + ": " + said);
    }
    return Error::MaybeApplied(Code::kUnavailable,
                               sizes + ": it takes a new size over once all its paths have it" +
                                   (silent.empty() ? "" : " (" + silent + ")") +
                                   (said.empty() ? "" : "; " + said));
  }
  return OkStatus();
}

// ---- removal ------------------------------------------------------------------------------------

Status ScsiDevices::ProveUnused(const std::string& name, const CallOptions& call) {
  const std::string node = dev_root_ + "/" + name;
  const Result<std::string> dev = Attribute("block/" + name + "/dev", call);
  if (!dev.ok()) return IsMissing(dev.error()) ? OkStatus() : Status(dev.error());
  const DeviceNumber number = ParseNumber(*dev).value_or(DeviceNumber{});
  ASSIGN_OR_RETURN(
      const DeviceUsers users,
      kernel_.Call(CheckDeviceUse{node, number.device_major, number.device_minor}, call));
  if (users.in_use) return InUse(node, users.holders);
  if (users.present) return OkStatus();
  ASSIGN_OR_RETURN(const bool is_there, IsThere(name, call));
  if (!is_there) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "nothing proves that " + *dev +
                                                          " is unused: its node " + node +
                                                          " is missing, or is another device");
}

Status ScsiDevices::RemoveDisk(const std::string& name, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<ScsiDisk> disk, DiskByName(name, call));
  if (!disk) return OkStatus();
  RETURN_IF_ERROR(ProveUnused(name, call));
  const auto flushed = kernel_.Call(FlushDevice{disk->node}, call);
  if (!flushed.ok()) {
    // A disk that is not running accepts no flush, however often it is asked.
    ASSIGN_OR_RETURN(const std::optional<ScsiDisk> now, DiskByName(name, call));
    if (!now) return OkStatus();
    if (now->running() || flushed.error().maybe_applied()) {
      return flushed.error().With("flush " + disk->node);
    }
  }
  // The disk is deleted by its address and not by its name, which may belong to another disk by
  // now.
  const auto deleted = kernel_.Call(WriteAttribute{Sys(disk->sysfs_path + "/delete"), "1"}, call);
  if (deleted.ok() || IsMissing(deleted.error())) return OkStatus();
  return deleted.error().With("delete " + disk->node);
}

Result<bool> ScsiDevices::AnyRuns(const std::vector<std::string>& names, const CallOptions& call) {
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const std::optional<ScsiDisk> disk, DiskByName(name, call));
    if (disk && disk->running()) return true;
  }
  return false;
}

Status ScsiDevices::RemoveMultipath(const std::string& name, const std::vector<std::string>& last,
                                    const CallOptions& call) {
  const std::string node = dev_root_ + "/" + name;
  ASSIGN_OR_RETURN(std::vector<std::string> paths, NamesIn("block/" + name + "/slaves", call));
  std::stable_partition(paths.begin(), paths.end(), [&last](const std::string& path) {
    return std::find(last.begin(), last.end(), path) == last.end();
  });
  RETURN_IF_ERROR(ProveUnused(name, call));
  const auto flushed = kernel_.Call(FlushDevice{node}, call);
  if (!flushed.ok()) {
    // A map without a path that runs accepts no flush either, however often it is asked.
    ASSIGN_OR_RETURN(const bool runs, AnyRuns(paths, call));
    if (runs || flushed.error().maybe_applied()) return flushed.error().With("flush " + node);
  }
  RETURN_IF_ERROR(FlushMap(name, call));
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(After(RemoveDisk(path, call), true));
  }
  return OkStatus();
}

Status ScsiDevices::Remove(const std::string& device, const CallOptions& call,
                           const std::vector<std::string>& last) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, NameOf(device, call));
  if (!name) return OkStatus();
  ASSIGN_OR_RETURN(const bool is_map, IsMap(*name, call));
  if (is_map) return RemoveMultipath(*name, last, call);
  ASSIGN_OR_RETURN(const std::optional<std::string> map, MultipathOf(device, call));
  if (map) return RemoveMultipath(map->substr(dev_root_.size() + 1), last, call);
  return RemoveDisk(*name, call);
}

}  // namespace volumed
