// WorkCounter: how many objects, files and problems were visited. Tests hold it against the number
// that changed: what one event costs must not grow with what there is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace volumed {

// Threads: that of its owner.
class WorkCounter {
 public:
  void Add(size_t visited = 1) { visited_ += visited; }
  uint64_t visited() const { return visited_; }

 private:
  uint64_t visited_ = 0;
};

}  // namespace volumed
