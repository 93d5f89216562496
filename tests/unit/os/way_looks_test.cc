#include "os/way_looks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace volumed {
namespace {

MountEntry PoolMount(uint64_t id, uint32_t minor = 7) {
  MountEntry mount;
  mount.mount_id = id;
  mount.mount_point = "/srv/pool";
  mount.device_major = 8;
  mount.device_minor = minor;
  mount.root = "/";
  return mount;
}

constexpr TimePoint kLooked{std::chrono::hours(1)};
constexpr char kWay[] = "/srv/pool/a";

// Each request about a volume of a pool cost a worker's turn more than it had to.
TEST(WayLooks, AWayIsNotLookedAtAgainForEachRequestOfAnOperation) {
  WayLooks looks;
  EXPECT_FALSE(looks.IsKnown(kWay, PoolMount(1), kLooked));
  looks.Note(kWay, PoolMount(1), kLooked);
  EXPECT_TRUE(looks.IsKnown(kWay, PoolMount(1), kLooked + WayLooks::kHolds));
  EXPECT_FALSE(looks.IsKnown("/srv/pool/b", PoolMount(1), kLooked));
}

TEST(WayLooks, WhatWasSeenLongerAgoIsLookedAtAnew) {
  WayLooks looks;
  looks.Note(kWay, PoolMount(1), kLooked);
  EXPECT_FALSE(
      looks.IsKnown(kWay, PoolMount(1), kLooked + WayLooks::kHolds + std::chrono::nanoseconds(1)));
}

TEST(WayLooks, NothingIsKnownOfAWayOverAnotherMount) {
  WayLooks looks;
  looks.Note(kWay, PoolMount(1), kLooked);
  EXPECT_FALSE(looks.IsKnown(kWay, PoolMount(2), kLooked)) << "mounted anew";
  EXPECT_FALSE(looks.IsKnown(kWay, PoolMount(1, 8), kLooked))
      << "the number of a mount that is gone";
}

TEST(WayLooks, WaysThatNobodyAsksForAreForgotten) {
  WayLooks looks;
  looks.Note(kWay, PoolMount(1), kLooked);
  const TimePoint later = kLooked + WayLooks::kHolds / 2;
  for (int i = 0; i < 5000; ++i) {
    looks.Note("/srv/pool/" + std::to_string(i), PoolMount(1), later);
  }
  EXPECT_FALSE(looks.IsKnown(kWay, PoolMount(1), later)) << "so many are not kept";
  EXPECT_TRUE(looks.IsKnown("/srv/pool/4999", PoolMount(1), later));
}

}  // namespace
}  // namespace volumed
