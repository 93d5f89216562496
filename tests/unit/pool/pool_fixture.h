// A node with a directory for a pool, and the agents that use it one after the other, for the tests
// of pool/.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/manual_clock.h"
#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "fakes/must.h"
#include "pool/pool.h"
#include "pool/pool_volumes.h"

namespace volumed {

inline constexpr int64_t kMiB = 1024 * 1024;
inline const std::string kPoolPath = "/srv/pool";

inline PoolSettings TestPool(const std::string& name = "fast",
                             const std::string& path = kPoolPath) {
  return {
      .name = name, .path = path, .limits = {}, .holder = "the agent of node n1, with pid 4711"};
}

// What outlives the agents.
struct PoolWorld {
  PoolWorld() { kernel.AddDirectory(kPoolPath); }

  template <typename Request>
  typename Request::Answer Aside(const Request& request) {
    return std::get<typename Request::Answer>(Must(kernel.DoAside(request)));
  }
  static std::string ImageOf(const std::string& id) {
    return kPoolPath + "/volumes/" + id + "/image";
  }
  FileInfo Look(const std::string& path) { return Aside(Stat{.path = {path, ""}}); }
  std::vector<LoopEntry> Loops() { return Aside(ListLoops{{kPoolPath, "volumes"}}).loops; }
  // The names in the pool's directory of volumes.
  std::vector<std::string> Directories() {
    std::vector<std::string> names;
    const std::string volumes = kPoolPath + "/volumes";
    if (!kernel.Exists(volumes)) return names;
    for (const DirectoryEntry& entry : Aside(ListDirectory{{volumes, ""}}).entries) {
      names.push_back(entry.name);
    }
    return names;
  }
  std::vector<PoolVolumeRecord> Rows() const {
    std::vector<PoolVolumeRecord> rows;
    for (const Record& row : store.All()) {
      if (row.kind == kPoolVolumeRecordKind) rows.push_back(Must(DecodePoolVolumeRecord(row)));
    }
    return rows;
  }

  FakeKernel kernel;
  MemoryRecordStore store;
};

// An agent's part of it. It has the rows when it is made, and no pool is open until Recover().
class PoolAgent {
 public:
  explicit PoolAgent(PoolWorld& world, std::vector<PoolSettings> settings = {TestPool()},
                     bool in_doubt = false)
      : log({.target = LogOptions::Target::kCallback, .callback = {}}, clock) {
    irreversible.hold = in_doubt;
    std::vector<std::unique_ptr<Pool>> pools;
    for (PoolSettings& pool : settings) {
      pools.push_back(
          std::make_unique<Pool>(std::move(pool), world.kernel, world.store, clock, log));
    }
    volumes = std::make_unique<PoolVolumes>(
        PoolVolumes::Parts{world.store, world.kernel, clock, log, irreversible}, std::move(pools));
    for (const char* kind : {kPoolRecordKind, kPoolVolumeRecordKind, kPoolCutRecordKind}) {
      volumes->Restore(kind, Must(world.store.Load(kind)));
    }
  }

  Status Recover(const std::set<std::string>& used = {}) {
    return volumes->Recover([&used](const std::string& id) { return used.contains(id); }, {});
  }
  Pool& pool() { return *volumes->pools().front(); }

  ManualClock clock;
  Logger log;
  FakeIrreversibleSteps irreversible;
  std::unique_ptr<PoolVolumes> volumes;
};

inline PoolVolumeWish Wish(const std::string& name, int64_t bytes = 16 * kMiB) {
  PoolVolumeWish wish;
  wish.name = name;
  wish.size.required_bytes = bytes;
  return wish;
}

}  // namespace volumed
