// The operations of each scenario overlap effect by effect: schedule after schedule, and each once
// more with the agent ended at one of its points.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_bugs.h"
#include "unit/crash/walk_sample.h"

namespace volumed {
namespace {

// For a look at one schedule: VOLUMED_OVERLAP_SEED, with VOLUMED_CRASH_SCENARIO.
uint64_t OnlySeed() {
  const char* only = std::getenv("VOLUMED_OVERLAP_SEED");
  return only == nullptr ? 0 : std::strtoull(only, nullptr, 10);
}

OverlapReport WalkAll(const std::vector<Scenario>& scenarios, OverlapWalk walk) {
  if (OnlySeed() != 0) {
    walk.first_seed = OnlySeed();
    walk.seeds = 1;
  }
  OverlapReport all;
  for (const Scenario& scenario : scenarios) {
    if (!OnlyScenario().empty() && scenario.name != OnlyScenario()) continue;
    const OverlapReport report = WalkOverlaps(scenario, {}, walk);
    std::cout << "  " << scenario.name << ": " << report.walk.runs << " runs, " << report.switches
              << " switches, " << report.walk.violations << " violations\n";
    if (OnlySeed() != 0) std::cout << report.calls << "\n";
    all.switches += report.switches;
    all.walk.Add(report.walk);
  }
  std::cout << "overlapping walk: " << all.walk.runs << " runs, " << all.switches
            << " switches amid operations, " << all.walk.ends << " agents ended, "
            << all.walk.violations << " violations\n";
  EXPECT_GT(all.switches, 0u);
  for (const std::string& example : all.walk.examples) ADD_FAILURE() << example;
  EXPECT_EQ(all.walk.violations, 0u);
  return all;
}

TEST(OverlapWalkTest, OperationsOnOneStorageOverlapAnywhere) {
  WalkAll(OverlapScenarios(), {.seeds = WalksEverything() ? 2000 : 60 / kSampleThinning});
}

// Calls for one iSCSI target wait for each other on a lock with a deadline (plugins/named_locks),
// and no time passes for who waits there while the one who has the lock is suspended.
bool WaitsForLocks(const Scenario& scenario) {
  return scenario.name == IscsiScenario().name || scenario.name == ShortIscsiScenario().name;
}

// The other scenarios, whose operations on one pod overlap.
TEST(OverlapWalkTest, OperationsOfAllScenariosOverlapAnywhere) {
  std::vector<Scenario> scenarios = AllScenarios();
  std::erase_if(scenarios, WaitsForLocks);
  WalkAll(scenarios, {.seeds = WalksEverything() ? 200 : 5 / kSampleThinning});
}

// Operation after operation, in twenty orders, none of these does harm.
TEST(OverlapWalkTest, OnlyOverlappingOperationsShowTheirMistakes) {
  for (const SeededBugCase& seeded : SeededOverlapBugs()) {
    WalkReport order;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const std::unique_ptr<CrashWorld> start = PrepareWorld(seeded.scenario, seed);
      const std::string title = seeded.scenario.name + ", seed " + std::to_string(seed);
      Count(order, title, RunScenario(seeded.scenario, *start, seeded.bug, seed, {}, nullptr));
    }
    const OverlapReport overlapping = WalkOverlaps(
        seeded.scenario, seeded.bug, {.seeds = 4000, .crashes = false, .stop_at_first = true});
    std::cout << "seeded bug \"" << seeded.bug.name << "\" in " << seeded.scenario.name << ": "
              << order.violations << " violations in " << order.runs << " runs in order, "
              << (overlapping.walk.violations > 0 ? "caught" : "NOT CAUGHT") << " after "
              << overlapping.walk.runs << " overlapping ones\n";
    for (const std::string& example : order.examples)
      std::cout << "  in order: " << example << "\n";
    for (const std::string& example : overlapping.walk.examples) {
      std::cout << "  " << example << "\n";
    }
    EXPECT_EQ(order.violations, 0u) << seeded.bug.name;
    EXPECT_GE(overlapping.walk.violations, 1u) << seeded.bug.name;
  }
}

TEST(OverlapWalkTest, TheSameSeedGivesTheSameRun) {
  const Scenario scenario = OverlapScenarios().front();
  const std::unique_ptr<CrashWorld> start = PrepareWorld(scenario, 1);
  const auto run = [&](uint64_t seed) {
    return RunScenario(scenario, *start, {}, 1, {}, nullptr, {}, OverlapSchedule{seed, "twice"});
  };
  const RunResult first = run(7);
  const RunResult second = run(7);
  EXPECT_GT(first.switches, 0u);
  EXPECT_EQ(first.switches, second.switches);
  EXPECT_EQ(first.call_log, second.call_log);
  EXPECT_NE(first.call_log, run(8).call_log);
}

}  // namespace
}  // namespace volumed
