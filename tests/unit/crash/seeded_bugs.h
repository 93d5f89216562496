// Mistakes that the program could make, each seeded from outside: what the crash walk must catch,
// or it proves nothing.
#pragma once

#include <vector>

#include "unit/crash/crash_harness.h"

namespace volumed {

struct SeededBugCase {
  SeededBug bug;
  Scenario scenario;  // in which it does harm
  WalkKind kind = WalkKind::kCrash;
  uint64_t stride = 1;  // of the walk; one seed after the other is walked until the bug is caught
};

std::vector<SeededBugCase> SeededBugs();
// Those in front of a CSI driver; see seeded_csi_bugs.cc.
std::vector<SeededBugCase> SeededCsiBugs();
// Those that only the older-records walk catches; see seeded_recovery_bugs.cc.
std::vector<SeededBugCase> SeededRecoveryBugs();
// Those that only the overlapping walk catches; see seeded_overlap_bugs.cc.
std::vector<SeededBugCase> SeededOverlapBugs();

}  // namespace volumed
