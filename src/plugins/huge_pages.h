// emptyDir on huge pages: a hugetlbfs with pages of the size that the pod requests. Private to
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

// True for "HugePages" and "HugePages-<size>".
bool IsHugePagesMedium(const std::string& medium);

// The size of the pages. A medium with a size has that size, if some container requests such pages;
// a medium without one has the size of the huge pages that all containers request. (A container may
// only have limits; Kubernetes copies them to its requests.)
// Threads: any. Blocks: never. Errors: InvalidArgument, not applied, in kubelet's words. Init
// containers and the pod's own resources count like containers; a medium without a size is an error
// if they name several sizes.
Result<Quantity> HugePageSizeOf(const Pod& pod, const std::string& medium);

// Mounts a hugetlbfs at `dir`, which exists; one that is already mounted stays if its pages have
// this size. Blocks: until the deadline. Errors: FailedPrecondition, not applied, if a mount of
// another size or type is there; Unimplemented, not applied, if the kernel has no hugetlbfs, or no
// pages of this size.
Status MountHugetlbfs(Kernel& kernel, const SafePath& dir, const Quantity& page_size,
                      const CallOptions& call);

}  // namespace volumed
