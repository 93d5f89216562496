#include "pool/bound_devices.h"

#include <sys/sysmacros.h>

#include "base/printable_text.h"
#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"

namespace volumed {
namespace {

constexpr size_t kShownPlace = 4096;  // bytes of a path in a message

Error ShowsAt(const std::string& device, const std::string& how, const std::string& place) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           device + " is " + how + " at " + Quoted(place, kShownPlace));
}

Status CheckNotMounted(Kernel& kernel, const std::string& device, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo node, kernel.Call(Stat{HostPath(device)}, call));
  const FilesystemPart whole{major(node.device_number), minor(node.device_number), ""};
  ASSIGN_OR_RETURN(const MountListing shown, kernel.Call(ListMounts{.showing = whole}, call));
  if (shown.mounts.empty()) return OkStatus();
  return ShowsAt(device, "mounted", shown.mounts.front().mount_point);
}

}  // namespace

Status CheckNotBound(Kernel& kernel, const std::vector<std::string>& devices,
                     const CallOptions& call) {
  for (const std::string& device : devices) {
    ASSIGN_OR_RETURN(const std::vector<std::string> places, FindMountRefs(kernel, device, call));
    if (!places.empty()) return ShowsAt(device, "bound", places.front());
  }
  return OkStatus();
}

Status CheckNotShown(Kernel& kernel, const std::vector<std::string>& devices,
                     const CallOptions& call) {
  RETURN_IF_ERROR(CheckNotBound(kernel, devices, call));
  for (const std::string& device : devices) {
    RETURN_IF_ERROR(CheckNotMounted(kernel, device, call));
  }
  return OkStatus();
}

}  // namespace volumed
