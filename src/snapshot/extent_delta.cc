#include "snapshot/extent_delta.h"

#include <linux/fiemap.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace volumed {
namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// They say nothing about where the bytes are, or what they are.
constexpr uint32_t kHarmlessFlags =
    FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_MERGED | FIEMAP_EXTENT_SHARED;

enum class Holds { kZero, kPlace, kDoubt };

// What a file has from an offset on, up to `end`.
struct Piece {
  Holds holds = Holds::kZero;
  int64_t shift = 0;  // from an offset in the file to one on the disk
  int64_t end = kNoEnd;
};

int64_t EndOf(const FileExtentRun& run) {
  return run.bytes > kNoEnd - run.logical ? kNoEnd : run.logical + run.bytes;
}

Piece PieceOf(const FileExtentRun& run) {
  Piece piece{.holds = Holds::kDoubt, .shift = 0, .end = EndOf(run)};
  if ((run.flags & ~kHarmlessFlags) != 0) return piece;
  if ((run.flags & FIEMAP_EXTENT_UNWRITTEN) != 0) {
    piece.holds = Holds::kZero;
  } else if (run.physical > 0) {
    piece.holds = Holds::kPlace;
    piece.shift = run.physical - run.logical;
  }
  return piece;
}

// Goes through a file once.
class RunCursor {
 public:
  explicit RunCursor(const ExtentRuns& runs) : runs_(&runs) {}

  // REQUIRES: it is not below that of an earlier call.
  Piece At(int64_t offset) {
    while (at_ < runs_->size() && EndOf((*runs_)[at_]) <= offset) ++at_;
    if (at_ == runs_->size()) return {};
    const FileExtentRun& run = (*runs_)[at_];
    if (offset < run.logical) return {.holds = Holds::kZero, .shift = 0, .end = run.logical};
    return PieceOf(run);
  }

 private:
  const ExtentRuns* runs_;
  size_t at_ = 0;
};

bool IsSame(const Piece& a, const Piece& b) {
  if (a.holds != b.holds || a.holds == Holds::kDoubt) return false;
  return a.holds == Holds::kZero || a.shift == b.shift;
}

// As whole blocks; what touches the range before is one with it.
void AddRange(const ByteRange& window, int64_t block_bytes, int64_t from, int64_t to,
              std::vector<ByteRange>& ranges) {
  const int64_t begin = std::max(window.offset, from - from % block_bytes);
  const int64_t to_fill = (block_bytes - to % block_bytes) % block_bytes;
  const int64_t end = to + std::min(to_fill, window.end() - to);
  if (!ranges.empty() && begin <= ranges.back().end()) {
    ranges.back().bytes = end - ranges.back().offset;
  } else {
    ranges.push_back({.offset = begin, .bytes = end - begin});
  }
}

}  // namespace

std::vector<ByteRange> ChangedRanges(std::span<const ExtentRuns> files, const ByteRange& window,
                                     int64_t block_bytes) {
  std::vector<RunCursor> cursors;
  for (const ExtentRuns& file : files) cursors.emplace_back(file);
  std::vector<ByteRange> ranges;
  for (int64_t at = window.offset; at < window.end();) {
    int64_t end = window.end();
    bool is_same = true;
    Piece first;
    for (size_t i = 0; i < cursors.size(); ++i) {
      const Piece piece = cursors[i].At(at);
      if (i == 0) first = piece;
      is_same = is_same && IsSame(first, piece);
      end = std::min(end, piece.end);
    }
    if (!is_same) AddRange(window, block_bytes, at, end, ranges);
    at = end;
  }
  return ranges;
}

}  // namespace volumed
