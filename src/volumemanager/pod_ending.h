// Why a pod that a source has is to lose its volumes, and how long it keeps them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kube/objects.h"

namespace volumed {

struct PodEnding {
  std::string reason;
  int64_t grace_seconds = 0;
};

// nullopt if the pod goes on. Threads: any. Blocks: never.
std::optional<PodEnding> EndingOf(const Pod& pod);

}  // namespace volumed
