// What a catalog finds that merges only what changed, and some updates in parts, is what a merge of
// everything finds.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "run_numbers.h"
#include "unit/kube/random_catalog_world.h"

namespace volumed {
namespace {

// Some seconds. VOLUMED_RANDOM_STEPS makes it longer, VOLUMED_RANDOM_SEED begins with another
// world.
constexpr uint64_t kSteps = 15'000;
constexpr uint64_t kStepsOfAWorld = 250;

TEST(ObjectCatalogRandomTest, WhatIsMergedByDeltaIsWhatAMergeOfEverythingFinds) {
  const uint64_t steps = NumberOfRun("VOLUMED_RANDOM_STEPS", kSteps);
  uint64_t seed = NumberOfRun("VOLUMED_RANDOM_SEED", 1);
  uint64_t deltas = 0;
  uint64_t in_parts = 0;
  for (uint64_t done = 0; done < steps; ++seed) {
    RandomCatalogWorld world(seed);
    for (uint64_t step = 0; step < kStepsOfAWorld && done < steps; ++step, ++done) {
      if (world.Step()) continue;
      FAIL() << "VOLUMED_RANDOM_SEED=" << seed << ", step " << step << ": " << world.last();
    }
    deltas += world.deltas();
    in_parts += world.in_parts();
  }
  std::cout << deltas << " deltas and " << in_parts << " updates in parts, in " << steps
            << " steps\n";
  EXPECT_GT(deltas, steps / 4);
  EXPECT_GT(in_parts, steps / 8);
}

// Worlds in which the two differed once.
TEST(ObjectCatalogRandomTest, WhatWasMissedOnceIsMergedByDeltaAsAMergeOfEverythingFindsIt) {
  for (const uint64_t seed : {5322, 9147, 22285, 22353}) {
    RandomCatalogWorld world(seed);
    for (uint64_t step = 0; step < kStepsOfAWorld; ++step) {
      ASSERT_TRUE(world.Step()) << "seed " << seed << ", step " << step << ": " << world.last();
    }
  }
}

}  // namespace
}  // namespace volumed
