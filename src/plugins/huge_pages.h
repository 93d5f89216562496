// emptyDir on huge pages: a hugetlbfs with pages of the size that the pod asks for. Private to
// emptyDir. Source: kubernetes pkg/volume/emptydir/empty_dir.go@v1.36.2 (setupHugepages,
// getPageSizeMountOption).
#pragma once

#include <cstdint>
#include <string>

#include "base/quantity.h"
#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"

namespace volumed {

inline constexpr char kMediumHugePages[] = "HugePages";
// Source: statfs(2), linux/magic.h (HUGETLBFS_MAGIC).
inline constexpr uint64_t kHugetlbfsMagic = 0x958458f6;

// "HugePages" or "HugePages-<size>".
bool IsHugePagesMedium(const std::string& medium);

// The size of the pages: that of the medium, where some container asks for such pages; for the
// medium without a size, that of all containers' huge pages. (A container may ask by its limits
// alone, which Kubernetes copies to the requests.)
// Threads: any. Blocks: never. Errors: InvalidArgument, not applied, in kubelet's words.
Result<Quantity> HugePageSizeOf(const Pod& pod, const std::string& medium);

// Mounts it at `dir`, which is there; one that is mounted already stays if its pages have this size.
// Blocks: until the deadline. Errors: FailedPrecondition, not applied, for a mount of another size
// or type; Unimplemented, not applied, where the kernel has no hugetlbfs, or no pages of this size.
Status MountHugetlbfs(Kernel& kernel, const SafePath& dir, const Quantity& page_size,
                      const CallOptions& call);

}  // namespace volumed
