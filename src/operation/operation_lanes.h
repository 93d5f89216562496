// OperationLanes: decides which operations may take a thread now. An operation that would only wait
// for a worker of a filesystem or server that hangs, or for a driver that is away, waits here
// instead, and costs no thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/lanes.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"
#include "os/fault_domain.h"

namespace volumed {

// Threads: the control thread. Blocks: never; an executor thread finds out on which filesystems
// paths lie, one thread at a time however many operations come at once. Errors: none. Whoever
// enters leaves, or gives up.
class OperationLanes {
 public:
  // The place of one operation, waiting or begun.
  using PlaceId = uint64_t;

  // Scheduler and domains outlive this object and the tasks that it started. If `domains` is null,
  // each domain is a lane of its own name and is always healthy.
  OperationLanes(Scheduler& scheduler, FaultDomains* domains, LaneLimits limits);
  OperationLanes(const OperationLanes&) = delete;
  OperationLanes& operator=(const OperationLanes&) = delete;

  // Calls `begin` once, on the control thread, when there is room in the lane of `domain`
  // (CallOptions::domain); if there is room now, before this returns. The domain's name is for
  // people and may be empty. An operation that `takes_away` has a separate lane beside the
  // domain's: even if the domain's workers are lost, what hangs can be taken away, at least by
  // force. The lane beside a lane with a width has the same width, and its silence; it is closed
  // while LaneHealth::closed_to_teardown says so. On the agent's own filesystem, an operation that
  // comes with many others has a separate lane, so that operations that come alone do not wait for
  // it. An operation that `finishes` ends what others of the same lane began, as the mount of a
  // volume whose device is mounted does, or the unmount of a device that no pod has any more: it
  // goes before those of its lane that begin something.
  struct Kind {
    bool takes_away = false;
    bool with_many = false;
    bool finishes = false;
  };
  PlaceId Enter(const FaultDomain& domain, Kind kind, Task begin);
  // True if the place was waiting; `begin` is then never called, and the place is gone.
  bool GiveUp(PlaceId place);
  // The operation of the place has ended. REQUIRES: it had begun. Others may begin before this
  // returns.
  void Leave(PlaceId place);
  // To be called when FaultDomains::HealthOf() may have another answer.
  void LanesChanged() { Admit(); }
  // The limits hold from now on; operations that have begun go on.
  void SetLimits(LaneLimits limits);

  // What the place waits for, in words for people; nullopt if its operation has begun, or the place
  // is gone.
  std::optional<LaneWait> WaitOf(PlaceId place) const;
  // How many places wait for each lane of a driver, teardown among them. Looks at all who wait.
  std::map<std::string, int> WaitingForDrivers() const;
  // Whether the place waits for a lane that is closed.
  bool WaitsForClosedLane(PlaceId place) const;

 private:
  struct Place {
    // Of the domain, for people; empty until it is known.
    std::string name;
    std::string lane;  // of the domain, or the lane beside it
    Kind kind;
    bool located = false;
    Lanes::Ticket ticket = 0;  // 0: it is not in a lane
    Task begin;
  };
  // A lane that has places, as FaultDomains names it.
  struct Known {
    std::string lane;
    bool takes_away = false;
    int places = 0;
  };

  // A place whose domain is a path; its lane has to be found.
  struct Lookup {
    PlaceId id = 0;
    std::string path;
  };
  void LookUp();
  void Queue(PlaceId id, const FaultDomain& domain);
  std::string OwnLane(bool with_many);
  LaneHealth HealthOf(const Known& known) const;
  // Why a place that waits in this lane has not begun.
  LaneWait Explain(const Place& place, const Known& known) const;
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
  bool looking_up_ = false;  // an executor thread looks up paths
  PlaceId next_id_ = 1;
  // Numbers the bursts of operations that use only the agent's own filesystem.
  struct Burst {
    uint64_t number = 0;
    std::optional<TimePoint> last;
  };
  Burst alone_, many_;
  AliveGuard alive_;
};

}  // namespace volumed
