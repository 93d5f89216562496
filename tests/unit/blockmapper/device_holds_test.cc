#include "blockmapper/device_holds.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

const UniqueVolumeName kVolume("kubernetes.io/local-volume/disk");
const UniqueVolumeName kOther("kubernetes.io/local-volume/other");

TEST(DeviceHoldsTest, ADeviceIsHeldUntilItIsReleased) {
  DeviceHolds holds;
  auto hold = std::make_shared<const Descriptor>();
  const std::weak_ptr<const Descriptor> watched = hold;
  holds.Keep(kVolume, std::move(hold));
  EXPECT_TRUE(holds.Has(kVolume));
  EXPECT_FALSE(holds.Has(kOther));
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(holds.Release(kVolume));
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(holds.Release(kVolume));
  EXPECT_EQ(holds.size(), 0u);
}

TEST(DeviceHoldsTest, AVolumeHasOneHoldHoweverManyPodsMapIt) {
  DeviceHolds holds;
  auto first = std::make_shared<const Descriptor>();
  const std::weak_ptr<const Descriptor> watched = first;
  holds.Keep(kVolume, std::move(first));
  holds.Keep(kVolume, std::make_shared<const Descriptor>());
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(holds.size(), 1u);
}

}  // namespace
}  // namespace volumed
