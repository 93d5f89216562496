// The agent is ended at every call of the kernel and every record write, and started anew.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "unit/crash/crash_scenarios.h"
#include "unit/crash/walk_sample.h"

namespace volumed {
namespace {

struct Sample {
  uint64_t seeds;
  uint64_t stride;
};

void WalkAll(WalkKind kind, const Sample& quick, const Sample& full,
             const std::vector<Scenario>& scenarios = AllScenarios()) {
  const Sample sample =
      WalksEverything() ? full : Sample{quick.seeds, quick.stride * kSampleThinning};
  WalkReport all;
  for (const Scenario& scenario : scenarios) {
    if (!OnlyScenario().empty() && scenario.name != OnlyScenario()) continue;
    WalkReport of_scenario;
    for (uint64_t seed = 1; seed <= sample.seeds; ++seed) {
      WalkOptions options;
      options.kind = kind;
      options.seed = seed;
      options.stride = sample.stride;
      of_scenario.Add(Walk(scenario, {}, options));
    }
    std::cout << "  " << scenario.name << ": " << of_scenario.walked << " of " << of_scenario.points
              << " points, " << of_scenario.violations << " violations\n";
    all.Add(of_scenario);
  }
  std::cout << "crash walk (" << WalkKindName(kind) << "): " << all.walked << " of " << all.points
            << " points (" << sample.seeds << " seeds, every " << sample.stride << ".), "
            << all.ends << " agents ended, " << all.violations << " violations\n";
  EXPECT_GT(all.walked, 0u);
  EXPECT_GE(all.ends, all.walked);  // each run came to its point
  EXPECT_EQ(all.violations, 0u);
  for (const std::string& example : all.examples) ADD_FAILURE() << example;
}

TEST(CrashWalkTest, AgentEndedAnywhereConverges) { WalkAll(WalkKind::kCrash, {1, 9}, {2, 1}); }

TEST(CrashWalkTest, NodeRebootedAnywhereConverges) { WalkAll(WalkKind::kReboot, {1, 23}, {1, 1}); }

TEST(CrashWalkTest, PowerLostAnywhereConverges) { WalkAll(WalkKind::kPowerLoss, {1, 23}, {1, 1}); }

TEST(CrashWalkTest, AgentEndedAgainInRecoveryConverges) {
  WalkAll(WalkKind::kTwice, {1, 37}, {1, 2});
}

TEST(CrashWalkTest, WorkerEndedAmidACompositeConverges) {
  WalkAll(WalkKind::kWorkerDies, {1, 7}, {2, 1});
}

TEST(CrashWalkTest, WorkerThatGoesOnAfterItsAgentHasEndedConverges) {
  WalkAll(WalkKind::kWorkerOutlives, {1, 7}, {4, 1});
}

TEST(CrashWalkTest, CsiDriverEndedAtAnyCallConverges) {
  WalkAll(WalkKind::kDriverDies, {1, 1}, {4, 1}, CsiScenarios());
}

}  // namespace
}  // namespace volumed
