// PoolPlugin with volumes that are made of a snapshot, or of another volume: planned, made, and
// mounted beside what they were made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "unit/pool/pool_cuts_fixture.h"
#include "unit/pool/pool_plugin_fixture.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PoolContentsTest : public ::testing::Test {
 protected:
  PoolContentsTest() {
    world_.kernel.AddMount("xfs", kPoolDisk, kPoolPath);
    StartAgent();
    source_ = Make(ClaimOptions("pvc-1"));
    EXPECT_TRUE(agent_->MountDevice(source_.Spec()).ok());
  }
  void StartAgent() {
    agent_.reset();
    agent_ = std::make_unique<PoolPluginAgent>(world_);
    contents_ = std::make_unique<TestContents>(cuts_, *agent_->volumes);
    agent_->volumes->SetContentHolder(contents_.get());
    EXPECT_TRUE(agent_->Recover({source_.volume.spec.capacity.IsZero() ? "" : source_.id()}).ok());
  }
  ClaimedVolume Make(const VolumeOptions& options) {
    ClaimedVolume planned = Must(agent_->Plan(options));
    const PersistentVolume made = Must(agent_->Make(planned));
    EXPECT_EQ(made.spec.source, planned.volume.spec.source);
    return planned;
  }
  VolumeOptions OptionsFor(const std::string& name, VolumeContent content, int64_t bytes) {
    VolumeOptions options = ClaimOptions(name);
    options.claim.spec.storage.request = Quantity::FromBytes(bytes);
    options.claim.spec.data_source_json = R"({"kind":"VolumeSnapshot","name":"s"})";
    content.driver = kDriver;
    options.content = std::move(content);
    return options;
  }
  // Of the source, as it is mounted.
  std::string CutSource() {
    const std::string place = PoolPluginAgent::DevicePlace(source_.id());
    PoolVolumes::CutRequest request{source_.id(), agent_->volumes->NewCutId(source_.id()), {}};
    for (const MountEntry& mount : world_.kernel.Mounts()) {
      if (mount.mount_point != place) continue;
      request.mounted = {{place, ""}, mount.device_major, mount.device_minor};
    }
    EXPECT_TRUE(request.mounted.has_value());
    return Must(agent_->volumes->Cut({request}, {}, {})).at(0).id;
  }
  // Of a volume that is not mounted.
  std::string CutOf(const std::string& volume) {
    const std::string id = agent_->volumes->NewCutId(volume);
    return Must(agent_->volumes->Cut({{volume, id, {}}}, {}, {})).at(0).id;
  }
  int CallsOf(const std::string& request) const {
    const std::vector<std::string> log = world_.kernel.call_log();
    return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const std::string& line) {
      return (line + " ").find(" " + request + " ") != std::string::npos;
    }));
  }
  std::string UuidOf(const ClaimedVolume& claimed) {
    return Must(agent_->volumes->Find(claimed.id())).filesystem.uuid;
  }

  PoolPluginWorld world_;
  PoolCutsWorld cuts_{false};  // for what TestContents remembers alone
  std::unique_ptr<PoolPluginAgent> agent_;
  std::unique_ptr<TestContents> contents_;
  ClaimedVolume source_;
};

TEST_F(PoolContentsTest, ARestoredVolumeIsMountedBesideItsSourceAndNeverFormatted) {
  const ClaimedVolume restored = Make(OptionsFor("pvc-2", SnapshotContent(CutSource()), 64 * kMiB));
  const int formats = CallsOf("FormatDevice");
  const Status mounted = agent_->MountDevice(restored.Spec());
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  EXPECT_EQ(CallsOf("FormatDevice"), formats);
  EXPECT_NE(UuidOf(restored), UuidOf(source_));
  EXPECT_TRUE(world_.kernel.IsMountPoint(PoolPluginAgent::DevicePlace(source_.id())));
  EXPECT_TRUE(world_.kernel.IsMountPoint(PoolPluginAgent::DevicePlace(restored.id())));
  EXPECT_EQ(world_.kernel.Image(PoolWorld::ImageOf(restored.id())).fs_bytes, 64 * kMiB);
  EXPECT_EQ(restored.volume.spec.capacity.Value(), 64 * kMiB);
}

// The kernel grows it, once it is mounted; that it does not fails no mount.
TEST_F(PoolContentsTest, AnXfsThatIsLargerThanItsSourceGrowsOnceItIsMounted) {
  VolumeOptions xfs = ClaimOptions("pvc-x");
  xfs.claim.spec.storage.request = Quantity::FromBytes(300 * kMiB);
  xfs.parameters = {{kPoolFsTypeParameter, "xfs"}};
  const ClaimedVolume source = Make(xfs);
  ASSERT_TRUE(agent_->MountDevice(source.Spec()).ok());
  ASSERT_TRUE(agent_->UnmountDevice(source.id()).ok());
  const ClaimedVolume clone = Make(OptionsFor("pvc-y", CloneContent(source.id()), 400 * kMiB));
  const Status mounted = agent_->MountDevice(clone.Spec());
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  EXPECT_EQ(world_.kernel.Image(PoolWorld::ImageOf(clone.id())).fs_bytes, 400 * kMiB);
  ASSERT_TRUE(agent_->UnmountDevice(clone.id()).ok());
  world_.kernel.FailNext("GrowFilesystem", Error::NotApplied(Code::kInternal, "it cannot"));
  EXPECT_TRUE(agent_->MountDevice(clone.Spec()).ok());
}

TEST_F(PoolContentsTest, ACopyThatIsFirstStagedForReadersHasAUuidOfItsOwnToo) {
  const ClaimedVolume restored = Make(OptionsFor("pvc-2", SnapshotContent(CutSource()), 16 * kMiB));
  const Status mounted = agent_->MountDevice(restored.Spec(/*read_only=*/true));
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  EXPECT_NE(UuidOf(restored), UuidOf(source_));
}

// The plan alone says what is in the volume, as the claim may be gone by then.
TEST_F(PoolContentsTest, AnotherAgentMakesTheSameVolumeOfTheSameContent) {
  const std::string cut = CutSource();
  const ClaimedVolume planned =
      Must(agent_->Plan(OptionsFor("pvc-2", SnapshotContent(cut), 16 * kMiB)));
  StartAgent();
  ASSERT_TRUE(agent_->Make(planned).ok());
  EXPECT_EQ(Must(agent_->volumes->Find(planned.id())).from_snapshot, cut);
}

TEST_F(PoolContentsTest, TheFilesystemAndThePoolAreThoseOfTheContent) {
  VolumeOptions options = ClaimOptions("pvc-x");
  options.claim.spec.storage.request = Quantity::FromBytes(512 * kMiB);
  options.parameters = {{kPoolFsTypeParameter, "xfs"}};
  const ClaimedVolume source = Make(options);
  ASSERT_TRUE(agent_->MountDevice(source.Spec()).ok());
  ASSERT_TRUE(agent_->UnmountDevice(source.id()).ok());
  const ClaimedVolume clone = Must(agent_->Plan(OptionsFor("pvc-y", CloneContent(source.id()), 0)));
  const auto& made = std::get<CsiPersistentVolumeSource>(clone.volume.spec.source);
  EXPECT_EQ(made.fs_type, "xfs");
  EXPECT_EQ(clone.volume.spec.capacity.Value(), 1024 * kMiB);
}

// A snapshot of an xfs volume that no pod had had yet was restored as an ext4.
TEST_F(PoolContentsTest, WhatIsMadeOfAVolumeThatWasNeverMountedHasTheFilesystemOfItsClass) {
  world_.kernel.LimitFilesystem(kPoolPath, 8192 * kMiB);
  VolumeOptions options = ClaimOptions("pvc-x");
  options.claim.spec.storage.request = Quantity::FromBytes(512 * kMiB);
  for (const std::string fs_type : {"xfs", "btrfs"}) {
    options.pv_name = "pvc-" + fs_type;
    options.parameters = {{kPoolFsTypeParameter, fs_type}};
    const ClaimedVolume source = Make(options);
    const std::string cut = CutOf(source.id());
    const ClaimedVolume clone =
        Make(OptionsFor("pvc-c-" + fs_type, CloneContent(source.id()), 512 * kMiB));
    // Of a snapshot it is known when the volume is gone, too.
    ASSERT_TRUE(agent_->volumes->Delete(source.id(), false, {}).ok());
    const ClaimedVolume restored =
        Make(OptionsFor("pvc-r-" + fs_type, SnapshotContent(cut), 512 * kMiB));
    for (const ClaimedVolume* made : {&clone, &restored}) {
      EXPECT_EQ(std::get<CsiPersistentVolumeSource>(made->volume.spec.source).fs_type, fs_type);
      EXPECT_EQ(PoolFilesystemOf(Must(agent_->volumes->Find(made->id()))), fs_type);
      const Status mounted = agent_->MountDevice(made->Spec());
      ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
      EXPECT_EQ(world_.kernel.Image(PoolWorld::ImageOf(made->id())).fs_type, fs_type);
    }
  }
}

TEST_F(PoolContentsTest, WhatIsBlankBecomesTheFilesystemThatIsAskedFor) {
  world_.kernel.LimitFilesystem(kPoolPath, 8192 * kMiB);
  VolumeOptions options = ClaimOptions("pvc-x");
  options.claim.spec.storage.request = Quantity::FromBytes(512 * kMiB);
  options.parameters = {{kPoolFsTypeParameter, "xfs"}};
  const std::string cut = CutOf(Make(options).id());
  VolumeOptions other = OptionsFor("pvc-y", SnapshotContent(cut), 512 * kMiB);
  other.parameters[kPoolFsTypeParameter] = "btrfs";
  const ClaimedVolume restored = Make(other);
  EXPECT_EQ(std::get<CsiPersistentVolumeSource>(restored.volume.spec.source).fs_type, "btrfs");
}

// An earlier program wrote no filesystem to the row of such a snapshot.
TEST_F(PoolContentsTest, AnOlderSnapshotOfABlankVolumeHasTheFilesystemOfItsVolume) {
  world_.kernel.LimitFilesystem(kPoolPath, 8192 * kMiB);
  VolumeOptions options = ClaimOptions("pvc-x");
  options.claim.spec.storage.request = Quantity::FromBytes(512 * kMiB);
  options.parameters = {{kPoolFsTypeParameter, "xfs"}};
  const std::string id = CutOf(Make(options).id());
  PoolCutRecord cut = Must(agent_->volumes->FindCut(id));
  cut.first_fs_type.clear();
  ASSERT_TRUE(world_.store.Put(EncodeRecord(cut), Durability::kPowerLoss).ok());
  StartAgent();
  const ClaimedVolume restored = Make(OptionsFor("pvc-y", SnapshotContent(id), 512 * kMiB));
  EXPECT_EQ(std::get<CsiPersistentVolumeSource>(restored.volume.spec.source).fs_type, "xfs");
}

TEST_F(PoolContentsTest, TheDeviceOfAVolumeThatIsClonedIsNamedAndOfASnapshotNone) {
  const VolumeOptions clone = OptionsFor("pvc-2", CloneContent(source_.id()), 16 * kMiB);
  const UniqueVolumeName device = GetUniqueVolumeName(kPoolPluginName, source_.id());
  EXPECT_EQ(agent_->plugin.DeviceOfContent(clone), device);
  const ClaimedVolume planned = Must(agent_->Plan(clone));
  VolumeOptions by_plan;
  by_plan.plan = VolumePlan{planned.volume, planned.plan};
  EXPECT_EQ(agent_->plugin.DeviceOfContent(by_plan), device);
  EXPECT_EQ(agent_->plugin.DeviceOfContent(OptionsFor("pvc-3", SnapshotContent("s-1"), 16 * kMiB)),
            UniqueVolumeName());
  EXPECT_EQ(agent_->plugin.DeviceOfContent(ClaimOptions("pvc-4")), UniqueVolumeName());
}

TEST_F(PoolContentsTest, AContentOfAnotherDriverOrOfNoneIsRefused) {
  VolumeOptions other = OptionsFor("pvc-2", SnapshotContent("s-1"), 16 * kMiB);
  other.content->driver = "other.example.com";
  EXPECT_THAT(agent_->Plan(other).error().message(), HasSubstr("other.example.com"));
  VolumeOptions unknown = OptionsFor("pvc-2", SnapshotContent("s-1"), 16 * kMiB);
  unknown.content.reset();
  EXPECT_EQ(agent_->Plan(unknown).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
