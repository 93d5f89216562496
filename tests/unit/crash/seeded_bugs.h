// Mistakes that the program could make, each seeded from outside: what the crash walk must catch, or
// it proves nothing.
#pragma once

#include <vector>

#include "unit/crash/crash_harness.h"

namespace volumed {

struct SeededBugCase {
  SeededBug bug;
  Scenario scenario;  // in which it does harm
  WalkKind kind = WalkKind::kCrash;
};

std::vector<SeededBugCase> SeededBugs();

}  // namespace volumed
