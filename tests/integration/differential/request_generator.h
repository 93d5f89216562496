// Random requests, of every kind that os/kernel_requests.h has, about a small world in which they
// meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "os/kernel_requests.h"

namespace volumed {

class RequestGenerator {
 public:
  // Paths lie at or below `world`, which is also a path's root most of the time.
  RequestGenerator(uint64_t seed, std::string world)
      : random_(seed), world_(std::move(world)), tame_(OneIn(2)) {}

  // An alternative of AnyRequest without a maker here does not compile.
  AnyRequest Next();
  // True once in `n`.
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  template <typename Request>
  struct Maker;
  std::string NoDevice();

  SafePath Path();
  // One of the few places where mounts gather.
  SafePath MountPoint();
  std::string Relative();
  uint32_t Mode();
  uint32_t Gid();
  std::vector<std::string> TmpfsOptions();
  PayloadFile File();

  std::mt19937_64 random_;
  const std::string world_;
  // Half of the sequences keep to a few good places, so that their effects meet more often.
  const bool tame_;
};

// One of the list.
template <typename T, size_t N>
T Pick(RequestGenerator& random, T (&list)[N]) {
  return list[random.Below(static_cast<uint32_t>(N))];
}

// A request in one line, without contents.
std::string RequestText(const AnyRequest& request);

}  // namespace volumed
