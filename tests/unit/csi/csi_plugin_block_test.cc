// CSI volumes as raw block devices.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CsiBlockTest : public CsiPluginFixture {
 protected:
  static constexpr const char* kBase = "/kubelet/plugins/kubernetes.io/csi/volumeDevices";
  static std::string Base(const std::string& rest) { return std::string(kBase) + rest; }

  void ServeBlock() {
    ServeNode();
    Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [](const Message&) {});
  }
  void PublishDoes(Deed deed) {
    Does<::csi::v1::NodePublishVolumeResponse>("NodePublishVolume", std::move(deed));
  }
  const VolumeSpec spec_ = CsiBlockSpec();
};

TEST_F(CsiBlockTest, ABlockVolumeIsStagedAndPublishedAtKubeletsPaths) {
  ServeBlock();
  const Result<std::string> staged = SetUpDevice(spec_);
  ASSERT_TRUE(staged.ok()) << staged.error().ToString();
  EXPECT_EQ(*staged, Base("/staging/pv-1"));
  EXPECT_EQ(device_at_call_->staged, StagedState::kStaged);
  EXPECT_TRUE(
      Last<::csi::v1::NodeStageVolumeRequest>("NodeStageVolume").volume_capability().has_block());
  EXPECT_EQ(VolDataAt(Base("/pv-1/data")).at("volumeHandle"), kHandle);
  const Result<std::string> mapped = MapPodDevice(spec_);
  ASSERT_TRUE(mapped.ok()) << mapped.error().ToString();
  EXPECT_EQ(*mapped, Base("/publish/pv-1/uid-1"));
  const auto& request = Last<::csi::v1::NodePublishVolumeRequest>("NodePublishVolume");
  EXPECT_EQ(request.staging_target_path(), Base("/staging/pv-1"));
  EXPECT_TRUE(request.volume_capability().has_block());
}

TEST_F(CsiBlockTest, TheStagingPathIsSentToADriverThatStagesNothingToo) {
  ServeNode({});
  EXPECT_EQ(Must(SetUpDevice(spec_)), "");
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  EXPECT_EQ(Last<::csi::v1::NodePublishVolumeRequest>("NodePublishVolume").staging_target_path(),
            Base("/staging/pv-1"));
  EXPECT_THAT(calls_, ElementsAre("NodePublishVolume"));
}

TEST_F(CsiBlockTest, WhatIsNoBlockDeviceIsALie) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  const std::string target = Base("/publish/pv-1/uid-1");
  PublishDoes([&](const Message&) { kernel_.AddFile(target, ""); });
  ExpectLie(MapPodDevice(spec_).error(), "NodePublishVolume", target + " is a file");
  kernel_.Remove(target);
  lies_.clear();
  PublishDoes([&](const Message&) { kernel_.AddDirectory(target); });
  ExpectLie(MapPodDevice(spec_).error(), "NodePublishVolume", target + " is a directory");
  kernel_.Remove(target);
  lies_.clear();
  PublishDoes([](const Message&) {});
  ExpectLie(MapPodDevice(spec_).error(), "NodePublishVolume", "there is no " + target);
}

TEST_F(CsiBlockTest, EachCodeHasItsOutcome) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  for (int number = 1; number <= 16; ++number) {
    SCOPED_TRACE(number);
    const Code code = CsiCode(number);
    Says("NodePublishVolume", code);
    const Result<std::string> mapped = MapPodDevice(spec_);
    ASSERT_FALSE(mapped.ok());
    EXPECT_EQ(mapped.error().outcome(), CsiOutcome(CsiRpcKind::kMutating, code));
    EXPECT_THAT(mapped.error().message(), testing::Not(HasSubstr("hunter2")));
  }
}

TEST_F(CsiBlockTest, UnmapAndTearDownRemoveAll) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  kernel_.AddDirectory(Base("/pv-1/dev"));
  calls_.clear();
  const auto unmapper = UnmapperOf(spec_);
  const Status unmapped = unmapper->AsCustom()->UnmapPodDevice(Call());
  ASSERT_TRUE(unmapped.ok()) << unmapped.error().ToString();
  EXPECT_FALSE(kernel_.Exists(Base("/publish/pv-1")));
  const Status torn =
      unmapper->AsCustom()->TearDownDevice(CsiBlockMapDir(paths_, SpecName("pv-1")), "", Call());
  ASSERT_TRUE(torn.ok()) << torn.error().ToString();
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_FALSE(kernel_.Exists(Base("/staging/pv-1")));
  EXPECT_FALSE(kernel_.Exists(Base("/pv-1")));
}

TEST_F(CsiBlockTest, ADeviceThatIsLeftAtTheTargetIsALie) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  Does<::csi::v1::NodeUnpublishVolumeResponse>("NodeUnpublishVolume", [](const Message&) {});
  ExpectLie(UnmapperOf(spec_)->AsCustom()->UnmapPodDevice(Call()).error(), "NodeUnpublishVolume",
            "is a block device that it has left");
}

TEST_F(CsiBlockTest, AnEmptyFileThatIsLeftAtTheTargetIsRemoved) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  const std::string target = Base("/publish/pv-1/uid-1");
  Does<::csi::v1::NodeUnpublishVolumeResponse>("NodeUnpublishVolume", [&](const Message&) {
    kernel_.Remove(target);
    kernel_.AddFile(target, "");
  });
  EXPECT_TRUE(UnmapperOf(spec_)->AsCustom()->UnmapPodDevice(Call()).ok());
  EXPECT_FALSE(kernel_.Exists(target));
}

TEST_F(CsiBlockTest, ARestartCostsNoCall) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  calls_.clear();
  const auto mapper = Must(plugin_->NewBlockVolumeMapper(spec_, pod_));
  EXPECT_EQ(Must(mapper->AsCustom()->SetUpDeviceAsRecorded(Call())), Base("/staging/pv-1"));
  EXPECT_EQ(Must(mapper->AsCustom()->MapPodDeviceAsRecorded(Call())), Base("/publish/pv-1/uid-1"));
  EXPECT_THAT(calls_, ElementsAre());
  kernel_.Remove(Base("/publish/pv-1/uid-1"));
  const auto proven = mapper->AsCustom()->MapPodDeviceAsRecorded(Call());
  ASSERT_FALSE(proven.ok());
  EXPECT_TRUE(proven.error().maybe_applied());
  EXPECT_TRUE(lies_.empty());
}

TEST_F(CsiBlockTest, WithoutARecordTheFileSaysWhichVolumeItIs) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  const auto unmapper = Must(plugin_->NewBlockVolumeUnmapper(SpecName("pv-1"), PodUid("uid-1")));
  ASSERT_TRUE(unmapper->AsCustom()->UnmapPodDevice(Call()).ok());
  EXPECT_EQ(Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume").volume_id(),
            kHandle);
}

// A volume that was called "publish" had its devices bound over the targets of one called "dev":
// its pod wrote to the other volume's disk; and its end removed the targets or staging directories
// of all others.
TEST_F(CsiBlockTest, AVolumeThatIsCalledAsTheDirectoryOfAllVolumesGotTheDevicesOfOthers) {
  ServeBlock();
  ASSERT_TRUE(SetUpDevice(spec_).ok());
  ASSERT_TRUE(MapPodDevice(spec_).ok());
  calls_.clear();
  for (const char* name : {"publish", "staging"}) {
    SCOPED_TRACE(name);
    PersistentVolume volume = CsiPersistentVolume();
    volume.metadata.name = name;
    EXPECT_TRUE(plugin_
                    ->NewMounter(CsiSpec(volume),
                                 PodVolumeTarget(paths_, pod_, kCsiPluginName, SpecName(name)))
                    .ok())
        << "with a filesystem it has a place of its own";
    volume.spec.volume_mode = VolumeMode::kBlock;
    const VolumeSpec spec = CsiSpec(volume);
    const auto mapper = plugin_->NewBlockVolumeMapper(spec, pod_);
    const auto recorded = plugin_->NewBlockVolumeUnmapperOf(spec, PodUid(kPodUid));
    const auto found = plugin_->NewBlockVolumeUnmapper(SpecName(name), PodUid(kPodUid));
    ASSERT_FALSE(mapper.ok());
    ASSERT_FALSE(recorded.ok());
    ASSERT_FALSE(found.ok());
    for (const Error& refused : {mapper.error(), recorded.error(), found.error()}) {
      EXPECT_EQ(refused.code(), Code::kInvalidArgument);
      EXPECT_FALSE(refused.maybe_applied());
      EXPECT_THAT(refused.message(), HasSubstr(Base("/" + std::string(name)) +
                                               " is the directory of all block volumes"));
    }
    EXPECT_FALSE(kernel_.Exists(Base("/" + std::string(name) + "/dev")));
  }
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_TRUE(kernel_.Exists(Base("/staging/pv-1")));
  EXPECT_TRUE(kernel_.Exists(Base("/publish/pv-1/uid-1")));
}

}  // namespace
}  // namespace volumed
