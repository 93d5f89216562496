// The records of every earlier point of a run are put back at a restart, for every later point, and
// the run goes on to its end: no byte of a persistent volume is lost.
//
// Twice: the number kept, as when a log lost its tail or a database was put back; and the number
// put back with them, as in an image of the root disk alone, which nothing tells from the right
// records: the laws of identity and of storage alone must hold there.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_bugs.h"
#include "unit/crash/walk_sample.h"

namespace volumed {
namespace {

struct OlderWalk {
  bool number_too = false;
  bool reboot = false;
  // So many points of each scenario, and so many earlier states of each; 0: all of them.
  uint64_t points = 0;
  uint64_t states = 0;
  uint64_t seed = 1;
  SeededBug bug = {};
};

struct OlderReport {
  uint64_t points = 0;
  uint64_t points_walked = 0;
  uint64_t pairs = 0;  // of the points that were walked
  WalkReport walk;
};

std::vector<uint64_t> StatesToWalk(uint64_t there_are, uint64_t wanted, std::mt19937_64& random) {
  std::vector<uint64_t> states;
  if (wanted == 0 || there_are <= wanted) {
    for (uint64_t state = 0; state < there_are; ++state) states.push_back(state);
  } else {
    for (uint64_t i = 0; i < wanted; ++i) states.push_back(random() % there_are);
  }
  return states;
}

void WalkOlder(const Scenario& scenario, const OlderWalk& options, OlderReport& report) {
  const std::unique_ptr<CrashWorld> start = PrepareWorld(scenario, options.seed);
  const RunResult free = RunScenario(scenario, *start, {}, options.seed, {}, nullptr);
  ASSERT_TRUE(free.violations.empty()) << scenario.name << ": " << free.violations[0];
  const uint64_t points = free.agents.at(0).points();
  report.points += points;
  std::mt19937_64 random(options.seed);
  const uint64_t stride = options.points == 0 ? 1 : std::max<uint64_t>(1, points / options.points);
  for (uint64_t point = random() % stride; point < points; point += stride) {
    AgentEnd end = EndOfPoint(free.agents.at(0), point);
    end.reboot = options.reboot;
    const RunResult right =
        RunScenario(scenario, *start, {}, options.seed, {end}, nullptr, {.watch = true});
    // The last state is the one that the agent ended with.
    const uint64_t states = right.record_states == 0 ? 0 : right.record_states - 1;
    ++report.points_walked;
    report.pairs += states;
    for (const uint64_t state : StatesToWalk(states, options.states, random)) {
      AgentEnd older = end;
      older.older_state = state;
      older.number_too = options.number_too;
      const RunResult run = RunScenario(scenario, *start, options.bug, options.seed, {older},
                                        nullptr, {.watch = true, .right = &right});
      ++report.walk.walked;
      Count(report.walk, scenario.name + ", " + older.ToString(), run);
    }
  }
}

OlderReport WalkAll(const char* name, OlderWalk options) {
  options.points = WalksEverything() ? 0 : 10 / kSampleThinning;
  options.states = WalksEverything() ? 0 : 2;
  OlderReport all;
  for (const Scenario& scenario : AllScenarios()) {
    if (!OnlyScenario().empty() && scenario.name != OnlyScenario()) continue;
    const uint64_t walked = all.walk.walked;
    const uint64_t violations = all.walk.violations;
    WalkOlder(scenario, options, all);
    std::cout << "  " << scenario.name << ": " << all.walk.walked - walked << " runs, "
              << all.walk.violations - violations << " with a loss\n";
  }
  std::cout << "older-records walk (" << name << "): " << all.walk.walked << " of " << all.pairs
            << " earlier records of " << all.points_walked << " of " << all.points << " points, "
            << all.walk.violations << " with a loss\n";
  EXPECT_GT(all.walk.walked, 0u);
  return all;
}

TEST(OlderRecordsWalkTest, NothingIsLostWhenTheNumberTells) {
  const OlderReport report = WalkAll("number kept", {});
  EXPECT_EQ(report.walk.violations, 0u);
  for (const std::string& example : report.walk.examples) ADD_FAILURE() << example;
}

TEST(OlderRecordsWalkTest, NothingIsLostWhenTheNumberTellsAfterAReboot) {
  const OlderReport report = WalkAll("number kept, reboot", {.reboot = true});
  EXPECT_EQ(report.walk.violations, 0u);
  for (const std::string& example : report.walk.examples) ADD_FAILURE() << example;
}

// What an image of the root disk alone cannot save; docs/RELIABILITY.md says why. A directory that
// was exchanged after the image was made is, to the records of then, the volume's first directory;
// and one that was renamed is, to records of before its first use, nobody's.
bool IsBeyondRecords(const std::string& loss) {
  return loss.starts_with("a directory that is exchanged,") ||
         loss.starts_with("a directory that is renamed to another volume's path,");
}

TEST(OlderRecordsWalkTest, AnImageOfTheRootDiskAloneLosesOnlyWhatIsListed) {
  const OlderReport report = WalkAll("number put back too", {.number_too = true, .reboot = true});
  for (const std::string& example : report.walk.examples) {
    EXPECT_TRUE(IsBeyondRecords(example)) << example;
  }
}

// Each step that is not held back is one by which the walk finds something lost: one seed after the
// other is walked until it does, and without the mistake none of them finds anything.
TEST(OlderRecordsWalkTest, ARecoveryThatIsIgnoredIsSeen) {
  constexpr uint64_t kMostSeeds = 8;
  const std::vector<SeededBugCase> bugs = SeededRecoveryBugs();
  EXPECT_EQ(bugs.size(), 3u);
  for (const SeededBugCase& seeded : bugs) {
    OlderReport with_it;
    for (uint64_t seed = 1; seed <= kMostSeeds && with_it.walk.violations == 0; ++seed) {
      OlderWalk options;
      options.points = 40;
      options.states = 3;
      options.seed = seed;
      OlderReport without;
      WalkOlder(seeded.scenario, options, without);
      EXPECT_EQ(without.walk.violations, 0u) << seeded.scenario.name << ", without a mistake";
      options.bug = seeded.bug;
      WalkOlder(seeded.scenario, options, with_it);
    }
    std::cout << "seeded bug \"" << seeded.bug.name << "\" in " << seeded.scenario.name << ": "
              << with_it.walk.violations << " of " << with_it.walk.walked << " runs with a loss\n";
    EXPECT_GT(with_it.walk.violations, 0u) << seeded.bug.name;
  }
}

}  // namespace
}  // namespace volumed
