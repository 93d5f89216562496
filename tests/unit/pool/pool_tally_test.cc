#include "pool/pool_tally.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "pool/pool_record.h"

namespace volumed {
namespace {

constexpr int64_t kTallied = int64_t{1} << 30;

PoolVolumeRecord TalliedVolume(const std::string& id, int64_t bytes = kTallied) {
  PoolVolumeRecord volume;
  volume.id = id;
  volume.pool = "fast";
  volume.backend = PoolBackendKind::kImage;
  volume.capacity_bytes = bytes;
  return volume;
}

PoolCutRecord TalliedCut(const std::string& id, const std::string& volume) {
  PoolCutRecord cut;
  cut.id = id;
  cut.pool = "fast";
  cut.volume = volume;
  cut.backend = PoolBackendKind::kImage;
  cut.state = PoolCutState::kCut;
  cut.size_bytes = kTallied;
  cut.allocated_bytes = 4096;
  return cut;
}

TEST(PoolTally, SumsWhatEachPoolHasPromisedAndTakesItBack) {
  PoolTally tally;
  PoolVolumeRecord growing = TalliedVolume("b");
  growing.target_bytes = 2 * kTallied;
  PoolVolumeRecord elsewhere = TalliedVolume("c");
  elsewhere.pool = "slow";
  tally.Add(TalliedVolume("a"));
  tally.Add(growing);
  tally.Add(elsewhere);
  tally.Add(TalliedCut("s", "a"));
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kDirectory).bytes, 3 * kTallied + 4096);
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kImage).unbounded, 0);
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kLvm).bytes, 0) << "its room is another";
  EXPECT_EQ(tally.PromisedOf("slow", PoolBackendKind::kImage).bytes, kTallied);
  tally.Leave(growing);
  tally.Leave(TalliedCut("s", "a"));
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kImage).bytes, kTallied);
}

TEST(PoolTally, WhatOnlyAMeasureCanTellIsCountedAsUnbounded) {
  PoolVolumeRecord overcommitted = TalliedVolume("a");
  overcommitted.parameters = {{"overcommit", "true"}};
  PoolVolumeRecord logical = TalliedVolume("b");
  logical.backend = PoolBackendKind::kLvm;
  PoolVolumeRecord listed = TalliedVolume("c");
  listed.backend = PoolBackendKind::kStatic;
  const PoolVolumeRecord damaged = TalliedVolume("d", std::numeric_limits<int64_t>::max());
  PoolTally tally;
  for (const PoolVolumeRecord& volume : {overcommitted, logical, listed, damaged}) {
    tally.Add(volume);
  }
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kImage).unbounded, 2);
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kImage).bytes, 0);
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kLvm).unbounded, 1);
  tally.Leave(damaged);
  tally.Leave(overcommitted);
  EXPECT_EQ(tally.PromisedOf("fast", PoolBackendKind::kImage).unbounded, 0);
}

TEST(PoolTally, CountsTheVolumesOfEachNode) {
  PoolVolumeRecord shared = TalliedVolume("a");
  shared.leases.resize(2);
  shared.leases[0].node = "n1";
  shared.leases[1].node = "n2";
  PoolVolumeRecord single = TalliedVolume("b");
  single.leases.resize(1);
  single.leases[0].node = "n1";
  PoolTally tally;
  tally.Add(shared);
  tally.Add(single);
  EXPECT_EQ(tally.LeasesOf("n1"), 2);
  EXPECT_EQ(tally.LeasesOf("n2"), 1);
  tally.Leave(shared);
  EXPECT_EQ(tally.LeasesOf("n1"), 1);
  EXPECT_EQ(tally.LeasesOf("n2"), 0);
}

TEST(PoolTally, NamesACutThatIsStillCopiedUntilItIsWhole) {
  PoolCutRecord copied = TalliedCut("s", "a");
  copied.is_copy = true;
  PoolTally tally;
  tally.Add(TalliedCut("r", "a"));
  EXPECT_EQ(tally.CopiedFrom("a"), "") << "one by reflink is whole at once";
  tally.Add(copied);
  EXPECT_EQ(tally.CopiedFrom("a"), "s");
  EXPECT_EQ(tally.CopiedFrom("b"), "");
  tally.Leave(copied);
  copied.copied_bytes = copied.size_bytes;
  tally.Add(copied);
  EXPECT_EQ(tally.CopiedFrom("a"), "");
}

}  // namespace
}  // namespace volumed
