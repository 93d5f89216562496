#include "volumehost/swap.h"

#include <gtest/gtest.h>

#include <string>

namespace volumed {
namespace {

constexpr char kHeading[] = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

TEST(SwapTest, IsOnWhenAnAreaIsListed) {
  EXPECT_FALSE(SwapIsOn(""));
  EXPECT_FALSE(SwapIsOn(kHeading));
  EXPECT_TRUE(SwapIsOn(std::string(kHeading) + "/dev/dm-1  partition  999420  0  -2\n"));
}

}  // namespace
}  // namespace volumed
