// PoolGauges: the figures of the pools in the exposition. A scrape is given what was found last and
// has each pool looked at for the next one, so that no scrape waits for a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/scheduler.h"
#include "metrics/exported_families.h"
#include "pool/pool_volumes.h"

namespace volumed {

// How many of these ids, of volumes or of cuts, are of this pool. Pure.
int CountOfPool(const Pool& pool, const std::vector<std::string>& ids);

// Threads: control. Blocks: never.
class PoolGauges {
 public:
  // All outlive this object, and it outlives what the scheduler runs. `snapshots` has the ids of
  // those of all pools; it is called on any thread.
  struct Parts {
    Scheduler& scheduler;
    PoolVolumes& volumes;
    ExportedFamilies& families;
    std::function<std::vector<std::string>()> snapshots;
  };
  explicit PoolGauges(Parts parts) : parts_(std::move(parts)) {}
  PoolGauges(const PoolGauges&) = delete;
  PoolGauges& operator=(const PoolGauges&) = delete;

  // Tells what is known, and begins to look at each pool of which no look goes on and none began in
  // the last seconds.
  void Collect();

 private:
  struct Look {
    bool runs = false;
    bool has_counts = false;
    TimePoint began{};
    int64_t volumes = 0;
    int64_t snapshots = 0;
  };
  void LookAt(const Pool& pool);
  void Tell();

  const Parts parts_;
  std::map<const Pool*, Look> looks_;
  AliveGuard alive_;
};

}  // namespace volumed
