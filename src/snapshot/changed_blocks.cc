#include "snapshot/changed_blocks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "snapshot/snapshot_refusals.h"

namespace volumed {
namespace {

constexpr uint32_t kRunsAtOnce = 4096;
constexpr int kMostWindows = 4;
constexpr int64_t kNoKnownPlace = 0;  // FileExtentRun::physical

// A deletion that is begun is not given up: to whoever makes backups the snapshot is gone by then.
Result<SnapshotRecord> FindThere(const SnapshotEngine& engine, const std::string& id) {
  std::optional<SnapshotRecord> snapshot = engine.Find(id);
  if (!snapshot) return engine.WhyNotFound(id);
  if (snapshot->delete_asked || snapshot->phase == SnapshotPhase::kDeleting) {
    return Error::NotApplied(Code::kNotFound, "snapshot " + id + " is being deleted");
  }
  return *std::move(snapshot);
}

Result<PoolCutRecord> FindReadyCut(const SnapshotEngine& engine, const PoolVolumes& volumes,
                                   const std::string& id) {
  ASSIGN_OR_RETURN(const SnapshotRecord snapshot, FindThere(engine, id));
  if (snapshot.phase != SnapshotPhase::kReady) {
    return SnapshotRefusal("snapshot " + id + " is not ready: it is " +
                           std::string(SnapshotPhaseName(snapshot.phase)));
  }
  return volumes.FindCut(id);
}

// A place is a number alone. On a filesystem that has several disks and counts on each anew
// (bcachefs), two blocks have the same one.
bool TellsPlacesApart(const std::string& fs_type) { return fs_type == "xfs" || fs_type == "btrfs"; }

// Two copies of a device have no block in common, though they may have the same bytes: what either
// has written down counts as changed.
bool AreOfDevice(const PoolVolumes& volumes, const PoolCutRecord& cut) {
  const Result<PoolVolumeRecord> volume = volumes.Find(cut.volume);
  return volume.ok() && volume->backend == PoolBackendKind::kStatic;
}

Status CheckComparable(const PoolVolumes& volumes, const PoolCutRecord& base,
                       const PoolCutRecord& target) {
  if (base.volume != target.volume) {
    return Error::NotApplied(Code::kInvalidArgument, "snapshots " + base.id + " and " + target.id +
                                                         " are of different volumes, " +
                                                         base.volume + " and " + target.volume);
  }
  if (AreOfDevice(volumes, target)) return OkStatus();
  for (const PoolCutRecord* const cut : {&base, &target}) {
    if (cut->is_copy) {
      return SnapshotRefusal("snapshot " + cut->id +
                             " is a copy, which has no blocks in common with others: it is not "
                             "known what has changed");
    }
    if (!TellsPlacesApart(cut->object.fs_type)) {
      return SnapshotRefusal("snapshot " + cut->id + " lies on " + cut->object.fs_type +
                             ", of which it is not known that two of its blocks never have the "
                             "same place");
    }
  }
  return OkStatus();
}

// Up to where the list says what there is.
int64_t KnownUntil(const ExtentList& list) {
  if (list.done) return std::numeric_limits<int64_t>::max();
  return list.runs.empty() ? 0 : list.runs.back().logical + list.runs.back().bytes;
}

// The lists from an offset on of those whose bytes are compared. A filesystem may move the blocks
// of a file (a balance of btrfs), and may give their old place to the other file before that is
// asked: so the base is asked before and after, and what it has at two places counts as changed.
Result<std::vector<ExtentList>> ListAll(const PoolVolumes& volumes, const ChangedBlocksQuery& query,
                                        int64_t from, const CallOptions& call) {
  std::vector<std::string> ids = {query.target};
  if (!query.base.empty()) ids = {query.base, query.target, query.base};
  std::vector<ExtentList> lists;
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(ExtentList list, volumes.ListCutExtents(id, from, kRunsAtOnce, call));
    lists.push_back(std::move(list));
  }
  if (query.base.empty()) lists.push_back({.runs = {}, .done = true});
  return lists;
}

// A part of a file from `from` on, which is at least a block or the rest, of which each list is
// known; and what has changed there.
struct Window {
  ByteRange range;
  std::vector<ByteRange> changed;
};

// With `are_copies` no place of the one is one of the other.
Result<Window> LookFrom(const PoolVolumes& volumes, const ChangedBlocksQuery& query,
                        bool are_copies, int64_t from, int64_t size, const CallOptions& call) {
  ASSIGN_OR_RETURN(std::vector<ExtentList> lists, ListAll(volumes, query, from, call));
  int64_t end = size;
  for (const ExtentList& list : lists) end = std::min(end, KnownUntil(list));
  if (end < size) end -= end % kPoolBlockBytes;
  if (end <= from) {
    // Extents that are smaller than a block, and too many of them for one list.
    const ByteRange block{.offset = from, .bytes = std::min(kPoolBlockBytes, size - from)};
    return Window{.range = block, .changed = {block}};
  }
  std::vector<ExtentRuns> files;
  for (ExtentList& list : lists) {
    for (FileExtentRun& run : list.runs) run.physical = are_copies ? kNoKnownPlace : run.physical;
    files.push_back(std::move(list.runs));
  }
  const ByteRange range{.offset = from, .bytes = end - from};
  return Window{.range = range, .changed = ChangedRanges(files, range, kPoolBlockBytes)};
}

// Takes over what fits, and says from where to go on.
void AddWindow(const Window& window, size_t most, ChangedBlocks& part) {
  for (const ByteRange& range : window.changed) {
    std::vector<ByteRange>& ranges = part.ranges;
    if (!ranges.empty() && ranges.back().end() == range.offset) {
      ranges.back().bytes += range.bytes;
    } else if (ranges.size() == most) {
      part.next = range.offset;
      return;
    } else {
      ranges.push_back(range);
    }
  }
  part.next = window.range.end();
}

Result<ChangedBlocks> FindPart(const SnapshotEngine& engine, const PoolVolumes& volumes,
                               const ChangedBlocksQuery& query, const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolCutRecord target, FindReadyCut(engine, volumes, query.target));
  if (!query.base.empty()) {
    ASSIGN_OR_RETURN(const PoolCutRecord base, FindReadyCut(engine, volumes, query.base));
    RETURN_IF_ERROR(CheckComparable(volumes, base, target));
  }
  const bool are_copies =
      !query.base.empty() && query.base != query.target && AreOfDevice(volumes, target);
  const int64_t size = target.size_bytes;
  if (query.from < 0 || query.from > size) {
    return Error::NotApplied(Code::kOutOfRange,
                             "offset " + std::to_string(query.from) + " is beyond snapshot " +
                                 target.id + ", which has " + std::to_string(size) + " bytes");
  }
  ChangedBlocks part{.ranges = {}, .volume_bytes = size, .next = query.from};
  if (!part.is_last()) part.next -= part.next % kPoolBlockBytes;
  for (int windows = 0; windows < kMostWindows; ++windows) {
    if (part.is_last() || part.ranges.size() >= query.most) break;
    ASSIGN_OR_RETURN(const Window window,
                     LookFrom(volumes, query, are_copies, part.next, size, call));
    AddWindow(window, query.most, part);
  }
  return part;
}

}  // namespace

Status CheckNotDeleted(const SnapshotEngine& engine, const ChangedBlocksQuery& query) {
  RETURN_IF_ERROR(FindThere(engine, query.target));
  if (query.base.empty()) return OkStatus();
  RETURN_IF_ERROR(FindThere(engine, query.base));
  return OkStatus();
}

Result<ChangedBlocks> FindChangedBlocks(const SnapshotEngine& engine, const PoolVolumes& volumes,
                                        const ChangedBlocksQuery& query, const CallOptions& call) {
  Result<ChangedBlocks> part = FindPart(engine, volumes, query, call);
  if (part.ok()) return part;
  // Whatever is missing of a snapshot that was deleted meanwhile, that is why.
  RETURN_IF_ERROR(CheckNotDeleted(engine, query));
  return part;
}

}  // namespace volumed
