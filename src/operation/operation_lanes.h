// OperationLanes: which operations may take a thread now. Those that would only wait for a worker
// of a filesystem or server that hangs wait here instead, and cost nobody anything.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lanes.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "os/fault_domain.h"

namespace volumed {

// Threads: the control thread. Blocks: never: on which filesystems paths lie is looked up on an
// executor thread, and on one at a time however many operations come at once.
class OperationLanes {
 public:
  // The place of one operation, waiting or taken.
  using PlaceId = uint64_t;

  // Both outlive this, and what it started on the scheduler. Without `domains` (null) each domain
  // is a lane of its own name, and is always healthy.
  OperationLanes(Scheduler& scheduler, FaultDomains* domains, LaneLimits limits);
  OperationLanes(const OperationLanes&) = delete;
  OperationLanes& operator=(const OperationLanes&) = delete;

  // Calls `begin` once, on the control thread, when there is room in the lane of `domain`
  // (CallOptions::domain): before this returns if there is. The domain's name is for people, and
  // may be empty. An operation that `takes_away` has a lane beside it: what hangs may be taken away
  // although its workers are lost, by force at least. One that comes with many others has, on the
  // agent's own filesystem, a lane beside those that come alone, which do not wait for it.
  struct Kind {
    bool takes_away = false;
    bool with_many = false;
  };
  PlaceId Enter(const FaultDomain& domain, Kind kind, Task begin);
  // True if the place was waiting; then `begin` is never called, and the place is gone.
  bool GiveUp(PlaceId place);
  // Its operation has ended. REQUIRES: it has begun.
  void Leave(PlaceId place);
  // To be called when FaultDomains::HealthOf() may answer something else.
  void LanesChanged() { Admit(); }
  void SetLimits(LaneLimits limits);

  // What the place waits for; nullopt once it has begun.
  std::optional<LaneWait> WaitOf(PlaceId place) const;

 private:
  struct Place {
    std::string name;  // of the domain, for people; empty while it is looked for
    std::string lane;  // the domain's, or the one beside it
    Kind kind;
    bool located = false;
    Lanes::Ticket ticket = 0;  // 0: it does not wait in a lane
    Task begin;
  };
  // A lane that places are in, as FaultDomains names it.
  struct Known {
    std::string lane;
    bool takes_away = false;
    int places = 0;
  };

  // A place whose domain is a path, for which a lane is to be found.
  struct Lookup {
    PlaceId id = 0;
    std::string path;
  };
  void LookUp();
  void Queue(PlaceId id, const FaultDomain& domain);
  std::string OwnLane(bool with_many);
  LaneHealth HealthOf(const Known& known) const;
  // A place of the lane is gone.
  void Forget(const std::string& lane);
  void Admit();

  Scheduler& scheduler_;
  FaultDomains* const domains_;
  Lanes lanes_;
  std::map<PlaceId, Place> places_;
  std::map<Lanes::Ticket, PlaceId> waiting_;
  std::map<std::string, Known> known_;
  std::vector<Lookup> to_look_up_;
  bool looking_up_ = false;  // an executor thread looks others up
  PlaceId next_id_ = 1;
  // Of those that wait for nothing but the agent's own filesystem.
  struct Burst {
    uint64_t number = 0;
    std::optional<TimePoint> last;
  };
  Burst alone_, many_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
