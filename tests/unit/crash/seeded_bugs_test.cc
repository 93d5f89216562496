// Each seeded bug is caught by the crash walk, which finds nothing without it.
#include "unit/crash/seeded_bugs.h"

#include <gtest/gtest.h>

#include <cctype>
#include <iostream>

namespace volumed {
namespace {

constexpr uint64_t kMaxSeeds = 8;

class SeededBugsTest : public ::testing::TestWithParam<size_t> {};

TEST_P(SeededBugsTest, IsCaught) {
  const SeededBugCase seeded = SeededBugs()[GetParam()];
  WalkReport report;
  for (uint64_t seed = 1; seed <= kMaxSeeds && report.violations == 0; ++seed) {
    WalkOptions options;
    options.kind = seeded.kind;
    options.seed = seed;
    options.stride = seeded.stride;
    options.stop_at_first = true;
    report.Add(Walk(seeded.scenario, seeded.bug, options));
  }
  std::cout << "seeded bug \"" << seeded.bug.name << "\" in " << seeded.scenario.name << ": "
            << (report.violations > 0 ? "caught" : "NOT CAUGHT") << " after " << report.runs
            << " runs\n";
  EXPECT_GE(report.violations, 1u) << seeded.bug.name;
  for (const std::string& example : report.examples) std::cout << "  " << example << "\n";
}

INSTANTIATE_TEST_SUITE_P(All, SeededBugsTest, ::testing::Range(size_t{0}, SeededBugs().size()),
                         [](const ::testing::TestParamInfo<size_t>& tested) {
                           const std::string title = SeededBugs()[tested.param].bug.name;
                           std::string name;
                           for (const char c : title) {
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
                               name += c;
                             } else if (!name.empty() && name.back() != '_') {
                               name += '_';
                             }
                           }
                           return name;
                         });

TEST(SeededBugListTest, HasAtLeastTen) { EXPECT_GE(SeededBugs().size(), 10u); }

}  // namespace
}  // namespace volumed
