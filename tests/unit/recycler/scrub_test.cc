#include "recycler/scrub.h"

#include <gtest/gtest.h>

#include <string>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

class ScrubTest : public ::testing::Test {
 protected:
  Status Scrub(const std::string& path) {
    Result<SafePath> place = ScrubbedPlace(path);
    if (!place.ok()) return place.error();
    return ScrubDirectory(kernel_, *place, {});
  }
  FakeKernel kernel_;
};

TEST_F(ScrubTest, EmptiesTheDirectoryAndKeepsIt) {
  kernel_.AddDirectory("/data/vol", 02770, 7, 8);
  kernel_.AddFile("/data/vol/.hidden", "x");
  kernel_.AddFile("/data/vol/a/b/c", "x");
  kernel_.AddSpecial("/data/vol/socket", FileType::kSocket);
  kernel_.AddFile("/data/other", "kept");
  ASSERT_TRUE(Scrub("/data//vol/").ok());
  EXPECT_EQ(kernel_.Find("/data/vol").mode, 02770u);
  EXPECT_EQ(kernel_.Find("/data/vol").gid, 8u);
  EXPECT_FALSE(kernel_.Exists("/data/vol/.hidden"));
  EXPECT_FALSE(kernel_.Exists("/data/vol/a"));
  EXPECT_FALSE(kernel_.Exists("/data/vol/socket"));
  EXPECT_TRUE(kernel_.Exists("/data/other"));
  EXPECT_TRUE(Scrub("/data/vol").ok()) << "an empty one is scrubbed";
}

TEST_F(ScrubTest, FollowsNoLink) {
  kernel_.AddFile("/precious/x", "x");
  kernel_.AddDirectory("/data/vol");
  kernel_.AddSymlink("/data/vol/link", "/precious");
  kernel_.AddSymlink("/data/alias", "/precious");
  ASSERT_TRUE(Scrub("/data/vol").ok());
  EXPECT_FALSE(Scrub("/data/alias").ok());
  EXPECT_TRUE(kernel_.Exists("/precious/x"));
}

TEST_F(ScrubTest, WhatIsMountedBelowIsNotTouchedNorAnythingElse) {
  kernel_.AddFile("/data/vol/file", "x");
  kernel_.AddMount("ext4", "/dev/sdb", "/data/vol/deep/mnt");
  kernel_.AddFile("/data/vol/deep/mnt/precious", "x");
  const Status status = Scrub("/data/vol");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(),
            "will not scrub /data/vol: ext4 is mounted at /data/vol/deep/mnt");
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_TRUE(kernel_.Exists("/data/vol/file"));
  EXPECT_TRUE(kernel_.Exists("/data/vol/deep/mnt/precious"));
}

TEST_F(ScrubTest, WhatIsMountedThereIsWhatIsScrubbed) {
  kernel_.AddMount("ext4", "/dev/sdb", "/data/vol");
  kernel_.AddFile("/data/vol/file", "x");
  ASSERT_TRUE(Scrub("/data/vol").ok());
  EXPECT_FALSE(kernel_.Exists("/data/vol/file"));
  EXPECT_TRUE(kernel_.IsMountPoint("/data/vol"));
}

TEST_F(ScrubTest, RefusesWhatNobodyMeans) {
  for (const char* path : {"/", "", "data", "/a/../b", "/./", "//"}) {
    const Status status = Scrub(path);
    ASSERT_FALSE(status.ok()) << path;
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument) << path;
  }
  EXPECT_EQ(kernel_.call_count(), 0u);
  EXPECT_EQ(Scrub("/missing").error().code(), Code::kNotFound);
  kernel_.AddFile("/file", "x");
  EXPECT_EQ(Scrub("/file").error().code(), Code::kNotFound);
}

TEST_F(ScrubTest, AFailureOnTheWayMayHaveDeletedSomething) {
  kernel_.AddFile("/data/vol/a", "x");
  kernel_.FailNext("RemoveTree", EIO, Outcome::kMaybeApplied);
  const Status status = Scrub("/data/vol");
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().maybe_applied());
}

TEST_F(ScrubTest, AWriterThatGoesOnIsNoticed) {
  kernel_.AddFile("/data/vol/a", "x");
  kernel_.SetCallHook([this](const AnyRequest& request) {
    if (std::holds_alternative<ListDirectory>(request)) kernel_.AddFile("/data/vol/new", "x");
  });
  const Status status = Scrub("/data/vol");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("new is there"), std::string::npos);
}

}  // namespace
}  // namespace volumed
