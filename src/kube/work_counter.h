// WorkCounter: counts visited objects, files and problems. Tests compare the count with the number
// that changed: the cost of one event must not grow with how much there is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace volumed {

// Threads: the owner's.
class WorkCounter {
 public:
  void Add(size_t visited = 1) { visited_ += visited; }
  uint64_t visited() const { return visited_; }

 private:
  uint64_t visited_ = 0;
};

}  // namespace volumed
