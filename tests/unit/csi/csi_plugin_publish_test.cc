// NodePublishVolume and NodeUnpublishVolume of volumes with a filesystem: what the driver is told,
// outcomes, proofs, and what is left on the node.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/csi/plugin_fixture.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CsiPublishTest : public CsiPluginFixture {
 protected:
  static constexpr const char* kDir = "/kubelet/pods/uid-1/volumes/kubernetes.io~csi/pv-1";
  static std::string Mounted() { return std::string(kDir) + "/mount"; }

  void ServeStaged() {
    ServeNode();
    const Status staged = Stage(CsiSpec());
    ASSERT_TRUE(staged.ok()) << staged.error().ToString();
    calls_.clear();
  }
  CsiDriverObject& Object() {
    object_.metadata.name = kName;
    return object_;
  }
  const ::csi::v1::NodePublishVolumeRequest& Request() const {
    return Last<::csi::v1::NodePublishVolumeRequest>("NodePublishVolume");
  }
  static std::vector<Code> AllCodes() {
    std::vector<Code> codes;
    for (int code = 1; code <= 16; ++code) codes.push_back(CsiCode(code));
    return codes;
  }
  // The driver's publish does something else, and succeeds.
  void PublishDoes(Deed deed) {
    Does<::csi::v1::NodePublishVolumeResponse>("NodePublishVolume", std::move(deed));
  }
  void UnpublishDoes(Deed deed) {
    Does<::csi::v1::NodeUnpublishVolumeResponse>("NodeUnpublishVolume", std::move(deed));
  }

  CsiDriverObject object_;
};

TEST_F(CsiPublishTest, AStagedVolumeIsPublishedFromItsStagingPath) {
  ServeStaged();
  StringMap file;
  PublishDoes([&](const Message& request) {
    file = VolDataAt(kDir);
    EXPECT_FALSE(kernel_.Exists(Mounted())) << "the driver makes the target";
    Publishes(static_cast<const ::csi::v1::NodePublishVolumeRequest&>(request));
  });
  const Status done = Publish(CsiSpec());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(mounter_->GetPath(), Mounted());
  EXPECT_EQ(Request().staging_target_path(), Staging());
  EXPECT_EQ(Request().target_path(), Mounted());
  EXPECT_EQ(Request().secrets().at("password"), "hunter2-publish");
  EXPECT_FALSE(Request().readonly());
  EXPECT_EQ(file.at("specVolID"), "pv-1");
  EXPECT_EQ(file.at("volumeLifecycleMode"), "Persistent");
  EXPECT_EQ(file.at("nodeName"), "node");
  EXPECT_TRUE(mounter_->GetAttributes().managed);
  EXPECT_EQ(mounter_->freshness(), std::nullopt);
}

TEST_F(CsiPublishTest, AVolumeThatIsNotStagedHasNoStagingPath) {
  ServeNode({});
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  EXPECT_EQ(Request().staging_target_path(), "");
}

TEST_F(CsiPublishTest, WhatAReleaseThatStagedHasLeftIsNoOtherVolumesWhenTheNextOneStagesNothing) {
  ServeStaged();
  ServeNode({});
  PublishDoes([&](const Message& request) { Mounts(Field(request, "target_path"), disk_); });
  const Status done = Publish(CsiSpec());
  EXPECT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(Request().staging_target_path(), "");
  EXPECT_TRUE(kernel_.IsMountPoint(Staging())) << "it is unstaged when the last pod has left";
  EXPECT_TRUE(lies_.empty());
}

TEST_F(CsiPublishTest, EachCodeOfNodePublishHasItsOutcomeAndNoSecret) {
  ServeStaged();
  for (const Code code : AllCodes()) {
    SCOPED_TRACE(static_cast<int>(code));
    Says("NodePublishVolume", code);
    const Status published = Publish(CsiSpec());
    ASSERT_FALSE(published.ok());
    EXPECT_EQ(published.error().code(), code);
    const bool is_open = CsiOutcome(CsiRpcKind::kMutating, code) == Outcome::kMaybeApplied;
    EXPECT_EQ(published.error().maybe_applied(), is_open);
    EXPECT_THAT(published.error().message(), Not(HasSubstr("hunter2")));
    EXPECT_EQ(kernel_.Exists(kDir), is_open);
    if (is_open) {
      ASSERT_TRUE(Unpublish(CsiSpec()).ok());
    }
  }
}

TEST_F(CsiPublishTest, AVolumeThatWasSetUpIsLeftAsItIsWhenItCannotBePublishedAnew) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  Says("NodePublishVolume", Code::kInvalidArgument);
  MounterArgs args;
  args.is_remount = true;
  const Status again = Publish(CsiSpec(), args);
  ASSERT_FALSE(again.ok());
  EXPECT_FALSE(again.error().maybe_applied());
  EXPECT_TRUE(kernel_.IsMountPoint(Mounted()));
  EXPECT_FALSE(VolDataAt(kDir).empty());
}

TEST_F(CsiPublishTest, AVolumeIsProvenAfterARestartWithoutACall) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  calls_.clear();
  MounterArgs args;
  args.as_recorded = true;
  EXPECT_TRUE(Publish(CsiSpec(), args).ok());
  EXPECT_THAT(calls_, ElementsAre());
  kernel_.UnmountBelow(Mounted());
  const Status proven = Publish(CsiSpec(), args);
  ASSERT_FALSE(proven.ok());
  EXPECT_TRUE(proven.error().maybe_applied());
  EXPECT_THAT(proven.error().message(), HasSubstr("by its record volume vol-1 is published at " +
                                                  Mounted() + ", and nothing is mounted at"));
  EXPECT_TRUE(lies_.empty());
}

// ---- what the CSIDriver says ----

TEST_F(CsiPublishTest, ThePodIsNamedToADriverThatAsksForIt) {
  ServeStaged();
  Object().pod_info_on_mount = true;
  kubelet_.Put(object_);
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  const auto& context = Request().volume_context();
  EXPECT_EQ(context.at("csi.storage.k8s.io/pod.name"), "web");
  EXPECT_EQ(context.at("csi.storage.k8s.io/pod.namespace"), "shop");
  EXPECT_EQ(context.at("csi.storage.k8s.io/pod.uid"), "uid-1");
  EXPECT_EQ(context.at("csi.storage.k8s.io/serviceAccount.name"), "robot");
  EXPECT_EQ(context.at("csi.storage.k8s.io/ephemeral"), "false");
}

TEST_F(CsiPublishTest, TokensGoIntoTheContextOrAmongTheSecrets) {
  ServeStaged();
  Object().token_requests = {{"aud", 600}};
  kubelet_.Put(object_);
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  const char* key = "csi.storage.k8s.io/serviceAccount.tokens";
  EXPECT_THAT(Request().volume_context().at(key), HasSubstr("\"aud\""));
  EXPECT_EQ(parts_.tokens_issued, 1);
  Object().service_account_token_in_secrets = true;
  kubelet_.Put(object_);
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  EXPECT_EQ(Request().volume_context().count(key), 0u);
  EXPECT_THAT(Request().secrets().at(key), HasSubstr("\"aud\""));
}

TEST_F(CsiPublishTest, AVolumeThatIsToBePublishedAnewIsDueAfterThePeriod) {
  ServeStaged();
  Object().requires_republish = true;
  kubelet_.Put(object_);
  EXPECT_TRUE(plugin_->RequiresRemount(CsiSpec()));
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  ASSERT_TRUE(mounter_->freshness().has_value());
  EXPECT_EQ(mounter_->freshness()->until_unix_ms - mounter_->freshness()->from_unix_ms, 60'000);
}

TEST_F(CsiPublishTest, ATokenWithoutRepublishIsDueWhenItIsRefreshed) {
  ServeStaged();
  Object().token_requests = {{"aud", 600}};
  kubelet_.Put(object_);
  EXPECT_FALSE(plugin_->RequiresRemount(CsiSpec()));
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  EXPECT_EQ(mounter_->freshness()->until_unix_ms, int64_t{1} << 50);
}

TEST_F(CsiPublishTest, AnUnknownCsiDriverIsWaitedFor) {
  ServeStaged();
  kubelet_.synced = false;
  const Status done = Publish(CsiSpec());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kUnavailable);
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_FALSE(kernel_.Exists(kDir));
}

TEST_F(CsiPublishTest, AnInlineVolumeNeedsADriverThatAllowsIt) {
  ServeNode({});
  const Status refused = Publish(CsiInlineSpec());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("volume mode \"Ephemeral\" not supported by driver"));
  Object().volume_lifecycle_modes = {VolumeLifecycleMode::kEphemeral};
  Object().pod_info_on_mount = true;
  kubelet_.Put(object_);
  const Status done = Publish(CsiInlineSpec());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(Request().volume_id(), CsiInlineHandle(PodUid("uid-1"), SpecName("scratch")));
  EXPECT_EQ(Request().volume_context().at("csi.storage.k8s.io/ephemeral"), "true");
  EXPECT_EQ(Request().staging_target_path(), "");
  EXPECT_EQ(Request().secrets().at("password"), "hunter2-publish");
  EXPECT_FALSE(Must(plugin_->CanDeviceMount(CsiInlineSpec())));
  ASSERT_TRUE(Unpublish(CsiInlineSpec()).ok());
  EXPECT_EQ(Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume").volume_id(),
            Request().volume_id());
}

TEST_F(CsiPublishTest, TheGroupIsGivenByTheAgentUnlessTheDriverDoes) {
  ServeStaged();
  MounterArgs args;
  args.fs_group = 4711;
  ASSERT_TRUE(Publish(CsiSpec(), args).ok());
  EXPECT_EQ(kernel_.Find(Mounted()).gid, 4711u);
  EXPECT_EQ(Request().volume_capability().mount().volume_mount_group(), "");
}

TEST_F(CsiPublishTest, AGroupThatTheDriverGivesIsSentAndNothingIsWalked) {
  ServeNode({NodeCapability::STAGE_UNSTAGE_VOLUME, NodeCapability::VOLUME_MOUNT_GROUP});
  object_.metadata.name = kName;
  object_.fs_group_policy = FsGroupPolicy::kFile;  // it would be given by the agent, else
  kubelet_.Put(object_);
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  MounterArgs args;
  args.fs_group = 4711;
  const uint32_t before = kernel_.Find(Staging()).mode;
  ASSERT_TRUE(Publish(CsiSpec(), args).ok());
  EXPECT_EQ(Request().volume_capability().mount().volume_mount_group(), "4711");
  EXPECT_NE(kernel_.Find(Mounted()).gid, 4711u);
  EXPECT_EQ(kernel_.Find(Mounted()).mode, before);
  EXPECT_THAT(kernel_.CallLogText(), Not(HasSubstr("ChangeOwnership")));
  // The same without the capability walks: the log would tell.
  ServeNode({NodeCapability::STAGE_UNSTAGE_VOLUME});
  ASSERT_TRUE(Publish(CsiSpec(), args).ok());
  EXPECT_EQ(kernel_.Find(Mounted()).gid, 4711u);
  EXPECT_THAT(kernel_.CallLogText(), HasSubstr("ChangeOwnership"));
}

// Of local volumes alone a pod was told that it shares one with a pod of another group.
TEST_F(CsiPublishTest, TheFilesOfOnePodsGroupWentToAnothersAndNobodyWasTold) {
  ServeStaged();
  MounterArgs args;
  args.fs_group = 2000;
  ASSERT_TRUE(Publish(CsiSpec(), args).ok());
  EXPECT_TRUE(parts_.events.empty());
  Pod other = CsiPod();
  other.metadata.uid = "uid-2";
  pod_ = std::make_shared<const Pod>(std::move(other));
  args.fs_group = 3000;
  ASSERT_TRUE(Publish(CsiSpec(), args).ok());
  EXPECT_EQ(kernel_.Find(Mounted()).gid, 3000u);
  EXPECT_THAT(parts_.events,
              ElementsAre("uid-2 AlreadyMountedVolume The requested fsGroup is 3000, but the "
                          "volume pv-1 has GID 2000. The volume may not be shareable."));
}

TEST_F(CsiPublishTest, AGroupThatCannotBeGivenLeavesThePublishOpen) {
  ServeStaged();
  kernel_.FailNext("ChangeOwnership", Error::NotApplied(Code::kPermissionDenied, "EPERM"));
  MounterArgs args;
  args.fs_group = 4711;
  const Status done = Publish(CsiSpec(), args);
  ASSERT_FALSE(done.ok());
  EXPECT_TRUE(done.error().maybe_applied());
  EXPECT_THAT(done.error().message(), HasSubstr("applyFSGroup failed for vol vol-1"));
  EXPECT_TRUE(kernel_.IsMountPoint(Mounted()));
}

TEST_F(CsiPublishTest, ALabelIsAMountOptionOfStageAndPublishAndIsInBothFiles) {
  ServeNode();
  CsiDriverObject& object = Object();
  object.se_linux_mount = true;
  kubelet_.Put(object_);
  const std::string label = "system_u:object_r:container_file_t:s0:c1,c2";
  DeviceMounterArgs stage;
  stage.selinux_label = label;
  ASSERT_TRUE(Stage(CsiSpec(), stage).ok());
  EXPECT_THAT(Last<::csi::v1::NodeStageVolumeRequest>("NodeStageVolume")
                  .volume_capability()
                  .mount()
                  .mount_flags(),
              testing::Contains("context=\"" + label + "\""));
  MounterArgs publish;
  publish.selinux_label = label;
  ASSERT_TRUE(Publish(CsiSpec(), publish).ok());
  EXPECT_THAT(Request().volume_capability().mount().mount_flags(),
              testing::Contains("context=\"" + label + "\""));
  EXPECT_EQ(VolDataAt(kDir).at("seLinuxMountContext"), label);
  EXPECT_FALSE(mounter_->GetAttributes().selinux_relabel);
}

// ---- lies ----

TEST_F(CsiPublishTest, APublishWithoutAMountIsALie) {
  ServeStaged();
  PublishDoes([this](const Message&) { kernel_.AddDirectory(Mounted()); });
  ExpectLie(Publish(CsiSpec()).error(), "NodePublishVolume", "nothing is mounted at " + Mounted());
}

TEST_F(CsiPublishTest, APlainDirectoryWillDoForADriverThatIsAllowedTo) {
  ServeStaged();
  plugin_settings_.Set({.plain_directories = {kName}});
  PublishDoes([this](const Message&) { kernel_.AddDirectory(Mounted()); });
  EXPECT_TRUE(Publish(CsiSpec()).ok());
}

TEST_F(CsiPublishTest, APublishWithoutATargetIsALie) {
  ServeStaged();
  PublishDoes([](const Message&) {});
  ExpectLie(Publish(CsiSpec()).error(), "NodePublishVolume", "there is no " + Mounted());
}

TEST_F(CsiPublishTest, AMountElsewhereIsALie) {
  ServeStaged();
  PublishDoes([this](const Message&) { Mounts("/somewhere/else", "/dev/sda"); });
  ExpectLie(Publish(CsiSpec()).error(), "NodePublishVolume", "there is no " + Mounted());
}

TEST_F(CsiPublishTest, AnotherDiskThanTheStagedOneIsALie) {
  ServeStaged();
  PublishDoes([this](const Message&) { Mounts(Mounted(), "/dev/sdb"); });
  ExpectLie(Publish(CsiSpec()).error(), "NodePublishVolume",
            "is /dev/sdb, and not /dev/sda that is staged");
}

TEST_F(CsiPublishTest, AWritableMountOfAVolumeThatIsToBeReadIsALie) {
  ServeStaged();
  PublishDoes([this](const Message& request) {
    auto writable = static_cast<const ::csi::v1::NodePublishVolumeRequest&>(request);
    EXPECT_TRUE(writable.readonly());
    writable.set_readonly(false);
    Publishes(writable);
  });
  ExpectLie(Publish(CsiSpec(CsiPersistentVolume(), true)).error(), "NodePublishVolume",
            "can be written to, though it was to be read-only");
}

TEST_F(CsiPublishTest, TwoMountsOneUponAnotherAreALie) {
  ServeStaged();
  PublishDoes([this](const Message&) {
    kernel_.AddMount("tmpfs", "tmpfs", Mounted());
    kernel_.AddMount("tmpfs", "tmpfs", Mounted());
  });
  ExpectLie(Publish(CsiSpec()).error(), "NodePublishVolume", "2 mounts lie one upon another");
}

TEST_F(CsiPublishTest, ASecretInTheSourceOfAMountIsNotInTheTextOfALie) {
  ServeStaged();
  PublishDoes([this](const Message&) {
    kernel_.AddMount("cifs", "//u:hunter2-stage@nas/share", Mounted());
  });
  ExpectLie(Publish(CsiSpec()).error(), "NodePublishVolume", "//u:***stripped***@nas/share");
}

TEST_F(CsiPublishTest, CallsAboutAVolumeOfAReplacedSourceAreMarkedAsThat) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  EXPECT_EQ(process_->migrated_calls(), 0);
  const VolumeSpec plain = CsiSpec();
  ASSERT_TRUE(Unpublish(plain).ok());
  ASSERT_TRUE(Publish(plain.WithCsiMigration()).ok());
  EXPECT_EQ(process_->migrated_calls(), 1);
}

TEST_F(CsiPublishTest, TheAgentsOwnDirectoryIsALie) {
  ServeNode({});
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  PublishDoes([this](const Message&) {
    kernel_.AddDirectory(Mounted());
    Must(kernel_.Call(BindMount{.source = {"/", "kubelet"}, .target = HostPathOf(Mounted())}, {}));
  });
  const Error error = Publish(CsiSpec()).error();
  EXPECT_THAT(error.message(), HasSubstr("the agent's own directory"));
}

TEST_F(CsiPublishTest, AfterALieTheVolumeIsTakenAwayByTheDriver) {
  ServeStaged();
  PublishDoes([this](const Message&) { Mounts(Mounted(), "/dev/sdb"); });
  ASSERT_FALSE(Publish(CsiSpec()).ok());
  ASSERT_TRUE(Unpublish(CsiSpec()).ok());
  EXPECT_FALSE(kernel_.Exists(kDir));
}

// ---- unpublish ----

TEST_F(CsiPublishTest, UnpublishRemovesAllThatPublishMade) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  // It leaves the directory, as many do.
  UnpublishDoes([this](const Message&) { kernel_.UnmountBelow(Mounted()); });
  const Status done = Unpublish(CsiSpec());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_FALSE(kernel_.Exists(kDir));
  const auto& request = Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume");
  EXPECT_EQ(request.volume_id(), kHandle);
  EXPECT_EQ(request.target_path(), Mounted());
}

TEST_F(CsiPublishTest, EachCodeOfNodeUnpublishHasItsOutcome) {
  ServeStaged();
  for (const Code code : AllCodes()) {
    if (code == Code::kNotFound) continue;
    SCOPED_TRACE(static_cast<int>(code));
    ASSERT_TRUE(Publish(CsiSpec()).ok());
    Says("NodeUnpublishVolume", code);
    const Status done = Unpublish(CsiSpec());
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), code);
    EXPECT_EQ(done.error().outcome(), CsiOutcome(CsiRpcKind::kMutating, code));
    EXPECT_FALSE(VolDataAt(kDir).empty());
    EXPECT_TRUE(kernel_.IsMountPoint(Mounted()));
  }
}

TEST_F(CsiPublishTest, AnUnpublishThatLeavesTheMountIsALie) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  UnpublishDoes([](const Message&) {});
  ExpectLie(Unpublish(CsiSpec()).error(), "NodeUnpublishVolume", Mounted() + " is still mounted");
}

TEST_F(CsiPublishTest, AnUnpublishThatTakesOneLayerOfTwoIsALie) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  kernel_.AddMount("tmpfs", "tmpfs", Mounted());
  kernel_.AddMount("tmpfs", "tmpfs", Mounted());
  UnpublishDoes(
      [this](const Message&) { Must(kernel_.Call(Unmount{.target = HostPathOf(Mounted())}, {})); });
  ExpectLie(Unpublish(CsiSpec()).error(), "NodeUnpublishVolume", "is still mounted (2 layers)");
}

TEST_F(CsiPublishTest, ADirectoryThatIsNotEmptyAfterwardsIsALieAndStays) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  UnpublishDoes([this](const Message&) {
    kernel_.UnmountBelow(Mounted());
    kernel_.AddFile(Mounted() + "/left", "x");
  });
  ExpectLie(Unpublish(CsiSpec()).error(), "NodeUnpublishVolume", Mounted() + " is not empty");
  EXPECT_TRUE(kernel_.Exists(Mounted() + "/left"));
  EXPECT_FALSE(VolDataAt(kDir).empty());
}

TEST_F(CsiPublishTest, ADriverThatKnowsNoSuchVolumeHasUnpublishedItIfNothingIsMounted) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  Says("NodeUnpublishVolume", Code::kNotFound);
  ExpectLie(Unpublish(CsiSpec()).error(), "NodeUnpublishVolume", Mounted() + " is still mounted");
  kernel_.UnmountBelow(Mounted());
  EXPECT_TRUE(Unpublish(CsiSpec()).ok());
  EXPECT_FALSE(kernel_.Exists(kDir));
}

TEST_F(CsiPublishTest, WithoutARecordTheFileSaysWhichVolumeItIs) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  ASSERT_TRUE(Unpublish(CsiSpec(), /*recorded=*/false).ok());
  EXPECT_EQ(Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume").volume_id(),
            kHandle);
}

TEST_F(CsiPublishTest, TheRecordCountsMoreThanTheFile) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  kernel_.AddFile(std::string(kDir) + "/vol_data.json",
                  R"({"driverName":"other.example.com","volumeHandle":"vol-9"})");
  ASSERT_TRUE(Unpublish(CsiSpec()).ok());
  EXPECT_EQ(Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume").volume_id(),
            kHandle);
}

TEST_F(CsiPublishTest, WithoutARecordAndAFileWhatIsMountedIsLeftAlone) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  calls_.clear();
  for (const bool is_there : {true, false}) {
    if (is_there) {
      kernel_.AddFile(std::string(kDir) + "/vol_data.json", "");
    } else {
      kernel_.Remove(std::string(kDir) + "/vol_data.json");
    }
    const Status done = Unpublish(CsiSpec(), /*recorded=*/false);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(done.error().maybe_applied());
  }
  EXPECT_TRUE(kernel_.IsMountPoint(Mounted()));
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiPublishTest, AMountThatHangsIsAskedNothing) {
  ServeStaged();
  ASSERT_TRUE(Publish(CsiSpec()).ok());
  kernel_.Hang(Mounted());
  UnpublishDoes([this](const Message&) {
    kernel_.Unhang(Mounted());
    Clears(*asked_.at("NodeUnpublishVolume"), "target_path");
  });
  const TimePoint begun = clock_.Now();
  EXPECT_TRUE(Unpublish(CsiSpec()).ok());
  EXPECT_LT(clock_.Now() - begun, seconds(1));
}

}  // namespace
}  // namespace volumed
