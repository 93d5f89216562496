// Finds out whether memory may be written to a disk.
#pragma once

#include <string_view>

namespace volumed {

// Source: kubernetes pkg/kubelet/cm/container_manager_linux.go@v1.36.2.
inline constexpr const char* kMemoryOnDiskReason = "PossibleMemoryBackedVolumesOnDisk";
inline constexpr const char* kMemoryOnDiskMessage =
    "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, "
    "etc.) might be swapped to disk and should no longer be considered secure.";

// Whether there is a swap area, of whatever kind, also one of memory (zram). Takes the text of
// /proc/swaps: a heading, then a line for each area. Source: proc(5). Threads: any. Blocks: never.
bool SwapIsOn(std::string_view proc_swaps);

}  // namespace volumed
