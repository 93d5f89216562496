#include "base/printable_text.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(PrintableTextTest, WhatIsUtf8StaysAsItIs) {
  EXPECT_EQ(PrintableText(""), "");
  EXPECT_EQ(PrintableText("web.yaml \\ \""), "web.yaml \\ \"");
  EXPECT_EQ(PrintableText("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(PrintableTextTest, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(PrintableText("a\xff.yaml"), "a\\xff.yaml");
  EXPECT_EQ(PrintableText("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(PrintableText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(PrintableText("\xe2\x82"), "\\xe2\\x82");           // cut
}

TEST(PrintableTextTest, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(PrintableText("\x1b[31m\a\x7f"), "\\x1b[31m\\x07\\x7f");
  EXPECT_EQ(PrintableText("\xc2\x9b"), "\\xc2\\x9b");  // U+009B: CSI
  EXPECT_EQ(PrintableText("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(PrintableText("a\nb\tc\r", "\t\n"), "a\nb\tc\\x0d");
}

}  // namespace
}  // namespace volumed
