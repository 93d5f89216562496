#include "plugins/empty_dir.h"

#include <gtest/gtest.h>

#include <cerrno>

#include <algorithm>
#include <variant>

#include "unit/plugins/plugin_test_base.h"

namespace volumed {
namespace {

constexpr char kDir[] = "/r/pods/u1/volumes/kubernetes.io~empty-dir/v";
constexpr char kMarker[] = "/r/pods/u1/plugins/kubernetes.io~empty-dir/v/ready";

EmptyDirVolumeSource Disk() { return {}; }
EmptyDirVolumeSource Memory() { return {.medium = "Memory", .size_limit = {}}; }

class EmptyDirTest : public PluginTestBase {
 protected:
  std::vector<std::string> TmpfsOptions() {
    for (const MountEntry& mount : kernel_.Mounts()) {
      if (mount.mount_point == kDir) return mount.super_options;
    }
    return {"not mounted"};
  }
  bool HasOption(const std::string& option) {
    const auto options = TmpfsOptions();
    return std::find(options.begin(), options.end(), option) != options.end();
  }
};

TEST_F(EmptyDirTest, OnDiskIsADirectoryForEverybody) {
  ASSERT_TRUE(SetUp1(Disk()).ok());
  EXPECT_EQ(kernel_.Find(kDir).mode, 0777u);
  EXPECT_FALSE(kernel_.IsMountPoint(kDir));
  EXPECT_EQ(kernel_.Find(kMarker).type, FileType::kRegular);
  EXPECT_EQ(kernel_.Find("/r/pods/u1/plugins/kubernetes.io~empty-dir/v").mode, 0750u);
}

TEST_F(EmptyDirTest, ASecondSetUpChangesNothing) {
  ASSERT_TRUE(SetUp1(Disk()).ok());
  kernel_.AddFile(std::string(kDir) + "/work", "kept");
  kernel_.SetAttributes(kDir, 0700, 5, 5);
  const std::string before = kernel_.DumpTree("/r");
  ASSERT_TRUE(SetUp1(Disk()).ok());
  EXPECT_EQ(kernel_.DumpTree("/r"), before);
}

TEST_F(EmptyDirTest, FsGroupOwnsItWhateverThePolicy) {
  MounterArgs args = WithGroup(2000);
  args.fs_group_change_policy = FsGroupChangePolicy::kOnRootMismatch;
  ASSERT_TRUE(SetUp1(Disk(), args).ok());
  EXPECT_EQ(kernel_.Find(kDir).gid, 2000u);
  EXPECT_EQ(kernel_.Find(kDir).mode, 02777u);
}

TEST_F(EmptyDirTest, AFailedOwnershipChangeLeavesNoMarkerAndIsRepeated) {
  kernel_.FailNext("ChangeOwnership", Error::NotApplied(Code::kUnknown, "io"));
  const Status status = SetUp1(Disk(), WithGroup(2000));
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().maybe_applied());
  EXPECT_FALSE(kernel_.Exists(kMarker));
  ASSERT_TRUE(SetUp1(Disk(), WithGroup(2000)).ok());
  EXPECT_EQ(kernel_.Find(kDir).gid, 2000u);
}

TEST_F(EmptyDirTest, MemoryIsATmpfsOfTheNodesAllocatableSize) {
  ASSERT_TRUE(SetUp1(Memory()).ok());
  EXPECT_TRUE(kernel_.IsMountPoint(kDir));
  EXPECT_NE(kernel_.DumpMounts().find("tmpfs"), std::string::npos);
  EXPECT_TRUE(HasOption("size=65536k")) << ::testing::PrintToString(TmpfsOptions());
}

TEST_F(EmptyDirTest, TheSmallestLimitIsTheSize) {
  Container container;
  container.name = "c";
  container.resources.limits["memory"] = Quantity::FromBytes(int64_t{32} << 20);
  pod_.spec.containers.push_back(container);
  ASSERT_TRUE(SetUp1(Memory()).ok());
  EXPECT_TRUE(HasOption("size=32768k")) << ::testing::PrintToString(TmpfsOptions());
  ASSERT_TRUE(TearDown1(Memory()).ok());

  EmptyDirVolumeSource limited = Memory();
  limited.size_limit = Quantity::FromBytes(int64_t{8} << 20);
  ASSERT_TRUE(SetUp1(limited).ok());
  EXPECT_TRUE(HasOption("size=8192k")) << ::testing::PrintToString(TmpfsOptions());
}

TEST_F(EmptyDirTest, ALargeOrZeroSizeLimitDoesNotCount) {
  EmptyDirVolumeSource source = Memory();
  for (const int64_t bytes : {int64_t{0}, int64_t{1} << 40}) {
    source.size_limit = Quantity::FromBytes(bytes);
    ASSERT_TRUE(SetUp1(source).ok());
    EXPECT_TRUE(HasOption("size=65536k"));
    ASSERT_TRUE(TearDown1(source).ok());
  }
}

TEST_F(EmptyDirTest, AnOlderKernelIsNotAskedForNoswap) {
  ASSERT_TRUE(SetUp1(Memory()).ok());
  EXPECT_FALSE(HasOption("noswap"));
}

class EmptyDirOnNewKernelTest : public PluginTestBase {
 protected:
  EmptyDirOnNewKernelTest() : PluginTestBase({.tmpfs_noswap = true}) {}
};

TEST_F(EmptyDirOnNewKernelTest, MemoryNeverReachesSwap) {
  ASSERT_TRUE(SetUp1(Memory()).ok());
  for (const MountEntry& mount : kernel_.Mounts()) {
    if (mount.mount_point != kDir) continue;
    EXPECT_NE(std::find(mount.super_options.begin(), mount.super_options.end(), "noswap"),
              mount.super_options.end());
    return;
  }
  FAIL() << "no tmpfs was mounted";
}

TEST_F(EmptyDirTest, AnInterruptedMemorySetUpIsFinishedWithoutASecondMount) {
  kernel_.FailNext("MakeFile", Error::NotApplied(Code::kUnknown, "io"));
  ASSERT_FALSE(SetUp1(Memory()).ok());
  const std::string mounts = kernel_.DumpMounts();
  ASSERT_TRUE(SetUp1(Memory()).ok());
  EXPECT_EQ(kernel_.DumpMounts(), mounts);
  EXPECT_TRUE(kernel_.Exists(kMarker));
}

TEST_F(EmptyDirTest, AMarkerFromBeforeAReboot) {
  ASSERT_TRUE(SetUp1(Memory(), WithGroup(2000)).ok());
  kernel_.Reboot();
  ASSERT_TRUE(kernel_.Exists(kMarker));
  ASSERT_TRUE(SetUp1(Memory(), WithGroup(2000)).ok());
  EXPECT_TRUE(kernel_.IsMountPoint(kDir));
  EXPECT_EQ(kernel_.Find(kDir).gid, 2000u);
}

TEST_F(EmptyDirTest, AMarkerWithoutItsDirectoryIsNotBelieved) {
  ASSERT_TRUE(SetUp1(Disk()).ok());
  kernel_.Remove(kDir);
  ASSERT_TRUE(SetUp1(Disk()).ok());
  EXPECT_EQ(kernel_.Find(kDir).type, FileType::kDirectory);
}

TEST_F(EmptyDirTest, AMarkerThatIsNoFileIsNotBelieved) {
  kernel_.AddDirectory(kMarker);
  ASSERT_TRUE(SetUp1(Disk()).ok());
  EXPECT_EQ(kernel_.Find(kMarker).type, FileType::kRegular);
  EXPECT_EQ(kernel_.Find(kDir).mode, 0777u);
}

TEST_F(EmptyDirTest, AnotherFilesystemInThePlaceOfTheTmpfsIsRefused) {
  kernel_.AddMount("ext4", "/dev/sdz", kDir);
  const Status status = SetUp1(Memory());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(status.error().maybe_applied());
}

TEST_F(EmptyDirTest, AMediumThatNobodyKnows) {
  const Status status = SetUp1(EmptyDirVolumeSource{.medium = "Disc", .size_limit = {}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "unknown storage medium \"Disc\"");
  EXPECT_FALSE(kernel_.Exists(kDir));
}

TEST_F(EmptyDirTest, TearDownLeavesNothing) {
  for (const VolumeSource& source : {VolumeSource(Disk()), VolumeSource(Memory())}) {
    ASSERT_TRUE(SetUp1(source).ok());
    kernel_.AddFile(std::string(kDir) + "/a/b", "x");
    const Status status = TearDown1(source);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_FALSE(kernel_.Exists(kDir));
    EXPECT_FALSE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~empty-dir/v"));
    EXPECT_EQ(kernel_.DumpMounts(), "");
    EXPECT_TRUE(TearDown1(source).ok());
  }
}

TEST_F(EmptyDirTest, OnARootThatTakesNoWritesTheMountGoesAndTheRestIsRetried) {
  ASSERT_TRUE(SetUp1(Memory()).ok());
  kernel_.FailNext("RemoveTree", Error::FromErrno(EROFS, "remove marker", Outcome::kNotApplied));
  const Status status = TearDown1(Memory());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().sys_errno(), EROFS);
  EXPECT_TRUE(status.error().maybe_applied());
  EXPECT_EQ(kernel_.DumpMounts(), "");
  ASSERT_TRUE(TearDown1(Memory()).ok());
  EXPECT_FALSE(kernel_.Exists(kDir));
  // A directory on disk loses nothing while its marker vouches for it.
  ASSERT_TRUE(SetUp1(Disk()).ok());
  kernel_.AddFile(std::string(kDir) + "/a", "x");
  kernel_.FailNext("RemoveTree", Error::FromErrno(EROFS, "remove marker", Outcome::kNotApplied));
  ASSERT_FALSE(TearDown1(Disk()).ok());
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/a").content, "x");
}

TEST_F(EmptyDirTest, TearDownNeverEntersAnotherFilesystem) {
  ASSERT_TRUE(SetUp1(Disk()).ok());
  kernel_.AddFile(std::string(kDir) + "/own", "x");
  kernel_.AddMount("nfs4", "server:/export", std::string(kDir) + "/mnt");
  kernel_.AddFile(std::string(kDir) + "/mnt/precious", "data");
  const Status status = TearDown1(Disk());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(status.error().message().find("mount point"), std::string::npos);
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/mnt/precious").content, "data");
  kernel_.UnmountBelow(std::string(kDir) + "/mnt");
  EXPECT_TRUE(TearDown1(Disk()).ok());
  EXPECT_FALSE(kernel_.Exists(kDir));
}

TEST_F(EmptyDirTest, AForeignMountOnTheVolumeItselfIsNotTakenAway) {
  ASSERT_TRUE(SetUp1(Disk()).ok());
  kernel_.AddMount("nfs4", "server:/export", kDir);
  kernel_.AddFile(std::string(kDir) + "/precious", "data");
  EXPECT_FALSE(TearDown1(Disk()).ok());
  EXPECT_EQ(kernel_.Find(std::string(kDir) + "/precious").content, "data");
}

TEST_F(EmptyDirTest, AnAdoptedVolumeIsWhatTheKernelSays) {
  ASSERT_TRUE(SetUp1(Memory()).ok());
  const SafePath path = NewMounter(Memory())->GetSafePath();
  const auto memory = PluginFor(Memory()).ConstructVolumeSpec(SpecName("v"), path, {});
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(std::get<EmptyDirVolumeSource>(memory->spec.volume()->source).medium, "Memory");
  ASSERT_TRUE(TearDown1(Memory()).ok());
  ASSERT_TRUE(SetUp1(Disk()).ok());
  const auto disk = PluginFor(Disk()).ConstructVolumeSpec(SpecName("v"), path, {});
  ASSERT_TRUE(disk.ok());
  EXPECT_EQ(std::get<EmptyDirVolumeSource>(disk->spec.volume()->source).medium, "");
}

TEST_F(EmptyDirTest, MeasuresItsOwnTreeEachTime) {
  ASSERT_TRUE(SetUp1(Disk()).ok());
  const auto mounter = NewMounter(Disk());
  const auto before = mounter->GetMetrics({});
  ASSERT_TRUE(before.ok());
  kernel_.AddFile(std::string(kDir) + "/f", std::string(8192, 'x'));
  const auto after = mounter->GetMetrics({});
  ASSERT_TRUE(after.ok());
  EXPECT_GE(*after->used_bytes - *before->used_bytes, 8192);
  EXPECT_EQ(*after->inodes_used - *before->inodes_used, 1);
  EXPECT_EQ(CollectionCount(world_.families), "2");
}

TEST_F(EmptyDirTest, Identity) {
  VolumePlugin& plugin = PluginFor(Disk());
  const VolumeSpec other = VolumeSpec::FromVolume(PodVolume{"v", SecretVolumeSource()});
  EXPECT_EQ(plugin.GetVolumeName(VolumeSpec::FromVolume(PodVolume{"v", Disk()})).value(), "v");
  EXPECT_FALSE(plugin.CanSupport(other));
  EXPECT_EQ(plugin.GetVolumeName(other).error().message(),
            "Spec does not reference an EmptyDir volume type");
  const Attributes attributes = NewMounter(Disk())->GetAttributes();
  EXPECT_FALSE(attributes.read_only);
  EXPECT_TRUE(attributes.managed);
  EXPECT_FALSE(plugin.RequiresRemount(other));
}

TEST_F(EmptyDirTest, ATargetWithoutAPodGetsOneAtItsOwnPlace) {
  VolumeTarget target = TargetWithoutPod();
  const auto mounter = PluginFor(Memory()).NewMounter(SpecOf(Memory()), target).value();
  ASSERT_TRUE(mounter->SetUp({}).ok());
  EXPECT_EQ(mounter->GetPath(), "/other/vol");
  EXPECT_TRUE(kernel_.IsMountPoint("/other/vol"));
  EXPECT_TRUE(kernel_.Exists("/other/own/plugins/kubernetes.io~empty-dir/v/ready"));
}

TEST_F(EmptyDirTest, SetUpAtMakesItElsewhereAndTearDownAtTakesItAway) {
  const SafePath elsewhere{"/r", "pods/other"};
  kernel_.AddDirectory("/r/pods", 0750);
  ASSERT_TRUE(NewMounter(Disk())->SetUpAt(elsewhere, {}).ok());
  EXPECT_TRUE(kernel_.Exists("/r/pods/other"));
  EXPECT_FALSE(kernel_.Exists(kDir));
  const auto unmounter = PluginFor(Disk()).NewUnmounter(SpecName("v"), PodUid("u")).value();
  ASSERT_TRUE(unmounter->TearDownAt(elsewhere, {}).ok());
  EXPECT_FALSE(kernel_.Exists("/r/pods/other"));
}

TEST_F(EmptyDirTest, HugePagesAreRefusedToATargetWithoutAPod) {
  const VolumeSource source = EmptyDirVolumeSource{.medium = "HugePages", .size_limit = {}};
  const auto mounter = PluginFor(source).NewMounter(SpecOf(source), TargetWithoutPod());
  ASSERT_FALSE(mounter.ok());
  EXPECT_EQ(mounter.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(mounter.error().message(),
            "an emptyDir on huge pages is made from a pod, and /other/vol is a place without one");
}

}  // namespace
}  // namespace volumed
