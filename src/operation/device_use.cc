#include "operation/device_use.h"

#include <sys/sysmacros.h>

#include <utility>
#include <vector>

#include "base/strings.h"
#include "mounter/mount_refs.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Where the device, or what is left of its filesystem, is mounted in the agent's own namespace.
Result<std::vector<std::string>> PlacesOf(Kernel& kernel, const MountedSource& source,
                                          const CallOptions& call) {
  std::vector<std::string> places;
  FilesystemPart part{source.device_major, source.device_minor, ""};
  if (part.device_major == 0 && part.device_minor == 0) {
    ASSIGN_OR_RETURN(const FileInfo node,
                     kernel.Call(Stat{.path = {source.path, ""}, .follow = true}, call));
    if (node.type != FileType::kBlockDevice) return places;
    part.device_major = major(node.device_number);
    part.device_minor = minor(node.device_number);
  }
  ListMounts question;
  question.showing = part;
  ASSIGN_OR_RETURN(const MountListing shown, kernel.Call(question, call));
  for (const MountEntry& mount : shown.mounts) places.push_back(mount.mount_point);
  return places;
}

// Whether the mount shows a part of the filesystem on which the domain, a path, lies: that stays
// mounted there without it.
Result<bool> LiesOnDomain(Kernel& kernel, const MountEntry& mount, const std::string& fault_domain,
                          const CallOptions& call) {
  if (!fault_domain.starts_with('/')) return false;
  ASSIGN_OR_RETURN(const std::optional<MountEntry> around,
                   FindMountAround(kernel, fault_domain, call));
  return around && around->device_major == mount.device_major &&
         around->device_minor == mount.device_minor;
}

}  // namespace

Result<std::optional<MountedSource>> FindMountedSource(Kernel& kernel, const SafePath& place,
                                                       const std::string& fault_domain,
                                                       const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(kernel, place.Display(), call));
  if (!mount || !mount->source.starts_with("/dev/")) return std::optional<MountedSource>();
  if (mount->root != "/") {
    if (IsDriverDomain(fault_domain)) return std::optional<MountedSource>();
    ASSIGN_OR_RETURN(const bool is_of_domain, LiesOnDomain(kernel, *mount, fault_domain, call));
    if (is_of_domain) return std::optional<MountedSource>();
  }
  return std::optional<MountedSource>({mount->source, mount->device_major, mount->device_minor});
}

Result<std::string> FindDeviceUsers(Kernel& kernel, const MountedSource& source,
                                    const CallOptions& call) {
  CheckDeviceUse check{source.path};
  // A filesystem with a number of its own (btrfs) does not say what its disk's is.
  if (source.device_major != 0) {
    check.device_major = source.device_major;
    check.device_minor = source.device_minor;
  }
  ASSIGN_OR_RETURN(const DeviceUsers users, kernel.Call(check, call));
  if (!users.in_use) return std::string();
  ASSIGN_OR_RETURN(const std::vector<std::string> places, PlacesOf(kernel, source, call));
  std::vector<std::string> words;
  if (!places.empty()) words.push_back("is mounted at " + Join(places, ", "));
  if (!users.holders.empty()) words.push_back("is a part of " + Join(users.holders, ", "));
  if (words.empty()) {
    words.emplace_back(
        "is held by a mount in another mount namespace (a container's), by swap, or by a program");
  }
  return source.path + " " + Join(words, " and ");
}

Status CheckDeviceLetGo(Kernel& kernel, const MountedSource& source, const CallOptions& call) {
  const Result<std::string> users = FindDeviceUsers(kernel, source, call);
  if (!users.ok()) {
    const bool is_no_device = users.error().code() == Code::kFailedPrecondition;
    return is_no_device ? OkStatus() : Status(users.error());
  }
  if (users->empty()) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "the device is in use when it was no longer expected to be in use: " + *users);
}

Status CheckReleasedDevice(Kernel& kernel, Logger& logger, const ReleasedDevice& device,
                           const CallOptions& call) {
  Status let_go = CheckDeviceLetGo(kernel, device.source, call);
  if (let_go.ok() || device.is_detached_next) return let_go;
  logger.Warning("a device is let go of by its pods, and may be in use still",
                 {{"volume", device.volume.str()}, {"why", let_go.error().message()}});
  return OkStatus();
}

}  // namespace volumed
