#include "base/json_text.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

std::string Json(std::string_view text, JsonStyle style) {
  std::string out;
  AppendJsonText(text, style, out);
  return out;
}

TEST(JsonTextTest, EachProgramEscapesWhatTheOthersLeave) {
  const std::string_view text = "a\"\\\n\x01<&>\u00e9\U0001f600\u2028";
  EXPECT_EQ(Json(text, JsonStyle::kPlain), "a\\\"\\\\\\n\\u0001<&>\u00e9\U0001f600\u2028");
  EXPECT_EQ(Json(text, JsonStyle::kAscii), R"(a\"\\\n\u0001<&>\u00e9\ud83d\ude00\u2028)");
  EXPECT_EQ(Json(text, JsonStyle::kGo),
            "a\\\"\\\\\\n\\u0001\\u003c\\u0026\\u003e\u00e9\U0001f600\\u2028");
}

TEST(JsonTextTest, AByteThatIsNoTextIsReplacedByGoAlone) {
  EXPECT_EQ(Json("a\xff", JsonStyle::kGo), "a\\ufffd");
  EXPECT_EQ(Json("a\xff", JsonStyle::kPlain), "a\xff");
  EXPECT_EQ(Json("a\xff", JsonStyle::kAscii), "a\xff");
}

}  // namespace
}  // namespace volumed
