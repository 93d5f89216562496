#include "os/io_limits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace volumed {
namespace {

constexpr IoLimits kSomeLimits{
    .read_iops = 100, .write_iops = 0, .read_bps = 0, .write_bps = 1048576};

TEST(IoLimits, OfVersion2AreOneLineOfTheDevice) {
  EXPECT_EQ(IoMaxLine("7:3", kSomeLimits), "7:3 rbps=max wbps=1048576 riops=100 wiops=max");
  EXPECT_EQ(IoMaxLine("7:3", {}), "7:3 rbps=max wbps=max riops=max wiops=max");
}

TEST(IoLimits, OfVersion2AreReadFromTheLineOfTheDeviceAlone) {
  const std::string content =
      "7:30 rbps=1 wbps=2 riops=3 wiops=4\n7:3 rbps=max wbps=1048576 riops=100 wiops=max\n";
  EXPECT_EQ(IoMaxOf(content, "7:3"), kSomeLimits);
  EXPECT_EQ(IoMaxOf(content, "7:30"), (IoLimits{3, 4, 1, 2}));
  EXPECT_EQ(IoMaxOf(content, "7:4"), IoLimits{});
  EXPECT_EQ(IoMaxOf("", "7:3"), IoLimits{});
}

TEST(IoLimits, OfVersion1AreANumberForEachDevice) {
  EXPECT_EQ(BlkioLimitOf("8:0 5\n7:3 1048576\n", "7:3"), 1048576);
  EXPECT_EQ(BlkioLimitOf("8:0 5\n7:30 1048576\n", "7:3"), 0);
  EXPECT_EQ(BlkioLimitOf("", "7:3"), 0);
}

TEST(IoLimits, ThatTheKernelWouldNotKeepAreRefused) {
  const auto check = [](const IoLimits& limits) {
    return CheckIoLimits(SetIoLimits{"/dev/loop3", {}, {"a"}, limits});
  };
  EXPECT_TRUE(check({}).ok());
  EXPECT_TRUE(check({kMostLimitedIops, 2, 2, std::numeric_limits<int64_t>::max()}).ok());
  for (const IoLimits& limits :
       {IoLimits{kMostLimitedIops + 1, 0, 0, 0}, IoLimits{0, 0, 0, 1}, IoLimits{0, 0, -2, 0}}) {
    ASSERT_FALSE(check(limits).ok()) << IoMaxLine("7:3", limits);
    EXPECT_EQ(check(limits).error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(CheckIoLimits(SetIoLimits{"/dev/loop3", {}, {}, {}}).ok());
  EXPECT_FALSE(CheckIoLimits(SetIoLimits{"/dev/loop3", {}, {""}, {}}).ok());
}

}  // namespace
}  // namespace volumed
