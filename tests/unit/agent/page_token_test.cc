#include "agent/page_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Error RefusalOf(const std::string& token) {
  const Result<PodName> read = ParsePodPageToken(token);
  return read.ok() ? Error::NotApplied(Code::kUnknown, "taken: " + token) : read.error();
}

TEST(PageToken, ItNamesTheLastPodOfThePageBefore) {
  const PodName web{"default", "web", PodUid("uid-1")};
  EXPECT_EQ(PodPageToken(web), "pods/default/web/uid-1");
  EXPECT_EQ(*ParsePodPageToken("pods/default/web/uid-1"), web);
}

TEST(PageToken, APodOfWhichOnlyTheDirectoryIsKnownHasOneToo) {
  for (const std::string& uid :
       {std::string("uid-1"), std::string(255, 'u'), std::string("a\nb")}) {
    const PodName found{"", "", PodUid(uid)};
    const Result<PodName> read = ParsePodPageToken(PodPageToken(found));
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(*read, found);
  }
}

TEST(PageToken, TheLongestNamesAreTaken) {
  const PodName longest{std::string(63, 'n'), std::string(253, 'p'), PodUid(std::string(255, 'u'))};
  const Result<PodName> read = ParsePodPageToken(PodPageToken(longest));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, longest);
}

TEST(PageToken, WhatNoListGaveIsRefused) {
  const std::string pod = "pods/default/web/";
  for (const std::string& token :
       std::vector<std::string>{"", "-1", "7", "18446744073709551616", "/", "///", "pods", "pods/",
                                "pods///", "pods/default", "pods/default/web", pod, pod + "uid-1/",
                                pod + "uid-1/more", "default/web/uid-1", " " + pod + "uid-1",
                                "PODS/default/web/uid-1", std::string("\0", 1)}) {
    const Error error = RefusalOf(token);
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << token;
    EXPECT_FALSE(error.maybe_applied()) << token;
  }
}

TEST(PageToken, TheTokenOfAnotherListIsRefusedAsSuch) {
  for (const std::string token : {"volumes/default/web/uid-1", "podsx/default/web/uid-1"}) {
    EXPECT_THAT(RefusalOf(token).message(), HasSubstr("it is of another list")) << token;
  }
}

TEST(PageToken, AnOverlongOneIsRefusedAndNotRepeated) {
  const std::string pod = "pods/default/web/";
  const std::string longest = pod + std::string(kMaxPageToken - pod.size(), 'u');
  EXPECT_TRUE(ParsePodPageToken(longest).ok());
  const Error error = RefusalOf(longest + "u");
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("it has 1025 bytes"));
  EXPECT_THAT(RefusalOf(std::string(size_t{1} << 20, '/')).message(), Not(HasSubstr("//")));
}

}  // namespace
}  // namespace volumed
