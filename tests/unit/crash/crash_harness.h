// The crash walk: a scenario is run once to count its crash points, then once for each of them with
// the agent ended exactly there, and a new agent started on what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/object_source.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "os/kernel.h"
#include "records/record_store.h"
#include "unit/crash/crash_world.h"
#include "unit/crash/overlapping_scheduler.h"
#include "volumehost/irreversible_steps.h"

namespace volumed {

class CrashCsiCalls;

// ---- a scenario ---------------------------------------------------------------------------------

struct ScenarioStep {
  std::string name;
  // What happens in the world: sources, commands, processes. Its agent hears of it afterwards.
  std::function<void(CrashWorld&)> happen;
  // How long everybody waits until what follows is looked at.
  Duration settle = std::chrono::seconds(30);
  // Instead: only so many steps of the scheduler, so that the next thing happens amid the work.
  int scheduler_steps = 0;
  // The world is compared with the crash-free run's after this step. Not where the step waits for
  // nothing, or where a reboot makes a difference that is right.
  bool compare = true;
  bool compare_after_reboot = true;
  // Pods of which nothing is left after it.
  std::vector<std::string> gone = {};
  bool no_devices = false;  // no device is mounted after it
  // Likewise, unless a process holds them.
  std::vector<std::string> gone_unless_held = {};
};

struct Scenario {
  std::string name;
  // Run without a crash, once; its agent ends and the walked steps begin with a new one.
  std::vector<ScenarioStep> before;
  std::vector<ScenarioStep> steps;
  bool applies = false;  // there is a directory of applied objects
  bool csi = false;      // there is a CSI driver
  bool pool = false;     // the node has a pool
};

// ---- a seeded bug -------------------------------------------------------------------------------

// What a mistake in the operations may use.
struct SeededOperations {
  VolumeOperations& real;
  // Others, on the same records, which know of no key and of no storage that `real` has taken.
  VolumeOperations& other;
  StorageGuard& storage;  // of `real`
};

// What a mistake in the program could do, seeded from outside. Empty functions: no such mistake.
struct SeededBug {
  std::string name;
  // In front of the watchers: what it does is seen as the agent's doing.
  std::function<std::unique_ptr<Kernel>(Kernel& real, CrashWorld& world)> kernel;
  std::function<std::unique_ptr<RecordStore>(RecordStore& real, CrashWorld& world)> store;
  std::function<std::unique_ptr<VolumeOperations>(const SeededOperations& parts)> operations;
  // Between the CSI plugin and its driver, which is seen to be called by the agent.
  std::function<std::unique_ptr<CrashCsiCalls>(CrashCsiCalls& real, CrashWorld& world)> csi;
  // Changes what a source delivers; `first`: the source's first list to this agent.
  std::function<void(ObjectList& list, bool first)> list;
  // A claim that has left its source is taken for one that was deleted.
  bool takes_absence_for_a_command = false;
  bool ignores_removals = false;     // removal-deletes-claims is not heeded
  bool waits_for_no_source = false;  // ready as soon as one source has delivered
  bool ignores_boot_id = false;
  // What is not held back while the records are older.
  std::set<IrreversibleStep> steps_not_held = {};
  bool knows_no_own_directories = false;  // of the agent, which nobody may empty
  bool forgets_unconfigured_sources = false;
  bool ignores_consumers = false;  // whoever holds a pod is taken for gone
  // A worker that goes on after its agent keeps nobody from its volumes.
  bool workers_hold_no_keys = false;
  bool dead_workers_did_nothing = false;  // and so nothing is tried again or cleaned up
};

// ---- a run --------------------------------------------------------------------------------------

// How an agent of a run ends; the first crash is the first agent's, and so on.
enum class EndPlace { kKernel, kStore, kDriver };

struct AgentEnd {
  EndPlace where = EndPlace::kKernel;  // at a call of it, or a write to it
  uint64_t number = 0;
  bool after = false;         // its effect is made
  bool driver_alone = false;  // the driver ends, and the agent hears of it
  bool reboot = false;
  bool power_loss = false;  // of a reboot
  // The records that the next agent finds are older: those after so many writes of this one.
  std::optional<size_t> older_state = std::nullopt;
  bool number_too = false;  // and their number is put back with them
  // In place of a call: the line to the worker breaks amid a composite.
  std::optional<BrokenLine> line = std::nullopt;
  std::string ToString() const;
};

struct PointCounts {
  uint64_t kernel_calls = 0;
  uint64_t record_writes = 0;
  uint64_t driver_calls = 0;  // of a CSI driver, those that change something
  uint64_t primitives = 0;    // of the kernel calls, those in composites
  uint64_t points() const { return 2 * (kernel_calls + record_writes + driver_calls); }
};

struct RunResult {
  std::vector<std::string> snapshots;  // one per step
  std::vector<PointCounts> agents;     // of each agent of the run
  size_t ends = 0;                     // crashes that came about
  uint64_t switches = 0;               // from one operation to another, amid it
  std::vector<std::string> violations;
  std::string call_log;  // of the last agent
  // What was stored to last at the end of each step, and the states of the records until the first
  // end of an agent; of a run that is watched for the older-records walk.
  std::vector<std::map<std::string, std::string>> stored;
  size_t record_states = 0;
};

// With `right`, which was run to the same end without older records, only losses are violations.
struct OlderRecordsRun {
  bool watch = false;
  const RunResult* right = nullptr;
};

// The world in which the walked steps begin.
std::unique_ptr<CrashWorld> PrepareWorld(const Scenario& scenario, uint64_t seed);
// Points are numbered: kernel calls first, then record writes, then calls of a driver; before and
// after each.
AgentEnd EndOfPoint(const PointCounts& counts, uint64_t point);

// With `overlap` operations overlap effect by effect; `expected` is of a run where they do not.
RunResult RunScenario(const Scenario& scenario, const CrashWorld& start, const SeededBug& bug,
                      uint64_t seed, const std::vector<AgentEnd>& ends,
                      const std::vector<std::string>* expected, const OlderRecordsRun& older = {},
                      const std::optional<OverlapSchedule>& overlap = {});

// ---- the walk -----------------------------------------------------------------------------------

enum class WalkKind {
  kCrash,
  kReboot,
  kPowerLoss,
  kTwice,
  kWorkerDies,
  kWorkerOutlives,
  kDriverDies,
};
const char* WalkKindName(WalkKind kind);

struct WalkOptions {
  WalkKind kind = WalkKind::kCrash;
  uint64_t seed = 1;
  uint64_t stride = 1;  // every n-th point is walked; the first one is chosen by the seed
  bool stop_at_first = false;
};

struct WalkReport {
  uint64_t points = 0;  // there are
  uint64_t walked = 0;
  uint64_t ends = 0;        // agents that were ended there
  uint64_t runs = 0;        // those without a crash included
  uint64_t violations = 0;  // runs with at least one
  std::vector<std::string> examples;
  void Add(const WalkReport& other);
};

WalkReport Walk(const Scenario& scenario, const SeededBug& bug, const WalkOptions& options);

// ---- operations that overlap ------------------------------------------------------------------

struct OverlapWalk {
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  bool crashes = true;  // each schedule once more, with an agent that is ended amid it
  bool stop_at_first = false;
};

struct OverlapReport {
  WalkReport walk;  // its runs, and what broke in them
  uint64_t switches = 0;
  std::string calls;  // of the last agent of the first run that broke something
};

// Each seed is a schedule by which the operations of the scenario overlap, and is named with what
// it breaks.
OverlapReport WalkOverlaps(const Scenario& scenario, const SeededBug& bug, const OverlapWalk& walk);

// An example of each kind of violation goes into the report.
void Count(WalkReport& report, const std::string& title, const RunResult& run);

}  // namespace volumed
