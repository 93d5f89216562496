#include "os/block_device.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(CheckDeviceUseTest, WhatIsNoDeviceIsAnErrorAndNotAFreeDevice) {
  const Result<DeviceUsers> file = DoCheckDeviceUse({.device = "/proc/self/status"});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(DoCheckDeviceUse({.device = "vda"}).error().code(), Code::kInvalidArgument);
}

TEST(CheckDeviceUseTest, ADeviceThatIsNotThereIsUsedByNobody) {
  const Result<DeviceUsers> gone = DoCheckDeviceUse({.device = "/dev/no such device"});
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_FALSE(gone->present);
}

}  // namespace
}  // namespace volumed
