// ExtentDelta: which bytes of files that share blocks may differ, by where their blocks lie. Pure;
// threads: any. Blocks: never.
//
// A filesystem never writes to a block that another file has, too: whoever writes to one of the
// files gets a new block. So what lies at the same place of the disk, at the same offset, is the
// same; and whatever this cannot be said of counts as changed. A hole, and an extent that is
// allocated and was never written to, read as zero, wherever they are.
// Source: Linux Documentation/filesystems/fiemap.rst.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "os/image_requests.h"

namespace volumed {

struct ByteRange {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t end() const { return offset + bytes; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Of one file: in the order of its bytes and apart, as ExtentList has them.
using ExtentRuns = std::vector<FileExtentRun>;

// The ranges of `window`, ascending and apart, of which it is not certain that all of the files
// have the same bytes there: other blocks; blocks where another has none; and whatever is encoded,
// delayed, inline, not aligned, of a kind that this program does not know, or at no known place, in
// any of them. A file without runs is one that reads as zero. They begin and end at multiples of
// `block_bytes`, or at the ends of the window, which begins at such a multiple. REQUIRES: each list
// is whole for the window.
std::vector<ByteRange> ChangedRanges(std::span<const ExtentRuns> files, const ByteRange& window,
                                     int64_t block_bytes);

}  // namespace volumed
