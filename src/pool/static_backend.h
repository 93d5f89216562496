// The static backends: a volume is a block device that was there before, or an export of an NFS
// server, and the pool has nothing of it but the row. The path of a device may lead to another one
// tomorrow; so the device is pinned by what it says of itself (a disk's WWID), and nothing else is
// ever opened in its stead. An export says nothing of itself: it is what its server has by its
// name.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_backend.h"
#include "pool/pool_record.h"

namespace volumed {

// The device of the volume. Threads: any. Blocks: until the call's deadline, in the lane of the
// device. Errors, not applied: NotFound, if nothing is at its path; FailedPrecondition, if another
// device is there, or if it has become smaller; those of IdentifyDevice.
Result<IdentifiedDevice> FindStaticDevice(Kernel& kernel, const PoolVolumeRecord& volume,
                                          const CallOptions& call);

// The same without a volume: which device the path leads to. Errors: those of IdentifyDevice.
Result<IdentifiedDevice> IdentifyListed(Kernel& kernel, const std::string& path,
                                        const CallOptions& call);

// The same with `writes`, of a volume that is to be copied.
Result<IdentifiedDevice> FindDeviceToCopy(Kernel& kernel, const PoolVolumeRecord& volume,
                                          const CallOptions& call);

// Whether nobody can write to the device, as far as the kernel tells. Errors, not applied: those of
// CopyDevice. Threads and blocking: as FindStaticDevice.
Status CheckNobodyWrites(Kernel& kernel, const PoolVolumeRecord& volume,
                         const IdentifiedDevice& device, const CallOptions& call);

// Copies the device of the cut's volume to the file, from `cut.copied_bytes` on. Errors: those of
// FindStaticDevice and of CopyDevice.
Result<FileExtent> CopyStaticDevice(Kernel& kernel, const PoolVolumeRecord& volume,
                                    const PoolCutRecord& cut, const SafePath& to,
                                    int64_t bytes_per_second, const CallOptions& call);

// What is promised of a pool for a copy of the device: its size, in whole blocks of pools. Pure.
MadeArtefact WholeDevice(const PoolVolumeRecord& volume);

// Of which backend the cuts of such volumes are, and what is made of these: a device is copied to
// an image. Pure.
PoolBackendKind CutBackendOf(PoolBackendKind volume);

// "the device /dev/sdx", or "the export nas-1:/srv/media": for people. Pure.
std::string ShownSource(const PoolVolumeRecord& volume);

// The error of a size that is asked of an export: OutOfRange, not applied, so that whoever asks
// does not ask again. Pure.
Error WhyNoSize(const PoolVolumeRecord& volume);

// Whether the volume can have so many bytes, as far as it is a listed one: nothing makes that
// larger here. Errors: OutOfRange, not applied, likewise. Pure.
Status CheckListedSize(const PoolVolumeRecord& volume, int64_t bytes);

}  // namespace volumed
