#include "csidriver/csi_page_token.h"

#include <gtest/gtest.h>

#include <string>

namespace volumed {
namespace {

constexpr char kVolume[] = "v-3fa91c02-0123456789abcdef01234567";
constexpr char kCut[] = "s-3fa91c02-0123456789abcdef01234567";

TEST(CsiPageTokenTest, ATokenIsReadAsTheIdThatItWasMadeOf) {
  const auto id = ParseCsiPageToken(CsiPageToken(kVolume), PoolObject::kVolume);
  ASSERT_TRUE(id.ok()) << id.error().ToString();
  EXPECT_EQ(*id, kVolume);
  EXPECT_EQ(*ParseCsiPageToken(CsiPageToken(kCut), PoolObject::kCut), kCut);
  EXPECT_LE(CsiPageToken(kCut).size(), 128u) << "the most that CSI allows";
}

TEST(CsiPageTokenTest, NoTokenIsTheFirstPage) {
  const auto id = ParseCsiPageToken("", PoolObject::kVolume);
  ASSERT_TRUE(id.ok()) << id.error().ToString();
  EXPECT_EQ(*id, "");
}

TEST(CsiPageTokenTest, ATokenOfAnotherListIsAborted) {
  EXPECT_FALSE(ParseCsiPageToken(CsiPageToken(kCut), PoolObject::kVolume).ok());
  EXPECT_FALSE(ParseCsiPageToken(std::string("volumes/") + kCut, PoolObject::kVolume).ok());
}

TEST(CsiPageTokenTest, WhatIsNoTokenIsAbortedAndNotRepeated) {
  for (const std::string& text : {std::string("invalid-token"), std::string("volumes/"),
                                  std::string(kVolume), "volumes/" + std::string(kVolume) + "/..",
                                  std::string("volumes/../x"), std::string(4096, 'x')}) {
    const auto id = ParseCsiPageToken(text, PoolObject::kVolume);
    ASSERT_FALSE(id.ok()) << text;
    EXPECT_EQ(id.error().code(), Code::kAborted);
    EXPECT_FALSE(id.error().maybe_applied());
    EXPECT_EQ(id.error().message().find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace volumed
