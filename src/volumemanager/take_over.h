// TakeOver: how many volumes of the last agent this one found at its start, and of how many no
// record says what they were.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconstruct.go@v1.36.2 (the metrics).
#pragma once

#include <cstdint>
#include <set>

#include "operation/volume_operations.h"

namespace volumed {

// A value.
struct TakeOver {
  uint64_t volumes = 0;     // found, by whichever witness
  uint64_t unreadable = 0;  // records that could not be read; what they are about is left alone
  // Found by the mount table or by a directory alone: kept while they are wanted, else torn down.
  std::set<PodVolumeKey> without_record;
};

}  // namespace volumed
