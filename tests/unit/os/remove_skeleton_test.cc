#include "os/remove_skeleton.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

using Kind = SkeletonPart::Kind;

class RemoveSkeletonTest : public ::testing::Test {
 protected:
  RemoveSkeletonTest() {
    kernel_.AddDirectory("/r/pod/volumes/plugin/volume");
    kernel_.AddFile("/r/pod/plugins/plugin/mark", "");
    kernel_.AddFile("/r/pod/tree/a/b", "x");
    kernel_.AddFile("/r/pod/uid", "x");
  }
  Result<Changed> Remove() {
    return DoRemoveSkeleton(kernel_,
                            {{"/r", "pod"},
                             {{"volumes", Kind::kDirectories, 2},
                              {"plugins", Kind::kDirectories, 1, std::vector<std::string>{"mark"}},
                              {"tree", Kind::kTree},
                              {"uid", Kind::kFile}}},
                            {});
  }
  // Nothing is taken away of a part that comes after the one that is refused.
  void ExpectRefused(const std::string& named) {
    const Result<Changed> removed = Remove();
    ASSERT_FALSE(removed.ok()) << named;
    EXPECT_EQ(removed.error().code(), Code::kFailedPrecondition);
    EXPECT_NE(removed.error().message().find(named), std::string::npos)
        << removed.error().message();
    EXPECT_TRUE(kernel_.Exists("/r/pod/uid"));
  }

  FakeKernel kernel_;
};

TEST_F(RemoveSkeletonTest, WhatIsKnownGoesInAllItsLevels) {
  const Result<Changed> removed = Remove();
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_TRUE(removed->changed);
  EXPECT_FALSE(kernel_.Exists("/r/pod"));
  EXPECT_FALSE(Remove()->changed) << "it is gone";
}

TEST_F(RemoveSkeletonTest, BindsOfSubPathsAreUnmountedAndGoWithTheirDirectories) {
  const std::string target = "/r/binds/all/volume/container/0";
  kernel_.AddDirectory(target);
  kernel_.AddMount("tmpfs", "tmpfs", target);
  const Result<Changed> removed =
      DoRemoveSkeleton(kernel_, {{"/r", "binds"}, {{"all", Kind::kBinds}}}, {});
  ASSERT_TRUE(removed.ok()) << removed.error().ToString();
  EXPECT_FALSE(kernel_.IsMountPoint(target));
  EXPECT_FALSE(kernel_.Exists("/r/binds"));
}

TEST_F(RemoveSkeletonTest, AFileWhereADirectoryBelongsIsLeftAlone) {
  kernel_.AddFile("/r/pod/volumes/plugin/file", "somebody's");
  ExpectRefused("/r/pod/volumes/plugin/file");
  EXPECT_TRUE(kernel_.Exists("/r/pod/volumes/plugin/file"));
}

TEST_F(RemoveSkeletonTest, AFileInTheLastDirectoryIsLeftAloneUnlessItIsKnown) {
  kernel_.AddFile("/r/pod/plugins/plugin/other", "somebody's");
  ExpectRefused("/r/pod/plugins/plugin/other");
}

TEST_F(RemoveSkeletonTest, AnUnknownNameKeepsEverything) {
  kernel_.AddFile("/r/pod/etc", "somebody's");
  ExpectRefused("/r/pod/etc");
  EXPECT_TRUE(kernel_.Exists("/r/pod/volumes/plugin/volume"));
}

TEST_F(RemoveSkeletonTest, AnErrorBehindARemovalSaidThatNothingWasRemoved) {
  kernel_.FailNext("RemoveFile", EIO, Outcome::kNotApplied);
  const Result<Changed> removed = Remove();
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().sys_errno(), EIO);
  EXPECT_TRUE(removed.error().maybe_applied());
  EXPECT_FALSE(kernel_.Exists("/r/pod/volumes"));
}

TEST_F(RemoveSkeletonTest, AnErrorBeforeAnyRemovalSaysThatNothingWasRemoved) {
  kernel_.FailNext("RemoveDirectory", EIO, Outcome::kNotApplied);
  const Result<Changed> removed = Remove();
  ASSERT_FALSE(removed.ok());
  EXPECT_FALSE(removed.error().maybe_applied());
}

TEST_F(RemoveSkeletonTest, NothingIsTakenFromBelowAMount) {
  for (const char* place : {"/r/pod/volumes", "/r/pod/volumes/plugin", "/r/pod/plugins/plugin"}) {
    kernel_.AddMount("tmpfs", "tmpfs", place);
    ExpectRefused(place);
    kernel_.UnmountBelow(place);
  }
}

}  // namespace
}  // namespace volumed
