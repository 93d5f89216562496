#include "csi/csi_expand.h"

#include "unit/csi/plugin_fixture.h"
#include "volume/expansion_decision.h"

namespace volumed {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
using Request = ::csi::v1::NodeExpandVolumeRequest;

TEST(CsiGrowthTest, AGrowthIsProvenByWhatTheNodeShows) {
  const struct {
    CsiGrowth growth;
    const char* why;  // nullptr: it is proven
  } cases[] = {
      // Nothing but the driver knows the size.
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 0}, nullptr},
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 2}, nullptr},
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 1},
       "said in the same answer that it has 1 bytes"},
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 0, .device_bytes = 2}, nullptr},
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 0, .device_bytes = 3}, nullptr},
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 1, .device_bytes = 2}, nullptr},
      {{.old_bytes = 1, .wanted_bytes = 2, .said_bytes = 2, .device_bytes = 1},
       "its disk has 1 bytes"},
      // An encrypted disk is smaller than the volume.
      {{.old_bytes = 10, .wanted_bytes = 20, .said_bytes = 20, .device_bytes = 19}, nullptr},
      {{.old_bytes = 10, .wanted_bytes = 20, .said_bytes = 0, .device_bytes = 19},
       "its disk has 19 bytes"},
      {{.old_bytes = 1,
        .wanted_bytes = 2,
        .said_bytes = 2,
        .device_bytes = 2,
        .filesystem_is_smaller = true},
       "the filesystem does not fill its disk of 2 bytes"},
  };
  for (const auto& c : cases) {
    const std::optional<std::string> why = WhyNotGrown(c.growth);
    EXPECT_EQ(why.value_or("proven"), c.why == nullptr ? "proven" : c.why);
  }
}

class CsiExpandTest : public CsiPluginFixture {
 protected:
  void ServeGrowing() {
    ServeNode({NodeCapability::STAGE_UNSTAGE_VOLUME, NodeCapability::EXPAND_VOLUME});
    kernel_.ChangeDevice("/dev/sda", [](FakeDevice& disk) { disk.identity.size_bytes = kGi; });
    PutSecretOf("grow-node", "hunter2-grow");
    Grows(2 * kGi, 2 * kGi);
  }
  // To this size, and its filesystem to that one.
  void Grows(int64_t disk, int64_t filesystem) {
    Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [=, this](const Message&) {
      kernel_.ChangeDevice("/dev/sda", [=](FakeDevice& device) {
        device.identity.size_bytes = disk;
        device.fs_bytes = filesystem;
      });
    });
  }
  void StageAndSetUp() {
    ASSERT_TRUE(Stage(CsiSpec()).ok());
    ASSERT_TRUE(Publish(CsiSpec()).ok());
  }
  NodeResizeOptions Options(const VolumeSpec& spec) {
    NodeResizeOptions options{.spec = spec,
                              .device_path = "",
                              .device_mount_path = {},
                              .device_stage_path = {},
                              .new_size = Quantity::FromBytes(2 * kGi),
                              .old_size = Quantity::FromBytes(kGi)};
    options.pod = PodUid(kPodUid);
    if (!IsBlockVolume(spec)) {
      options.device_mount_path = CsiTargetPath(paths_, PodUid(kPodUid), spec.name());
      options.device_stage_path = StagingPlace();
    }
    return options;
  }
  Result<bool> Expand(const VolumeSpec& spec) {
    const auto expand = [&] {
      return plugin_->AsNodeExpandable()->NodeExpand(Options(spec), Call());
    };
    if (!Row()) return expand();  // it is not on the node
    return InDeviceCall<bool>(spec, VolumeEvent::kExpand, expand);
  }
  // The plugin of the next agent, with what is on record.
  void Restart() {
    mounter_.reset();
    plugin_.reset();
    RestartAgent();
    plugin_ = std::make_unique<CsiPlugin>(context_->parts);
    ASSERT_TRUE(plugin_->Init({host_, wrappers_}).ok());
  }
  void ServeGrowingWithoutStaging() {
    ServeNode({NodeCapability::EXPAND_VOLUME});
    PutSecretOf("grow-node", "hunter2-grow");
    Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [](const Message&) {});
  }
};

TEST_F(CsiExpandTest, TheDriverIsAskedForThePodsVolume) {
  ServeGrowing();
  StageAndSetUp();
  const auto done = Expand(CsiSpec());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_TRUE(*done);
  const auto& request = Last<Request>("NodeExpandVolume");
  EXPECT_EQ(request.volume_id(), kHandle);
  EXPECT_EQ(request.volume_path(), Target(CsiSpec()));
  EXPECT_EQ(request.staging_target_path(), Staging());
  EXPECT_EQ(request.capacity_range().required_bytes(), 2 * kGi);
  EXPECT_EQ(request.secrets().at("password"), "hunter2-grow");
  EXPECT_EQ(request.volume_capability().mount().fs_type(), "xfs");
  EXPECT_TRUE(plugin_->AsNodeExpandable()->NeedsPod(CsiSpec()));
}

// The node's own disk was asked, which does not grow with it and may not be opened at all.
TEST_F(CsiExpandTest, AVolumeThatIsADirectoryOfADiskIsAsLargeAsItsDriverSays) {
  ServeGrowing();
  StageAndSetUp();
  Grows(kGi, kGi);
  const SafePath target = CsiTargetPath(paths_, PodUid(kPodUid), CsiSpec().name());
  const SafePath directory = StagingPlace().Below("directory");
  ASSERT_TRUE(kernel_.Call(Unmount{.target = target}, {}).ok());
  ASSERT_TRUE(kernel_.Call(MakeDirectory{.path = directory}, {}).ok());
  ASSERT_TRUE(kernel_.Call(BindMount{.source = directory, .target = target}, {}).ok());
  const auto done = Expand(CsiSpec());
  EXPECT_TRUE(done.ok()) << done.error().ToString();
}

TEST_F(CsiExpandTest, AVolumeWhoseDiskStaysAsItWasIsALie) {
  ServeGrowing();
  StageAndSetUp();
  Grows(kGi, kGi);
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "its disk has 1Gi (1073741824 bytes)");
}

TEST_F(CsiExpandTest, AFilesystemThatWasNotGrownIsALie) {
  ServeGrowing();
  StageAndSetUp();
  Grows(2 * kGi, kGi);
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "the filesystem does not fill its disk");
}

// The pod stayed Ready, and wrote to the node's own disk.
TEST_F(CsiExpandTest, AVolumeThatIsNotMountedAnyMoreIsALie) {
  ServeGrowing();
  StageAndSetUp();
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [this](const Message&) {
    const SafePath target = CsiTargetPath(paths_, PodUid(kPodUid), CsiSpec().name());
    ASSERT_TRUE(kernel_.Call(Unmount{.target = target}, {}).ok());
  });
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "0 mounts are at");
}

// As many mounts were there as before, and the pod stayed Ready with a strange filesystem.
TEST_F(CsiExpandTest, AnotherFilesystemThatADriverMountedInTheVolumesPlaceWasTakenForIt) {
  ServeGrowing();
  StageAndSetUp();
  const std::string target = Target(CsiSpec());
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [&](const Message&) {
    kernel_.UnmountBelow(target);
    kernel_.AddMount("tmpfs", "swapped", target);
  });
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume",
            "what is mounted at " + target + " is swapped, and not what was mounted there before");
  lies_.clear();
  Grows(2 * kGi, 2 * kGi);
  const auto again = Expand(CsiSpec());
  ASSERT_FALSE(again.ok());
  ExpectLie(again.error(), "NodeExpandVolume",
            "what is mounted at " + target + " is swapped, and not /dev/sda that is staged");
}

// It was a lie the first time, and a success half a second later: the other disk was staged anew,
// and taken for the volume's.
TEST_F(CsiExpandTest, AnotherDiskThatAGrowthStagedWasTakenForTheVolumeAtTheNextTry) {
  ServeGrowing();
  StageAndSetUp();
  const std::string target = Target(CsiSpec());
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [&](const Message&) {
    kernel_.UnmountBelow(target);
    kernel_.UnmountBelow(Staging());
    Mounts(Staging(), "/dev/sdb");
    Must(kernel_.Call(BindMount{.source = StagingPlace(), .target = HostPathOf(target)}, {}));
  });
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "and not what was mounted there before");
  for (int agent = 0; agent < 2; ++agent) {
    lies_.clear();
    const Status staged = Stage(CsiSpec());
    ASSERT_FALSE(staged.ok());
    ExpectLie(staged.error(), "NodeStageVolume",
              "what is mounted at " + Staging() +
                  " is /dev/sdb, and not /dev/sda that was there before its growth");
    Restart();
  }
  // The pod leaves, and another one has whatever is staged then.
  ASSERT_TRUE(Unpublish(CsiSpec()).ok());
  ASSERT_TRUE(Unstage(CsiSpec()).ok());
  disk_ = "/dev/sdb";
  StageAndSetUp();
}

// Of a driver that stages nothing there was nothing to hold it against.
TEST_F(CsiExpandTest, AnotherMountThatAGrowthPublishedWasTakenForTheVolumeAtTheNextTry) {
  ServeGrowingWithoutStaging();
  StageAndSetUp();
  const std::string target = Target(CsiSpec());
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [&](const Message&) {
    kernel_.UnmountBelow(target);
    kernel_.AddMount("tmpfs", "tmpfs", target);
  });
  ASSERT_FALSE(Expand(CsiSpec()).ok());
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [](const Message&) {});
  const std::string found =
      "what is mounted at " + target + " is another tmpfs than before its growth";
  for (int agent = 0; agent < 2; ++agent) {
    lies_.clear();
    const auto again = Expand(CsiSpec());
    ASSERT_FALSE(again.ok());
    ExpectLie(again.error(), "NodeExpandVolume", found);
    Restart();
  }
  MounterArgs recorded;
  recorded.as_recorded = true;
  EXPECT_FALSE(Publish(CsiSpec(), recorded).ok());
  lies_.clear();
  const Status published = Publish(CsiSpec());
  ASSERT_FALSE(published.ok());
  ExpectLie(published.error(), "NodePublishVolume", found);
  // The pod leaves, and one of its name comes.
  ASSERT_TRUE(Unpublish(CsiSpec()).ok());
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  EXPECT_TRUE(Expand(CsiSpec()).ok());
}

TEST_F(CsiExpandTest, WhatADriverHasUnmountedAfterAGrowthItMayStageFromAnotherDisk) {
  ServeGrowing();
  StageAndSetUp();
  Says("NodeExpandVolume", Code::kDeadlineExceeded);
  ASSERT_FALSE(Expand(CsiSpec()).ok());
  ASSERT_EQ(Row()->before_growth.size(), 2u);
  Must(kernel_.Call(Unmount{.target = HostPathOf(Target(CsiSpec()))}, {}));
  Must(kernel_.Call(Unmount{.target = StagingPlace()}, {}));
  disk_ = "/dev/sdb";
  StageAndSetUp();
  EXPECT_EQ(Row()->before_growth, std::vector<MountBeforeGrowth>());
}

// A driver that mounts its volume anew one day does so by right.
TEST_F(CsiExpandTest, AGrowthThatWasRefusedIsHeldAgainstNothingThatComesLater) {
  ServeGrowing();
  StageAndSetUp();
  Says("NodeExpandVolume", Code::kInvalidArgument);
  ASSERT_FALSE(Expand(CsiSpec()).ok());
  ASSERT_TRUE(device_at_call_);
  EXPECT_EQ(device_at_call_->before_growth.size(), 2u) << "it is on record before the call";
  EXPECT_EQ(Row()->before_growth, std::vector<MountBeforeGrowth>());
}

TEST_F(CsiExpandTest, ARefusalAfterALieDoesNotMakeTheLieForgotten) {
  ServeGrowingWithoutStaging();
  StageAndSetUp();
  const std::string target = Target(CsiSpec());
  Says("NodeExpandVolume", Code::kInvalidArgument, [&](const Message&) {
    kernel_.UnmountBelow(target);
    kernel_.AddMount("tmpfs", "tmpfs", target);
  });
  ASSERT_FALSE(Expand(CsiSpec()).ok());
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [](const Message&) {});
  const auto again = Expand(CsiSpec());
  ASSERT_FALSE(again.ok());
  ExpectLie(again.error(), "NodeExpandVolume", "is another tmpfs than before its growth");
}

TEST_F(CsiExpandTest, AVolumeThatIsNotStagedAnyMoreIsALie) {
  ServeGrowing();
  StageAndSetUp();
  Does<::csi::v1::NodeExpandVolumeResponse>(
      "NodeExpandVolume", [this](const Message&) { kernel_.UnmountBelow(Staging()); });
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "0 mounts are at " + Staging());
}

TEST_F(CsiExpandTest, OfAVolumeWithoutADiskTheDriversWordCounts) {
  ServeGrowingWithoutStaging();
  StageAndSetUp();
  EXPECT_TRUE(Expand(CsiSpec()).ok());
  EXPECT_EQ(Last<Request>("NodeExpandVolume").staging_target_path(), "");
  ::csi::v1::NodeExpandVolumeResponse less;
  less.set_capacity_bytes(kGi);
  process_->Answer("NodeExpandVolume", less);
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "said in the same answer that it has 1Gi");
}

TEST_F(CsiExpandTest, ADriverThatCannotIsNotAsked) {
  ServeNode();
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kUnimplemented);
  EXPECT_EQ(done.error().outcome(), Outcome::kNotApplied);
  EXPECT_THAT(done.error().message(), testing::HasSubstr("not supported by the CSI driver"));
  EXPECT_EQ(process_->calls("NodeExpandVolume"), 0);
}

TEST_F(CsiExpandTest, AVolumeThatNoPodHasYetWaits) {
  ServeGrowing();
  NodeResizeOptions options = Options(CsiSpec());
  options.csi_volume_phase = CsiVolumePhase::kStaged;
  const auto done = plugin_->AsNodeExpandable()->NodeExpand(options, Call());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kUnavailable);
  EXPECT_EQ(process_->calls("NodeExpandVolume"), 0);
}

TEST_F(CsiExpandTest, WithoutItsSecretItWaits) {
  ServeGrowing();
  parts_.secrets.erase("grow-node");
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kUnavailable);
  EXPECT_EQ(done.error().outcome(), Outcome::kNotApplied);
  EXPECT_EQ(process_->calls("NodeExpandVolume"), 0);
}

// Kubelet takes each failure for a final one.
TEST_F(CsiExpandTest, WhatAFailureMeansIsTheCodes) {
  ServeGrowing();
  StageAndSetUp();
  ExpansionDecision decision;
  decision.recovers = true;
  const struct {
    Code code;
    ExpansionEnd end;
  } cases[] = {
      {Code::kFailedPrecondition, ExpansionEnd::kInUse},
      {Code::kInvalidArgument, ExpansionEnd::kInfeasible},
      {Code::kOutOfRange, ExpansionEnd::kInfeasible},
      {Code::kNotFound, ExpansionEnd::kInfeasible},
      {Code::kPermissionDenied, ExpansionEnd::kFailed},
      {Code::kDeadlineExceeded, ExpansionEnd::kUnknown},
      {Code::kUnavailable, ExpansionEnd::kUnknown},
      {Code::kAborted, ExpansionEnd::kUnknown},
      {Code::kResourceExhausted, ExpansionEnd::kUnknown},
      {Code::kInternal, ExpansionEnd::kUnknown},
      {Code::kUnknown, ExpansionEnd::kUnknown},
  };
  for (const auto& c : cases) {
    Says("NodeExpandVolume", c.code);
    const auto done = Expand(CsiSpec());
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), c.code);
    EXPECT_EQ(ClassifyExpansionFailure(done.error(), decision), c.end) << done.error().ToString();
  }
  Says("NodeExpandVolume", Code::kUnimplemented);
  EXPECT_EQ(ClassifyExpansionFailure(Expand(CsiSpec()).error(), ExpansionDecision{}),
            ExpansionEnd::kDone);
}

TEST_F(CsiExpandTest, ALookAtTheNodeThatFailsLeavesTheOutcomeOpen) {
  ServeGrowing();
  StageAndSetUp();
  kernel_.FailNext("ProbeDevice", Error::NotApplied(Code::kUnavailable, "no worker"));
  const auto done = Expand(CsiSpec());
  ASSERT_FALSE(done.ok());
  EXPECT_TRUE(done.error().maybe_applied());
  EXPECT_TRUE(Expand(CsiSpec()).ok());
}

TEST_F(CsiExpandTest, ABlockVolumeGrowsWhereItIsPublished) {
  ServeGrowing();
  const VolumeSpec spec = CsiBlockSpec();
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [](const Message&) {});
  ASSERT_TRUE(SetUpDevice(spec).ok());
  ASSERT_TRUE(MapPodDevice(spec).ok());
  const auto done = Expand(spec);
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  const auto& request = Last<Request>("NodeExpandVolume");
  EXPECT_EQ(request.volume_path(),
            CsiBlockPublishPath(paths_, spec.name(), PodUid(kPodUid)).Display());
  EXPECT_EQ(request.staging_target_path(), CsiBlockStagingPath(paths_, spec.name()).Display());
  EXPECT_TRUE(request.volume_capability().has_block());
}

// Of a block volume nobody looked whether it was the same device.
TEST_F(CsiExpandTest, AnotherDeviceThatADriverBoundInABlockVolumesPlaceWasTakenForIt) {
  ServeGrowing();
  const VolumeSpec spec = CsiBlockSpec();
  const SafePath target = CsiBlockPublishPath(paths_, spec.name(), PodUid(kPodUid));
  const auto bind = [&](const std::string& device) {
    Must(kernel_.Call(BindMount{.source = HostPathOf(device), .target = target}, {}));
  };
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [](const Message&) {});
  Does<::csi::v1::NodePublishVolumeResponse>("NodePublishVolume", [&](const Message&) {
    kernel_.AddFile(target.Display(), "");
    bind("/dev/sda");
  });
  ASSERT_TRUE(SetUpDevice(spec).ok());
  ASSERT_TRUE(MapPodDevice(spec).ok());
  MappedDeviceRecord mapped;
  mapped.device = kernel_.Device("/dev/sda").identity;
  mapped.path = "/dev/sda";
  ASSERT_TRUE(devices_->SetMapped(CsiUniqueName(kName, kHandle), mapped).ok());
  ASSERT_TRUE(Expand(spec).ok()) << "the same device is there";
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [&](const Message&) {
    kernel_.UnmountBelow(target.Display());
    kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& disk) { disk.identity.size_bytes = 2 * kGi; });
    bind("/dev/sdb");
  });
  const auto done = Expand(spec);
  ASSERT_FALSE(done.ok());
  ExpectLie(done.error(), "NodeExpandVolume", "and not what was mounted there before");
  lies_.clear();
  Does<::csi::v1::NodeExpandVolumeResponse>("NodeExpandVolume", [](const Message&) {});
  const auto again = Expand(spec);
  ASSERT_FALSE(again.ok());
  ExpectLie(again.error(), "NodeExpandVolume",
            target.Display() + " is another device than /dev/sda, which pods were given");
}

}  // namespace
}  // namespace volumed
