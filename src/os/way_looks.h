// WayLooks: the ways on which a worker has found no link just now.
//
// A look tells how a way was, and never how it will be when the request comes: a link that is put
// there after it leads into the lane of the filesystem that it lies on. So one look does for all
// requests of an operation, each of which would have cost a worker's turn more.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "os/mount_entry.h"

namespace volumed {

// Threads: any. Blocks: never.
class WayLooks {
 public:
  static constexpr Duration kHolds = std::chrono::seconds(1);

  // Whether the path was found to have no link on this mount, by a look that began not longer ago
  // than that.
  bool IsKnown(const std::string& path, const MountEntry& mount, TimePoint now) const EXCLUDES(mu_);
  // `began`: when the look was asked for.
  void Note(const std::string& path, const MountEntry& mount, TimePoint began) EXCLUDES(mu_);

 private:
  struct Look {
    uint64_t mount_id = 0;
    FilesystemPart part;
    TimePoint began;
  };

  mutable Mutex mu_;
  std::map<std::string, Look> looks_ GUARDED_BY(mu_);
};

}  // namespace volumed
