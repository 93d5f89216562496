#include "base/random.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace volumed {
namespace {

TEST(RandomTest, HexHasTheLengthAskedFor) {
  for (const size_t digits : {0, 1, 2, 7, 64}) {
    const std::string text = RandomHex(digits);
    EXPECT_EQ(text.size(), digits);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
  }
}

TEST(RandomTest, UuidsHaveVersionFourAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    const std::string uuid = NewUuid();
    ASSERT_EQ(uuid.size(), 36u);
    for (const size_t dash : {8, 13, 18, 23}) EXPECT_EQ(uuid[dash], '-') << uuid;
    EXPECT_EQ(uuid[14], '4') << uuid;
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos) << uuid;
    seen.insert(uuid);
  }
  EXPECT_EQ(seen.size(), 200u);
}

TEST(RandomTest, LargeBuffersAreFilledToTheEnd) {
  // More than getrandom(2) gives at once without being interrupted.
  std::vector<std::byte> bytes(4096);
  RandomBytes(bytes);
  bool tail_has_bits = false;
  for (size_t i = bytes.size() - 64; i < bytes.size(); ++i) {
    tail_has_bits = tail_has_bits || bytes[i] != std::byte{0};
  }
  EXPECT_TRUE(tail_has_bits);
}

}  // namespace
}  // namespace volumed
