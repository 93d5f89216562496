#include "blockmapper/device_pins.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

const UniqueVolumeName kVolume("kubernetes.io/local-volume/disk");
constexpr Duration kAtOnce = Duration::zero();
const UniqueVolumeName kOther("kubernetes.io/local-volume/other");

TEST(DevicePinsTest, ADeviceIsHeldUntilItIsReleased) {
  DevicePins pins;
  auto pin = std::make_shared<const Descriptor>();
  const std::weak_ptr<const Descriptor> watched = pin;
  pins.Keep(kVolume, std::move(pin));
  EXPECT_TRUE(pins.Has(kVolume));
  EXPECT_FALSE(pins.Has(kOther));
  EXPECT_FALSE(watched.expired());
  EXPECT_TRUE(pins.Release(kVolume, kAtOnce));
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(pins.Release(kVolume, kAtOnce));
  EXPECT_EQ(pins.size(), 0u);
}

TEST(DevicePinsTest, AVolumeHasOneHoldHoweverManyPodsMapIt) {
  DevicePins pins;
  auto first = std::make_shared<const Descriptor>();
  const std::weak_ptr<const Descriptor> watched = first;
  pins.Keep(kVolume, std::move(first));
  pins.Keep(kVolume, std::make_shared<const Descriptor>());
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(pins.size(), 1u);
}

}  // namespace
}  // namespace volumed
