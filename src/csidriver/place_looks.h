// PlaceLooks: whether the filesystems answer on which a CO's places lie, asked before an operation
// begins there. An operation has one of the few turns of its pool: if it found out by itself that
// the directory of its place does not answer, then a few of these would hold up every volume of the
// pool, though the pool is well.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/scheduler.h"
#include "operation/operation_lanes.h"
#include "os/fault_domain.h"
#include "os/kernel.h"
#include "os/place_names.h"
#include "os/safe_path.h"

namespace volumed {

// Asks the filesystem on which the path lies how full it is, which no cache can say, and which
// hangs with nothing else. Whatever there is, also nothing, is success, as long as anything
// answers. Threads: any. Blocks: until the deadline. Errors, not applied: DeadlineExceeded or
// Unavailable, naming the path.
Status CheckPlaceAnswers(Kernel& kernel, const SafePath& path, const CallOptions& call);

// A place at which an operation works, and what is looked at on the way to all of its places. Pure;
// threads: any.
struct NodeWay {
  SafePath place;
  std::vector<SafePath> looks;
};

// To put a volume there: what is there already is looked at, too.
inline NodeWay WayTo(const SafePath& place) { return {place, {ParentOf(place), place}}; }

// To what is mounted there, or to take it away: that may hang itself, and is none of the place's.
inline NodeWay WayOnto(const SafePath& place) { return {place, {ParentOf(place)}}; }

// Threads: the control thread. Blocks: never; a few executor threads look, four at a time of one
// filesystem.
class PlaceLooks {
 public:
  struct Parts {
    Scheduler& scheduler;
    Kernel& kernel;
    FaultDomains* domains = nullptr;  // null: each path is one of its own
    // A directory of the agent's: what lies on the filesystem of that is not looked at, as the
    // agent itself hangs with it. Empty: everything is.
    std::string own_directory = {};
  };
  using Done = std::function<void(const Status& answer)>;

  // Each look takes `longest` at most. The parts outlive what Ask() begins.
  PlaceLooks(const Parts& parts, Duration longest);

  // Looks at the paths, one after another, and calls `done` once: with the first error of
  // CheckPlaceAnswers, or success. `done` keeps this object alive until then.
  void Ask(std::vector<SafePath> paths, Done done);

 private:
  bool HangsWithTheAgent(const SafePath& path) const;

  const Parts parts_;
  const Duration longest_;
  OperationLanes lanes_;
};

}  // namespace volumed
