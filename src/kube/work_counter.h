// WorkCounter: counts visited objects, files and problems. The cost of one event must not grow with
// how much there is: the count is compared with the number of things that changed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace volumed {

// Threads: the owner's. Blocks: never.
class WorkCounter {
 public:
  void Add(size_t visited = 1) { visited_ += visited; }
  // Returns how many were visited since the counter was made.
  uint64_t visited() const { return visited_; }

 private:
  uint64_t visited_ = 0;
};

}  // namespace volumed
