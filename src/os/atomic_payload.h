// Publishing a set of files as one change, in kubelet's layout:
//   <target>/..data -> ..2026_01_31_10_00_00.1234567890
//   <target>/..2026_01_31_10_00_00.1234567890/dir/file
//   <target>/dir -> ..data/dir
// Consumers read through the links and see all of the old files or all of the new ones.
// Source: kubernetes pkg/volume/util/atomic_writer.go@v1.36.2. Unlike there, a change of modes,
// owner or group alone is a change, a left-over ..data_tmp does not block, directories that nothing
// refers to are removed, and wrong or stale links of the first level are put right.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// See os/kernel_requests.h (WriteAtomicPayload). `changed` says that a new set was published; links
// that were put right and left-overs that were removed do not count. With `gid`, files get mode |=
// 0440, directories mode |= 02550, as for a read-only volume. Errors: InvalidArgument, not applied,
// naming the path of the payload that may not be; FailedPrecondition, not applied, when ..data is
// something else than a link; before the switch everything is taken back (not applied), after it is
// maybe applied. Threads: one per target. Blocks: as the filesystem does.
Result<Changed> DoWriteAtomicPayload(const WriteAtomicPayload& request, const CallOptions& options);

// Pure. Relative, clean, at most 4096 bytes, components at most 255, none "..", the first not
// beginning with ".."; no path twice, and none that is a directory of another.
Status ValidatePayloadPaths(const std::vector<PayloadFile>& files);

}  // namespace volumed
