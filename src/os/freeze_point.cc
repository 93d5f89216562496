#include "os/freeze_point.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <optional>

#include "os/safe_open.h"
#include "os/statmount.h"

namespace volumed {

Result<OpenedPoint> OpenFreezePoint(const FreezePoint& point, const KernelFeatures& features) {
  OpenedPoint opened;
  opened.what = "filesystem " + point.mount_point.Display() + " (" +
                std::to_string(point.device_major) + ":" + std::to_string(point.device_minor) + ")";
  ASSIGN_OR_RETURN(opened.root,
                   OpenSafePath(point.mount_point, O_RDONLY | O_DIRECTORY).With(opened.what));
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountEntryOf(opened.root.get(), features));
  if (mount && mount->device_major == point.device_major &&
      mount->device_minor == point.device_minor) {
    return opened;
  }
  return Error::NotApplied(
      Code::kFailedPrecondition,
      opened.what + ": " +
          (mount ? "the filesystem there is " + std::to_string(mount->device_major) + ":" +
                       std::to_string(mount->device_minor)
                 : "its mount was taken away meanwhile"));
}

int FreezeFilesystem(int root) { return ::ioctl(root, FIFREEZE, 0) == 0 ? 0 : errno; }

int ThawFrozen(int root) { return ::ioctl(root, FITHAW, 0) == 0 ? 0 : errno; }

Result<Changed> DoThawFilesystem(const ThawFilesystem& request, const KernelFeatures& features) {
  ASSIGN_OR_RETURN(const OpenedPoint point, OpenFreezePoint(request.point, features));
  const int failure = ThawFrozen(point.root.get());
  if (failure == 0) return Changed{true};
  if (failure == EINVAL) return Changed{false};
  return Error::FromErrno(failure, "thaw " + point.what, Outcome::kNotApplied);
}

}  // namespace volumed
