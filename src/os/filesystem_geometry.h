// How large a filesystem is, by its own geometry: read from its superblock, or asked of the kernel
// where it is mounted and the superblock on the device may be old.
//
// Threads: any. Blocks: as the device and the filesystem do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace volumed {

// The kinds of filesystems that have one set of tools and one way to be grown.
enum class FilesystemFamily { kExt, kXfs, kBtrfs };
// nullopt for a type of none of them. Pure.
std::optional<FilesystemFamily> FilesystemFamilyOf(const std::string& fs_type);
// Whose tools are in which package of Debian.
const char* ToolPackageOf(FilesystemFamily family);

struct FilesystemGeometry {
  int64_t size_bytes = 0;
  int64_t block_bytes = 0;
  // A rest of the device that is smaller than this may be of no use to the filesystem.
  int64_t smallest_growth_bytes = 0;
  bool has_errors = false;      // ext: the flag in the superblock
  uint64_t device_number = 0;   // btrfs: of this device in its filesystem
  std::string filesystem_uuid;  // btrfs: 16 bytes
};

// From the superblock on the device. Right for one that is not mounted; and for a mounted ext,
// whose superblock the kernel keeps in the device's own cache. Errors, not applied: DataLoss where
// there is no such superblock; errno of reading.
Result<FilesystemGeometry> ReadGeometry(FilesystemFamily family, int device,
                                        const std::string& what);

// Of a mounted filesystem, by a descriptor in it; `on_device` is what ReadGeometry() answered.
// Errors, not applied: errno of the question.
Result<FilesystemGeometry> AskGeometry(FilesystemFamily family, int mounted, int device,
                                       const FilesystemGeometry& on_device,
                                       const std::string& what);

// Nothing is left of the device that the filesystem could use. Pure.
bool FillsDevice(const FilesystemGeometry& geometry, int64_t device_bytes);

// The kernel's calls that make a mounted filesystem as large as `device_bytes`; 0, or an errno.
int GrowMounted(FilesystemFamily family, int mounted, const FilesystemGeometry& geometry,
                int64_t device_bytes);

// That `mounted` is the filesystem of this device. FailedPrecondition, not applied, if not.
Status CheckMountedFrom(FilesystemFamily family, int mounted, int device,
                        const FilesystemGeometry& on_device, const std::string& what);

}  // namespace volumed
