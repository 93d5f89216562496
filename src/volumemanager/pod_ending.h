// Why a pod that a source has is to lose its volumes, and how long it keeps them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kube/objects.h"

namespace volumed {

// What an object says itself about its end.
struct PodEnding {
  // For people: "its deletion was requested".
  std::string reason;
  // How long its volumes stay if no consumer was ever known, from when this agent hears of the
  // deletion; 0: they go at once.
  int64_t grace_seconds = 0;
};

// nullopt if the pod goes on. A pod ends if its phase is Succeeded or Failed, or if its metadata
// has a deletion timestamp; that timestamp is of another machine's clock, and is not compared.
// Threads: any. Blocks: never.
std::optional<PodEnding> EndingOf(const Pod& pod);

}  // namespace volumed
