// What a program printed, without the values that it was given.
#include "base/hidden_texts.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(HiddenTextsTest, OfTwoSecretsThatOverlapTheEndOfOneWasLeftInSight) {
  EXPECT_EQ(WithoutValues("x abcdefghi y", {"abcdef", "defghi"}, "***"), "x *** y");
  EXPECT_EQ(WithoutValues("x abcdefghi y", {"defghi", "abcdef"}, "***"), "x *** y");
}

TEST(HiddenTextsTest, OfASecretWithinAnotherTheRestWasLeftInSight) {
  EXPECT_EQ(WithoutValues("bad 3.0hush here", {"3.0", "3.0hush"}, "***"), "bad *** here");
  EXPECT_EQ(WithoutValues("aaaaaa b", {"aaaa"}, "***"), "*** b");
  EXPECT_EQ(WithoutValues("ababab", {"abab"}, "***"), "***");
}

TEST(HiddenTextsTest, WhatStandsInItsPlaceIsNotSearched) {
  EXPECT_EQ(WithoutValues("a hush b", {"hush", "***"}, "***"), "a *** b");
}

TEST(HiddenTextsTest, AllElseStays) {
  EXPECT_EQ(WithoutValues("hush, and hush", {"hush"}, "***"), "***, and ***");
  EXPECT_EQ(WithoutValues("a text", {"", "hush"}, "***"), "a text");
  EXPECT_EQ(WithoutValues("", {"hush"}, "***"), "");
}

}  // namespace
}  // namespace volumed
