#include "mounter/subpath.h"

#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

constexpr char kVolume[] = "/r/pods/u1/volumes/kubernetes.io~empty-dir/data";
constexpr char kTarget[] = "/r/pods/u1/volume-subpaths/data/web/0";

class SubpathTest : public ::testing::Test {
 protected:
  SubpathTest() { kernel_.AddDirectory(kVolume, 0777); }

  SafeSubpathRequest Request(const std::string& sub_path) const {
    return {.pod = PodUid("u1"),
            .spec = SpecName("data"),
            .container = "web",
            .index = 0,
            .volume = {"/r", std::string(kVolume).substr(3)},
            .sub_path = sub_path};
  }
  Result<SafePath> Prepare(const std::string& sub_path) {
    return PrepareSafeSubpath(kernel_, paths_, Request(sub_path), {});
  }
  Status Clean() { return CleanSubPaths(kernel_, paths_, PodUid("u1"), SpecName("data"), {}); }
  std::string InVolume(const std::string& name) const { return std::string(kVolume) + "/" + name; }

  FakeKernel kernel_;
  const KubeletPaths paths_{"/r"};
};

TEST_F(SubpathTest, BindsADirectoryOfTheVolume) {
  kernel_.AddFile(InVolume("html/index"), "hello");
  const auto target = Prepare("html");
  ASSERT_TRUE(target.ok()) << target.error().ToString();
  EXPECT_EQ(target->Display(), kTarget);
  EXPECT_TRUE(kernel_.IsMountPoint(kTarget));
  EXPECT_EQ(kernel_.Find(std::string(kTarget) + "/index").content, "hello");
}

TEST_F(SubpathTest, BindsAFileOnAFile) {
  kernel_.AddFile(InVolume("app.conf"), "v1");
  ASSERT_TRUE(Prepare("app.conf").ok());
  EXPECT_EQ(kernel_.Find(kTarget).type, FileType::kRegular);
  EXPECT_EQ(kernel_.Find(kTarget).content, "v1");
}

TEST_F(SubpathTest, TargetsAreReachableForTheAgentOnly) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  EXPECT_EQ(kernel_.Find("/r/pods/u1/volume-subpaths").mode, 0750u);
  EXPECT_EQ(kernel_.Find("/r/pods/u1/volume-subpaths/data/web").mode, 0750u);
  kernel_.UnmountBelow(kTarget);
  EXPECT_EQ(kernel_.Find(kTarget).mode, 0750u);
}

TEST_F(SubpathTest, MakesAMissingSubpathWithTheModeOfTheVolume) {
  kernel_.SetAttributes(kVolume, 02770, 0, 2000);
  ASSERT_TRUE(Prepare("a/b").ok());
  EXPECT_EQ(kernel_.Find(InVolume("a")).mode, 02770u);
  EXPECT_EQ(kernel_.Find(InVolume("a/b")).mode, 02770u);
}

TEST_F(SubpathTest, DotsAndDoubleSlashesAreCleaned) {
  kernel_.AddDirectory(InVolume("a/b"));
  ASSERT_TRUE(Prepare("./a//b/").ok());
  EXPECT_TRUE(kernel_.IsMountPoint(kTarget));
}

TEST_F(SubpathTest, RefusesPathsThatLeaveTheVolume) {
  for (const char* path : {"", "/etc", "..", "a/../../b", "a/.."}) {
    const auto target = Prepare(path);
    ASSERT_FALSE(target.ok()) << path;
    EXPECT_EQ(target.error().code(), Code::kInvalidArgument) << path;
  }
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(SubpathTest, FollowsALinkInsideTheVolume) {
  kernel_.AddFile(InVolume("..2024/key"), "v");
  kernel_.AddSymlink(InVolume("..data"), "..2024");
  kernel_.AddSymlink(InVolume("key"), "..data/key");
  const auto target = Prepare("key");
  ASSERT_TRUE(target.ok()) << target.error().ToString();
  EXPECT_EQ(kernel_.Find(kTarget).content, "v");
}

TEST_F(SubpathTest, ALinkOutOfTheVolumeIsNotFollowed) {
  kernel_.AddFile("/etc/shadow", "secret");
  kernel_.AddSymlink(InVolume("absolute"), "/etc");
  kernel_.AddSymlink(InVolume("upwards"), "../../../../../../etc");
  for (const char* path : {"absolute", "upwards", "absolute/shadow", "absolute/missing"}) {
    const auto target = Prepare(path);
    ASSERT_FALSE(target.ok()) << path;
    EXPECT_EQ(target.error().code(), Code::kInvalidArgument);
    EXPECT_FALSE(target.error().maybe_applied());
    EXPECT_EQ(target.error().message(), "subpath \"" + InVolume(path) +
                                            "\" not within volume path \"" + kVolume +
                                            "\": a link in it leads out of the volume");
    EXPECT_FALSE(kernel_.IsMountPoint(kTarget)) << path;
  }
}

// A link that is put there between the look and the bind.
TEST_F(SubpathTest, ALinkOutOfTheVolumeThatComesLaterIsRefusedInTheSameWords) {
  kernel_.AddDirectory(InVolume("html"));
  kernel_.SetCallHook([this](const AnyRequest& any) {
    if (!std::holds_alternative<BindMount>(any)) return;
    kernel_.Remove(InVolume("html"));
    kernel_.AddSymlink(InVolume("html"), "/etc");
  });
  const auto target = Prepare("html");
  ASSERT_FALSE(target.ok());
  EXPECT_FALSE(target.error().maybe_applied());
  EXPECT_NE(target.error().message().find("not within volume path"), std::string::npos);
  EXPECT_FALSE(kernel_.Exists(kTarget));
}

TEST_F(SubpathTest, ALinkIntoAnotherPodOfTheSameRootIsNotFollowed) {
  kernel_.AddFile("/r/pods/u2/volumes/kubernetes.io~secret/s/key", "theirs");
  kernel_.AddSymlink(InVolume("other"), "../../../../u2/volumes/kubernetes.io~secret/s");
  EXPECT_FALSE(Prepare("other").ok());
  EXPECT_FALSE(kernel_.IsMountPoint(kTarget));
}

TEST_F(SubpathTest, ARightBindIsKept) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  const std::string mounts = kernel_.DumpMounts();
  ASSERT_TRUE(Prepare("html").ok());
  EXPECT_EQ(kernel_.DumpMounts(), mounts);
  EXPECT_EQ(kernel_.CallLogText().find("Unmount "), std::string::npos);
}

TEST_F(SubpathTest, ABindOfSomethingElseIsReplaced) {
  kernel_.AddFile(InVolume("html/who"), "old");
  ASSERT_TRUE(Prepare("html").ok());
  kernel_.Remove(InVolume("html"));
  kernel_.AddFile(InVolume("html/who"), "new");
  ASSERT_TRUE(Prepare("html").ok());
  EXPECT_EQ(kernel_.Find(std::string(kTarget) + "/who").content, "new");
}

TEST_F(SubpathTest, ADirectoryThatBecameAFileIsReplaced) {
  kernel_.AddDirectory(InVolume("x"));
  ASSERT_TRUE(Prepare("x").ok());
  kernel_.Remove(InVolume("x"));
  kernel_.AddFile(InVolume("x"), "file now");
  ASSERT_TRUE(Prepare("x").ok());
  EXPECT_EQ(kernel_.Find(kTarget).content, "file now");
}

TEST_F(SubpathTest, AHostPathMayBeTheVolume) {
  kernel_.AddFile("/srv/site/index", "h");
  SafeSubpathRequest request = Request("site");
  request.volume = HostPath("/srv");
  ASSERT_TRUE(PrepareSafeSubpath(kernel_, paths_, request, {}).ok());
  EXPECT_EQ(kernel_.Find(std::string(kTarget) + "/index").content, "h");
}

TEST_F(SubpathTest, AFailedBindLeavesNoTarget) {
  kernel_.AddDirectory(InVolume("html"));
  kernel_.FailNext("BindMount", Error::NotApplied(Code::kResourceExhausted, "too many mounts"));
  const auto target = Prepare("html");
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().message(), "too many mounts");
  EXPECT_FALSE(kernel_.Exists(kTarget));
}

// The pod was said to have its volume still.
TEST_F(SubpathTest, AFailureBehindTheUnmountOfAnotherBindSaidThatNothingWasDone) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  kernel_.Remove(InVolume("html"));
  kernel_.AddDirectory(InVolume("html"));
  kernel_.FailNext("BindMount", Error::NotApplied(Code::kResourceExhausted, "too many mounts"));
  const auto target = Prepare("html");
  ASSERT_FALSE(target.ok());
  EXPECT_TRUE(target.error().maybe_applied());
  EXPECT_FALSE(kernel_.IsMountPoint(kTarget));
}

TEST_F(SubpathTest, ABindThatMayHaveHappenedKeepsItsTarget) {
  kernel_.AddDirectory(InVolume("html"));
  kernel_.FailNext("BindMount", Error::MaybeApplied(Code::kDeadlineExceeded, "killed"), 1, true);
  const auto target = Prepare("html");
  ASSERT_FALSE(target.ok());
  EXPECT_TRUE(target.error().maybe_applied());
  EXPECT_TRUE(kernel_.IsMountPoint(kTarget));
  EXPECT_TRUE(Prepare("html").ok());
}

TEST_F(SubpathTest, CleaningTakesEveryBindAndDirectory) {
  kernel_.AddDirectory(InVolume("html"));
  kernel_.AddFile(InVolume("conf"), "c");
  ASSERT_TRUE(Prepare("html").ok());
  SafeSubpathRequest second = Request("conf");
  second.index = 3;
  ASSERT_TRUE(PrepareSafeSubpath(kernel_, paths_, second, {}).ok());
  const Status cleaned = Clean();
  ASSERT_TRUE(cleaned.ok()) << cleaned.error().ToString();
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/volume-subpaths"));
  EXPECT_TRUE(kernel_.Exists(InVolume("html")));
  EXPECT_EQ(kernel_.Find(InVolume("conf")).content, "c");
}

TEST_F(SubpathTest, CleaningOneVolumeKeepsAnother) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  SafeSubpathRequest other = Request("html");
  other.spec = SpecName("other");
  ASSERT_TRUE(PrepareSafeSubpath(kernel_, paths_, other, {}).ok());
  ASSERT_TRUE(Clean().ok());
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/volume-subpaths/data"));
  EXPECT_TRUE(kernel_.IsMountPoint("/r/pods/u1/volume-subpaths/other/web/0"));
}

TEST_F(SubpathTest, CleaningTakesMountsThatLieOnEachOther) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  kernel_.AddMount("tmpfs", "tmpfs", kTarget);
  ASSERT_TRUE(Clean().ok());
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/volume-subpaths"));
}

TEST_F(SubpathTest, OnARootThatTakesNoWritesEveryMountGoes) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  SafeSubpathRequest second = Request("html");
  second.index = 3;
  ASSERT_TRUE(PrepareSafeSubpath(kernel_, paths_, second, {}).ok());
  kernel_.FailNext("RemoveDirectory",
                   Error::FromErrno(EROFS, "remove directory", Outcome::kNotApplied));
  ASSERT_FALSE(Clean().ok());
  EXPECT_EQ(kernel_.DumpMounts(), "");
  EXPECT_TRUE(kernel_.Exists(kTarget));
  const Result<bool> unmounted =
      UnmountSubPaths(kernel_, paths_, PodUid("u1"), SpecName("data"), {});
  ASSERT_TRUE(unmounted.ok());
  EXPECT_TRUE(*unmounted) << "their directories are still there";
  ASSERT_TRUE(Clean().ok());
  EXPECT_FALSE(*UnmountSubPaths(kernel_, paths_, PodUid("u1"), SpecName("data"), {}));
}

TEST_F(SubpathTest, CleaningNothingIsSuccess) { EXPECT_TRUE(Clean().ok()); }

TEST_F(SubpathTest, ABusyBindStopsTheCleaningAndIsNamed) {
  kernel_.AddDirectory(InVolume("html"));
  ASSERT_TRUE(Prepare("html").ok());
  kernel_.FailNext("Unmount", Error::NotApplied(Code::kFailedPrecondition,
                                                std::string("unmount ") + kTarget + ": busy"));
  const Status cleaned = Clean();
  ASSERT_FALSE(cleaned.ok());
  EXPECT_NE(cleaned.error().message().find(kTarget), std::string::npos);
  EXPECT_TRUE(kernel_.IsMountPoint(kTarget));
}

}  // namespace
}  // namespace volumed
