#include "base/printable_text.h"

#include <gtest/gtest.h>

#include <iterator>

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

// A driver's id stood reversed in an event, and in every line behind it.
TEST(PrintableTextTest, WhatTurnsTheTextOrCannotBeSeenWasShownAsItIs) {
  EXPECT_EQ(PrintableText("a\u202e?abc"), "a\\u202e?abc");
  EXPECT_EQ(PrintableText("\u00ad\u061c\u200b\u200f\u2066\u2069\ufeff"),
            R"(\u00ad\u061c\u200b\u200f\u2066\u2069\ufeff)");
  EXPECT_EQ(PrintableText("\U000e0041"), R"(\udb40\udc41)");
  EXPECT_EQ(AnswerText("a\u2028b\n"), "a\\u2028b\n");
  EXPECT_EQ(Quoted("\u202eabc", 80), "\"\\u202eabc\"");
  EXPECT_EQ(PrintableText("\u2010\u2070\u0600\ufefe"), "\u2010\u2070\u0600\ufefe");
}

TEST(PrintableTextTest, OfTextOnlyControlCharactersAreNone) {
  EXPECT_TRUE(IsText(""));
  EXPECT_TRUE(IsText("vol-\u00e4\u200d\U0001f600"));
  for (const std::string_view none : {"a\n", "\x7f", "\xc2\x9b", "\xff", "\xe2\x82"}) {
    EXPECT_FALSE(IsText(none)) << PrintableText(none);
  }
}

TEST(PrintableTextTest, WhatIsCutOverlongASurrogateOrTooLargeIsNoUtf8) {
  EXPECT_TRUE(IsUtf8("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  for (const std::string_view last : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                                      "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(last)) << PrintableText(last);
  }
  for (const std::string_view bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF\xBF\xBF\xBF"}) {
    EXPECT_FALSE(IsUtf8(bad)) << PrintableText(bad);
  }
  // What follows a text that is cut is none of it.
  EXPECT_FALSE(IsUtf8(std::string_view("\xE2\x82\xAC", 2)));
}

// A value that was cut at a number of bytes was no text any more, and a protobuf string refused it.
TEST(PrintableTextTest, ABeginningDoesNotEndAmidACharacter) {
  const std::string text = "a\u00e4\u20ac\U0001f92eb";  // of 1, 2, 3, 4 and 1 bytes
  const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (size_t most = 0; most < std::size(ends); ++most) {
    EXPECT_EQ(BeginningOf(text, most), text.substr(0, ends[most])) << most;
  }
  EXPECT_EQ(BeginningOf("\xff\xe4\xff\xff", 3), "\xff\xe4\xff") << "what is no character is kept";
  EXPECT_EQ(BeginningOf("", 3), "");
}

// The problem of one manifest, cut amid a character, made the whole answer unreadable.
TEST(PrintableTextTest, AQuotationIsTextWhateverWasQuoted) {
  EXPECT_EQ(Quoted("a\u00e4b", 80), "\"a\u00e4b\"");
  EXPECT_EQ(Quoted("a\u00e4b", 2), "\"a...\"");
  EXPECT_EQ(Quoted("a\u00e4b", 3), "\"a\u00e4...\"");
  EXPECT_EQ(Quoted("\n\x7f\u0085\xff!", 80), '"' + std::string(5, '?') + "!\"");
  EXPECT_EQ(Quoted("", 0), "\"\"");
}

}  // namespace
}  // namespace volumed
