// TakeOver: how many volumes of the last agent this agent found at its start, and which of them no
// record describes.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconstruct.go@v1.36.2 (the metrics).
#pragma once

#include <cstdint>
#include <set>

#include "operation/volume_operations.h"

namespace volumed {

// This is a value.
struct TakeOver {
  uint64_t volumes = 0;  // found by any of the witnesses
  // Records that could not be read; their volumes are left alone.
  uint64_t unreadable = 0;
  // Volumes found only by the mount table or by a directory: kept while they are wanted, else torn
  // down.
  std::set<PodVolumeKey> without_record;
};

}  // namespace volumed
