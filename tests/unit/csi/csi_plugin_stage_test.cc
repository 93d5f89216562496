// NodeStageVolume and NodeUnstageVolume: order, outcomes, proofs, and what is left on the node.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CsiStageTest : public CsiPluginFixture {
 protected:
  // Every code of gRPC that an RPC can fail with.
  static std::vector<Code> AllCodes() {
    std::vector<Code> codes;
    for (int code = 1; code <= 16; ++code) codes.push_back(CsiCode(code));
    return codes;
  }
  std::string StageDir() { return ParentDir(Staging()); }
  // Pods have the disk raw, as another volume, whose name this is.
  std::string HaveRaw() {
    Mounts("/mnt/probe", disk_);
    MappedDeviceRecord mapped;
    for (const MountEntry& mount : kernel_.Mounts()) {
      if (mount.mount_point != "/mnt/probe") continue;
      mapped.device.device_major = mount.device_major;
      mapped.device.device_minor = mount.device_minor;
    }
    EXPECT_NE(mapped.device.device_major, 0u);
    kernel_.UnmountBelow("/mnt/probe");
    DeviceRecord facts;
    facts.key = CsiUniqueName(kName, "vol-raw");
    facts.plugin_name = kCsiPluginName;
    facts.spec = SpecName("pv-raw");
    facts.is_block = true;
    facts.device_mount_path = "/kubelet/plugins/kubernetes.io/csi/volumeDevices/pv-raw/dev";
    const uint64_t attempt = Must(devices_->BeginCall(facts, VolumeEvent::kMountDevice));
    EXPECT_TRUE(devices_->EndCall(facts.key, attempt, CallAnswer::kDone).ok());
    EXPECT_TRUE(devices_->SetMapped(facts.key, mapped).ok());
    return facts.key.str();
  }
  static std::string ParentDir(const std::string& path) { return path.substr(0, path.rfind('/')); }
};

TEST_F(CsiStageTest, TheRecordAndTheFileAreThereBeforeTheDriverIsCalled) {
  ServeNode();
  StringMap file;
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [&](const Message& request) {
    file = VolDataAt(StageDir());
    EXPECT_TRUE(kernel_.Exists(Staging()));
    Mounts(Field(request, "staging_target_path"), disk_);
  });
  const Status staged = Stage(CsiSpec());
  ASSERT_TRUE(staged.ok()) << staged.error().ToString();
  ASSERT_TRUE(device_at_call_.has_value());
  EXPECT_EQ(device_at_call_->staged, StagedState::kStaged);
  EXPECT_EQ(file, (StringMap{{"driverName", kName}, {"volumeHandle", kHandle}}));
  const auto& request = Last<::csi::v1::NodeStageVolumeRequest>("NodeStageVolume");
  EXPECT_EQ(request.volume_id(), kHandle);
  EXPECT_EQ(request.staging_target_path(), Staging());
  EXPECT_EQ(request.secrets().at("password"), "hunter2-stage");
  EXPECT_EQ(request.volume_capability().mount().fs_type(), "xfs");
  EXPECT_EQ(request.volume_context().at("tier"), "gold");
}

// A driver that is stopped was not named while its call was waited for.
TEST_F(CsiStageTest, TheOperationSaysWhichRpcOfWhichDriverItAwaits) {
  ServeNode();
  std::vector<std::string> meanwhile;
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [&](const Message& request) {
    meanwhile = awaited_;
    Mounts(Field(request, "staging_target_path"), disk_);
  });
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  const std::string whom = "CSI driver " + std::string(kName) + ": NodeStageVolume";
  EXPECT_EQ(meanwhile, std::vector<std::string>{whom});
  EXPECT_EQ(awaited_, (std::vector<std::string>{whom, ""}));
}

TEST_F(CsiStageTest, EachCodeOfNodeStageHasItsOutcomeAndNoSecret) {
  ServeNode();
  for (const Code code : AllCodes()) {
    SCOPED_TRACE(static_cast<int>(code));
    Says("NodeStageVolume", code);
    const Status staged = Stage(CsiSpec());
    ASSERT_FALSE(staged.ok());
    EXPECT_EQ(staged.error().code(), code);
    const bool is_open = CsiOutcome(CsiRpcKind::kMutating, code) == Outcome::kMaybeApplied;
    EXPECT_EQ(staged.error().maybe_applied(), is_open);
    EXPECT_THAT(staged.error().message(), HasSubstr(std::string(kName) + ": NodeStageVolume: "));
    EXPECT_THAT(staged.error().message(), Not(HasSubstr("hunter2")));
    // What was refused for good leaves nothing; of the rest the second witness stays.
    EXPECT_EQ(kernel_.Exists(StageDir()), is_open);
    if (is_open) {
      ASSERT_TRUE(Unstage(CsiSpec()).ok());
    }
  }
  EXPECT_TRUE(lies_.empty());
}

TEST_F(CsiStageTest, ARefusalThatLeavesAMountIsOpen) {
  ServeNode();
  Says("NodeStageVolume", Code::kInvalidArgument,
       [this](const Message& request) { Mounts(Field(request, "staging_target_path"), disk_); });
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(staged.error().maybe_applied());
  EXPECT_THAT(staged.error().message(), HasSubstr("/dev/sda is mounted at " + Staging()));
  EXPECT_FALSE(VolDataAt(StageDir()).empty());
}

TEST_F(CsiStageTest, ADriverThatStagesNothingIsNotCalledAndLeavesNoDirectory) {
  ServeNode({});
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  EXPECT_EQ(Row()->staged, StagedState::kNot);
  EXPECT_FALSE(kernel_.Exists(StageDir()));
  ASSERT_TRUE(Unstage(CsiSpec()).ok());
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiStageTest, AnUnknownDriverChangesNothing) {
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().code(), Code::kUnavailable);
  EXPECT_FALSE(staged.error().maybe_applied());
  EXPECT_EQ(staged.error().message(), std::string("driver name ") + kName +
                                          " not found in the list of registered CSI drivers");
  EXPECT_FALSE(kernel_.Exists("/kubelet/plugins"));
}

TEST_F(CsiStageTest, AMissingSecretIsWaitedForAndNothingIsMade) {
  ServeNode();
  parts_.secrets.erase("stage");
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_EQ(staged.error().code(), Code::kUnavailable);
  EXPECT_THAT(staged.error().message(), HasSubstr("the node stage secret secrets/stage"));
  EXPECT_FALSE(kernel_.Exists(StageDir()));
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiStageTest, TheGroupIsSentToADriverThatAppliesIt) {
  ServeNode({NodeCapability::STAGE_UNSTAGE_VOLUME, NodeCapability::VOLUME_MOUNT_GROUP});
  DeviceMounterArgs args;
  args.fs_group = 4711;
  ASSERT_TRUE(Stage(CsiSpec(), args).ok());
  const auto& request = Last<::csi::v1::NodeStageVolumeRequest>("NodeStageVolume");
  EXPECT_EQ(request.volume_capability().mount().volume_mount_group(), "4711");
}

// ---- lies ----

TEST_F(CsiStageTest, TwoMountsOneUponAnotherAreNoStage) {
  ServeNode();
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [this](const Message&) {
    kernel_.AddMount("ext4", "/dev/sda", Staging());
    kernel_.AddMount("ext4", "/dev/sda", Staging());
  });
  ExpectLie(Stage(CsiSpec()).error(), "NodeStageVolume", "2 mounts lie one upon another");
}

TEST_F(CsiStageTest, AStagingPathThatIsGoneIsNoStage) {
  ServeNode();
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume",
                                           [this](const Message&) { kernel_.Remove(Staging()); });
  ExpectLie(Stage(CsiSpec()).error(), "NodeStageVolume", "there is no " + Staging());
}

TEST_F(CsiStageTest, TheDiskOfAnotherStagedVolumeIsNoStage) {
  ServeNode();
  const std::string other = "/kubelet/plugins/kubernetes.io/csi/disk.example.com/other/globalmount";
  DeviceRecord facts;
  facts.key = CsiUniqueName(kName, "vol-2");
  facts.plugin_name = kCsiPluginName;
  facts.spec = SpecName("pv-2");
  facts.device_mount_path = other;
  const uint64_t attempt = Must(devices_->BeginCall(facts, VolumeEvent::kMountDevice));
  Mounts(other, "/dev/sda");
  ASSERT_TRUE(devices_->EndCall(facts.key, attempt, CallAnswer::kDone).ok());
  ExpectLie(Stage(CsiSpec()).error(), "NodeStageVolume",
            "is the disk of the volume that is staged at " + other);
}

// ---- a restart ----

TEST_F(CsiStageTest, AStagedVolumeIsProvenAfterARestartWithoutACall) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  calls_.clear();
  DeviceMounterArgs args;
  args.as_recorded = true;
  EXPECT_TRUE(Stage(CsiSpec(), args).ok());
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiStageTest, AProofThatFailsAfterARestartIsOpenAndNoLie) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  kernel_.UnmountBelow(Staging());
  kernel_.Remove(Staging());
  DeviceMounterArgs args;
  args.as_recorded = true;
  const Status proven = Stage(CsiSpec(), args);
  ASSERT_FALSE(proven.ok());
  EXPECT_TRUE(proven.error().maybe_applied());
  EXPECT_THAT(proven.error().message(), HasSubstr("by its record volume vol-1 is staged at"));
  EXPECT_TRUE(lies_.empty());
}

// ---- unstage ----

TEST_F(CsiStageTest, UnstageRemovesAllThatStageMade) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  const Status done = Unstage(CsiSpec());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_THAT(calls_, ElementsAre("NodeStageVolume", "NodeUnstageVolume"));
  const auto& request = Last<::csi::v1::NodeUnstageVolumeRequest>("NodeUnstageVolume");
  EXPECT_EQ(request.volume_id(), kHandle);
  EXPECT_EQ(request.staging_target_path(), Staging());
  EXPECT_FALSE(kernel_.Exists(StageDir()));
}

TEST_F(CsiStageTest, EachCodeOfNodeUnstageHasItsOutcome) {
  ServeNode();
  for (const Code code : AllCodes()) {
    if (code == Code::kNotFound) continue;
    SCOPED_TRACE(static_cast<int>(code));
    ASSERT_TRUE(Stage(CsiSpec()).ok());
    Says("NodeUnstageVolume", code);
    const Status unstaged = Unstage(CsiSpec());
    ASSERT_FALSE(unstaged.ok());
    EXPECT_EQ(unstaged.error().code(), code);
    EXPECT_EQ(unstaged.error().outcome(), CsiOutcome(CsiRpcKind::kMutating, code));
    EXPECT_FALSE(VolDataAt(StageDir()).empty()) << "the second witness goes with the volume";
    EXPECT_TRUE(kernel_.IsMountPoint(Staging()));
  }
}

TEST_F(CsiStageTest, ADriverThatKnowsNoSuchVolumeHasUnstagedItIfNothingIsMounted) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  kernel_.UnmountBelow(Staging());
  Says("NodeUnstageVolume", Code::kNotFound);
  EXPECT_TRUE(Unstage(CsiSpec()).ok());
  EXPECT_FALSE(kernel_.Exists(StageDir()));
}

TEST_F(CsiStageTest, ADriverThatKnowsNoSuchVolumeLiesIfItIsStillMounted) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  Says("NodeUnstageVolume", Code::kNotFound);
  const Error error = Unstage(CsiSpec()).error();
  ExpectLie(error, "NodeUnstageVolume", Staging() + " is still mounted");
  EXPECT_THAT(error.message(), HasSubstr("said that it knows no volume vol-1"));
}

TEST_F(CsiStageTest, AnUnstageThatLeavesTheMountIsALie) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  Does<::csi::v1::NodeUnstageVolumeResponse>("NodeUnstageVolume", [](const Message&) {});
  ExpectLie(Unstage(CsiSpec()).error(), "NodeUnstageVolume", Staging() + " is still mounted");
  EXPECT_FALSE(VolDataAt(StageDir()).empty());
}

TEST_F(CsiStageTest, WhatWasStagedIsUnstagedThoughItsDriverSaysThatItStagesNothingNow) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  ServeNode({});
  calls_.clear();
  EXPECT_TRUE(Unstage(CsiSpec()).ok());
  EXPECT_THAT(calls_, ElementsAre("NodeUnstageVolume"));
}

TEST_F(CsiStageTest, ADriverThatStagesNothingNowAndCannotUnstageHasNothingToTakeBack) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  ServeNode({});
  kernel_.UnmountBelow(Staging());
  Says("NodeUnstageVolume", Code::kUnimplemented);
  EXPECT_TRUE(Unstage(CsiSpec()).ok());
}

TEST_F(CsiStageTest, WithoutARecordTheFileSaysWhichVolumeItIs) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  const auto unmounter = Must(plugin_->NewDeviceUnmounter());
  const Status done = unmounter->UnmountDevice(StagingPlace(), Call());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(Last<::csi::v1::NodeUnstageVolumeRequest>("NodeUnstageVolume").volume_id(), kHandle);
}

TEST_F(CsiStageTest, WithoutARecordAndAFileWhatIsMountedIsLeftAlone) {
  ServeNode();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  kernel_.Remove(StageDir() + "/vol_data.json");
  calls_.clear();
  const auto unmounter = Must(plugin_->NewDeviceUnmounter());
  const Status done = unmounter->UnmountDevice(StagingPlace(), Call());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(done.error().maybe_applied());
  EXPECT_THAT(done.error().message(), HasSubstr("nothing says of which volume it is"));
  EXPECT_TRUE(kernel_.IsMountPoint(Staging()));
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiStageTest, AVolumeThatAnOlderKubeletStagedKeepsItsPlace) {
  ServeNode();
  const std::string old = "/kubelet/plugins/kubernetes.io/csi/pv/pv-1/globalmount";
  DeviceRecord facts;
  facts.key = CsiUniqueName(kName, kHandle);
  facts.plugin_name = kCsiPluginName;
  facts.spec = SpecName("pv-1");
  facts.device_mount_path = old;
  const uint64_t attempt = Must(devices_->BeginCall(facts, VolumeEvent::kMountDevice));
  ASSERT_TRUE(devices_->EndCall(facts.key, attempt, CallAnswer::kDone).ok());
  const auto mounter = Must(plugin_->NewDeviceMounter());
  EXPECT_EQ(Must(mounter->GetDeviceMountPath(CsiSpec())).Display(), old);
  Mounts(old, disk_);
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  EXPECT_EQ(Last<::csi::v1::NodePublishVolumeRequest>("NodePublishVolume").staging_target_path(),
            old);
}

// Two filesystems wrote to one disk: a pod had it raw, and another one mounted.
TEST_F(CsiStageTest, ADeviceThatPodsHaveRawIsNotStagedAsAnotherVolume) {
  ServeNode();
  const std::string raw = HaveRaw();
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  ExpectLie(staged.error(), "NodeStageVolume", "the device that pods have as volume " + raw);
}

// A btrfs has a number of its own, which no device has.
TEST_F(CsiStageTest, ADeviceThatPodsHaveRawWasStagedAsAnotherVolumesBtrfs) {
  ServeNode();
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [this](const Message& request) {
    kernel_.AddMount("btrfs", disk_, Field(request, "staging_target_path"));
  });
  const std::string raw = HaveRaw();
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  ExpectLie(staged.error(), "NodeStageVolume", "the device that pods have as volume " + raw);
}

}  // namespace
}  // namespace volumed
