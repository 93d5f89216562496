// How much of a walk is walked: everything for scripts/full, otherwise a sample that is the same
// each time, and a thinner one under a sanitizer, which takes six times as long for each point.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace volumed {

inline bool WalksEverything() {
  const char* full = std::getenv("VOLUMED_CRASH_FULL");
  return full != nullptr && std::string(full) == "1";
}

// "": all of them. For a look at one scenario as a whole.
inline std::string OnlyScenario() {
  const char* only = std::getenv("VOLUMED_CRASH_SCENARIO");
  return only == nullptr ? "" : only;
}

// A sample has one in so many of the points that it has without a sanitizer.
#ifdef VOLUMED_SANITIZED
inline constexpr uint64_t kSampleThinning = 5;
#else
inline constexpr uint64_t kSampleThinning = 1;
#endif

}  // namespace volumed
