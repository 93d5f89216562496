// ResizeFs: makes the filesystem of a device as large as the device.
//
// Differences from kubelet's, on purpose: to grow a mounted filesystem the kernel is asked, and no
// program (xfs_growfs, btrfs); an ext3 or ext4 that is not mounted may be grown too; and NeedResize
// measures every type, while kubelet's says "yes" for all but btrfs.
// Source: kubernetes mount-utils resizefs_linux.go@v1.36.2 (ResizeFs).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

struct ResizeRequest {
  std::string device;                  // a path
  std::optional<SafePath> mounted_at;  // of a mounted one; only ext3 and ext4 may do without
};

// Threads: any, one call per device at a time. Blocks: until call.deadline for looking; as long as
// it takes for growing, which is never ended half way.
// Errors: those of ProbeDevice and GrowFilesystem; InvalidArgument, not applied, "resize of format
// ... is not supported"; FailedPrecondition, not applied, for a read-only device that its
// filesystem does not fill.
class ResizeFs {
 public:
  explicit ResizeFs(Kernel& kernel) : kernel_(kernel) {}

  // nullopt: there is no filesystem, and so nothing to do.
  Result<std::optional<FilesystemGrowth>> Resize(const ResizeRequest& request,
                                                 const CallOptions& call);
  // False for a read-only device, and for one without a filesystem.
  Result<bool> NeedResize(const ResizeRequest& request, const CallOptions& call);

 private:
  Result<std::optional<FilesystemGrowth>> Ask(const ResizeRequest& request, bool only_measure,
                                              const CallOptions& call);
  Kernel& kernel_;
};

// Whether this proves that the volume has `target_bytes`: the device does, and its filesystem does
// or has all of the device that it could use. The filesystem is taken by its own geometry; what it
// needs for itself counts, as it does for a new filesystem on a device of that size. Pure.
bool ProvesSize(const FilesystemGrowth& growth, int64_t target_bytes);

// "ext4 of 2147483648 bytes on a device of 2147483648 bytes". Pure.
std::string GrowthText(const FilesystemGrowth& growth);

}  // namespace volumed
