// Ballast: a file that only takes up space, so that there is some to give when the disk is full.
// A node whose disk is full must still be able to record that volumes were taken away; often that
// is what frees the disk.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace volumed {

// Threads: one. Blocks: on the disk.
class Ballast {
 public:
  // `size_bytes` 0: no ballast; it then is never spent.
  Ballast(std::string path, int64_t size_bytes);

  // Makes the file if the filesystem has room for twice its size: with room for just one, the next
  // write would spend it at once. If there is no room, a spent ballast stays spent, without an
  // error. Errors: what else may be wrong with the file; not applied.
  Status Restore();

  // Gives the space back to the filesystem. False if there was none to give, or if that failed; it
  // counts as spent then too.
  bool Spend();

  // Whether it is without its space: the disk is full, or was and has not enough room yet.
  bool spent() const { return spent_; }

 private:
  const std::string path_;
  const int64_t size_bytes_;
  bool spent_ = false;
};

}  // namespace volumed
