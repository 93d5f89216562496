#include "plugins/host_path.h"

#include <gtest/gtest.h>

#include "unit/plugins/plugin_test_base.h"

namespace volumed {
namespace {

HostPathVolumeSource At(const std::string& path, HostPathType type = HostPathType::kUnset) {
  return {.path = path, .type = type};
}

class HostPathTest : public PluginTestBase {
 protected:
  std::string ErrorOf(const HostPathVolumeSource& source) {
    const Status status = SetUp1(source);
    EXPECT_FALSE(status.ok()) << source.path;
    return status.ok() ? "" : status.error().message();
  }
};

TEST_F(HostPathTest, IsThePathItself) {
  const auto mounter = NewMounter(At("/var//log/./app/"));
  EXPECT_EQ(mounter->GetPath(), "/var/log/app");
  EXPECT_EQ(mounter->GetSafePath().root, "/var/log/app");
  EXPECT_EQ(mounter->GetSafePath().relative, "");
  EXPECT_EQ(NewMounter(At("/"))->GetPath(), "/");
}

TEST_F(HostPathTest, WithoutATypeNothingIsCheckedOrMade) {
  ASSERT_TRUE(SetUp1(At("/missing")).ok());
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(HostPathTest, EachTypeAcceptsItsOwn) {
  kernel_.AddDirectory("/h/dir");
  kernel_.AddFile("/h/file", "");
  kernel_.AddSpecial("/h/socket", FileType::kSocket);
  kernel_.AddSpecial("/h/char", FileType::kCharDevice);
  kernel_.AddSpecial("/h/block", FileType::kBlockDevice);
  const std::string before = kernel_.DumpTree("/h");
  for (const auto& source :
       {At("/h/dir", HostPathType::kDirectory), At("/h/dir", HostPathType::kDirectoryOrCreate),
        At("/h/file", HostPathType::kFile), At("/h/file", HostPathType::kFileOrCreate),
        At("/h/socket", HostPathType::kSocket), At("/h/char", HostPathType::kCharDevice),
        At("/h/block", HostPathType::kBlockDevice)}) {
    const Status status = SetUp1(source);
    EXPECT_TRUE(status.ok()) << source.path << status.error().ToString();
  }
  EXPECT_EQ(kernel_.DumpTree("/h"), before);
}

TEST_F(HostPathTest, EachTypeRefusesOthersInKubeletsWords) {
  kernel_.AddDirectory("/h/dir");
  kernel_.AddFile("/h/file", "");
  const std::string prefix = "hostPath type check failed: ";
  for (const HostPathType type : {HostPathType::kDirectory, HostPathType::kDirectoryOrCreate}) {
    EXPECT_EQ(ErrorOf(At("/h/file", type)), prefix + "/h/file is not a directory");
  }
  for (const HostPathType type : {HostPathType::kFile, HostPathType::kFileOrCreate}) {
    EXPECT_EQ(ErrorOf(At("/h/dir", type)), prefix + "/h/dir is not a file");
  }
  EXPECT_EQ(ErrorOf(At("/h/file", HostPathType::kSocket)), prefix + "/h/file is not a socket file");
  EXPECT_EQ(ErrorOf(At("/h/file", HostPathType::kCharDevice)),
            prefix + "/h/file is not a character device");
  EXPECT_EQ(ErrorOf(At("/h/file", HostPathType::kBlockDevice)),
            prefix + "/h/file is not a block device");
  EXPECT_EQ(ErrorOf(At("/h/none", HostPathType::kDirectory)),
            prefix + "/h/none is not a directory");
}

TEST_F(HostPathTest, MakesMissingDirectoriesWithTheirParents) {
  ASSERT_TRUE(SetUp1(At("/new/deep/dir", HostPathType::kDirectoryOrCreate)).ok());
  EXPECT_EQ(kernel_.Find("/new").mode, 0755u);
  EXPECT_EQ(kernel_.Find("/new/deep/dir").mode, 0755u);
}

TEST_F(HostPathTest, MakesAMissingFileButNotItsParent) {
  kernel_.AddDirectory("/h");
  ASSERT_TRUE(SetUp1(At("/h/new", HostPathType::kFileOrCreate)).ok());
  EXPECT_EQ(kernel_.Find("/h/new").mode, 0644u);
  EXPECT_EQ(kernel_.Find("/h/new").type, FileType::kRegular);
  EXPECT_FALSE(SetUp1(At("/none/new", HostPathType::kFileOrCreate)).ok());
  EXPECT_FALSE(kernel_.Exists("/none"));
}

TEST_F(HostPathTest, FollowsLinks) {
  kernel_.AddSpecial("/run/docker.sock", FileType::kSocket);
  kernel_.AddSymlink("/var/run", "/run");
  EXPECT_TRUE(SetUp1(At("/var/run/docker.sock", HostPathType::kSocket)).ok());
  EXPECT_TRUE(SetUp1(At("/var/run", HostPathType::kDirectory)).ok());
  EXPECT_TRUE(SetUp1(At("/var/run/x/y", HostPathType::kDirectoryOrCreate)).ok());
  EXPECT_EQ(kernel_.Find("/run/x/y").type, FileType::kDirectory);
}

TEST_F(HostPathTest, RefusesPathsThatClimb) {
  EXPECT_EQ(ErrorOf(At("/h/../etc")), "invalid HostPath `/h/../etc`: must not contain '..'");
  EXPECT_EQ(ErrorOf(At("h")), "invalid HostPath `h`: must be an absolute path");
  EXPECT_TRUE(SetUp1(At("/h/..data")).ok());
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(HostPathTest, AHungPathIsItsOwnFaultDomain) {
  VolumePlugin& plugin = PluginFor(At("/nfs/share"));
  EXPECT_EQ(plugin.FaultDomain(VolumeSpec::FromVolume(PodVolume{"v", At("/nfs/share/")})),
            "/nfs/share");
  kernel_.AddMount("nfs4", "server:/x", "/nfs/share");
  kernel_.Hang("/nfs/share");
  const Status status = SetUp1(At("/nfs/share/d", HostPathType::kDirectoryOrCreate));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kDeadlineExceeded);
}

TEST_F(HostPathTest, TearDownTouchesNothing) {
  kernel_.AddFile("/h/precious", "x");
  ASSERT_TRUE(TearDown1(At("/h")).ok());
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(HostPathTest, HasNoOtherPlaceAndNoMetrics) {
  const auto mounter = NewMounter(At("/h"));
  EXPECT_EQ(mounter->SetUpAt({"/x", ""}, {}).error().message(),
            "SetUpAt() does not make sense for host paths");
  const auto unmounter = PluginFor(At("/h")).NewUnmounter(SpecName("v"), PodUid("u1")).value();
  EXPECT_EQ(unmounter->TearDownAt({"/x", ""}, {}).error().message(),
            "TearDownAt does not make sense for host paths");
  const auto metrics = mounter->GetMetrics({});
  ASSERT_FALSE(metrics.ok());
  EXPECT_TRUE(IsNotSupported(metrics.error()));
  const Attributes attributes = mounter->GetAttributes();
  EXPECT_FALSE(attributes.managed || attributes.selinux_relabel || attributes.read_only);
}

TEST_F(HostPathTest, AnAdoptedVolumeKnowsItsNameOnly) {
  const auto adopted = PluginFor(At("/h")).ConstructVolumeSpec(SpecName("logs"), {"/r", "x"}, {});
  ASSERT_TRUE(adopted.ok());
  EXPECT_EQ(PluginFor(At("/h")).GetVolumeName(adopted->spec).value(), "logs");
}

class GitRepoTest : public PluginTestBase {
 protected:
  const GitRepoVolumeSource source_{"https://x/y.git", "main", "src"};
};

TEST_F(GitRepoTest, IsRefusedWithItsReason) {
  const Status status = SetUp1(source_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kUnimplemented);
  EXPECT_EQ(status.error().message().find("git-repo volume plugin has been disabled"), 0u);
  EXPECT_NE(status.error().message().find("CVE-2024-10220"), std::string::npos);
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(GitRepoTest, WhatAnEarlierAgentMadeIsTornDown) {
  const std::string dir = "/r/pods/u1/volumes/kubernetes.io~git-repo/v";
  kernel_.AddFile(dir + "/src/.git/config", "x");
  kernel_.AddFile("/r/pods/u1/plugins/kubernetes.io~git-repo/v/ready", "");
  kernel_.AddFile("/r/pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v/ready", "");
  ASSERT_TRUE(TearDown1(source_).ok());
  EXPECT_FALSE(kernel_.Exists(dir));
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~git-repo/v"));
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v"));
}

TEST_F(GitRepoTest, Identity) {
  const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"v", source_});
  EXPECT_EQ(PluginFor(source_).GetVolumeName(spec).value(), "https://x/y.git:main:src");
  const auto adopted = PluginFor(source_).ConstructVolumeSpec(SpecName("v"), {"/r", "x"}, {});
  ASSERT_TRUE(adopted.ok());
  EXPECT_TRUE(PluginFor(source_).CanSupport(adopted->spec));
}

}  // namespace
}  // namespace volumed
