#include "base/strings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {
namespace {

using Parts = std::vector<std::string>;

TEST(StringsTest, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,b,,c,", ','), (Parts{"a", "b", "", "c", ""}));
  EXPECT_EQ(Split("", ','), (Parts{""}));
  EXPECT_EQ(Split(",", ','), (Parts{"", ""}));
}

TEST(StringsTest, SplitNonEmptyDropsThem) {
  EXPECT_EQ(SplitNonEmpty("/a//b/", '/'), (Parts{"a", "b"}));
  EXPECT_EQ(SplitNonEmpty("", '/'), Parts{});
}

TEST(StringsTest, JoinTakesAnyRange) {
  EXPECT_EQ(Join(Parts{"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(Join(std::vector<std::string_view>{"x"}, ","), "x");
  EXPECT_EQ(Join(Parts{}, ","), "");
}

TEST(StringsTest, TrimSpace) {
  EXPECT_EQ(TrimSpace(" \t a b\r\n"), "a b");
  EXPECT_EQ(TrimSpace("\n \t"), "");
  EXPECT_EQ(TrimSpace("x"), "x");
}

TEST(StringsTest, StripPrefixAndSuffix) {
  EXPECT_EQ(StripPrefix("unix:///a", "unix://"), "/a");
  EXPECT_EQ(StripPrefix("a", "ab"), std::nullopt);
  EXPECT_EQ(StripSuffix("pod.yaml", ".yaml"), "pod");
  EXPECT_EQ(StripSuffix("yaml", ".yaml"), std::nullopt);
}

TEST(StringsTest, NumbersAreTheWholeText) {
  EXPECT_EQ(ParseInt64("-42"), -42);
  EXPECT_EQ(ParseInt64("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseUint64("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  for (const char* bad : {"", " 1", "1 ", "+1", "1x", "0x1", "1.0", "9223372036854775808"}) {
    EXPECT_EQ(ParseInt64(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseUint64("-1"), std::nullopt);
  EXPECT_EQ(ParseUint64("18446744073709551616"), std::nullopt);
}

TEST(StringsTest, QualifiedNamesAsDirectoryNames) {
  EXPECT_EQ(EscapeQualifiedName("kubernetes.io/empty-dir"), "kubernetes.io~empty-dir");
  EXPECT_EQ(UnescapeQualifiedName("kubernetes.io~empty-dir"), "kubernetes.io/empty-dir");
  EXPECT_EQ(EscapeQualifiedName("plain"), "plain");
}

}  // namespace
}  // namespace volumed
