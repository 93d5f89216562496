#include "base/crc32c.h"

#include <string>

#include <gtest/gtest.h>

namespace volumed {
namespace {

// Source: RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(ExtendCrc32c(0, "123456789"), 0xe3069283u);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(ExtendCrc32c(0, ""), 0u);
}

TEST(Crc32cTest, ExtendsPieceByPiece) {
  EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, "1234"), "56789"), 0xe3069283u);
}

}  // namespace
}  // namespace volumed
