// The Node service from its calls to their answers: a life, each call again and again, out of
// order, over restarts, with places and ids that are none, and beside another node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeRpcsTest : public NodeFixture {
 protected:
  std::string CreateOf(bool is_block) {
    return is_block ? CreateBlock("raw") : CreateNamed("files");
  }
  static Capability CapabilityOf(bool is_block) { return is_block ? Block() : Mount(); }
  // Nothing of any volume is at a place of the CO, or attached.
  void ExpectNothingLeft() {
    EXPECT_EQ(ThereIs(kStaging), "");
    EXPECT_TRUE(node_.Exists(kStaging)) << "the CO has made it";
    EXPECT_FALSE(node_.Exists(kTarget));
    EXPECT_TRUE(node_.Exists(kCo + "/pod-a"));
    EXPECT_THAT(Loops(), IsEmpty());
    EXPECT_THAT(LoadPodVolumeRecords(store_), IsEmpty());
  }
};

TEST_F(NodeRpcsTest, AVolumeIsAtTheCosPlacesAndLeavesNothingThere) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    ASSERT_EQ(StageIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    EXPECT_EQ(ThereIs(kStaging), is_block ? "" : "files");
    EXPECT_THAT(Loops(), SizeIs(1));
    ASSERT_EQ(PublishIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    EXPECT_EQ(ThereIs(kTarget), is_block ? "device" : "files");
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
    ExpectNothingLeft();
    EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
    EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
  }
}

TEST_F(NodeRpcsTest, EachCallIsMadeTenTimes) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    const Capability capability = CapabilityOf(is_block);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
    for (int i = 0; i < 10; ++i) ASSERT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
    EXPECT_THAT(Loops(), SizeIs(1));
    EXPECT_THAT(LeasesOf(id), SizeIs(1));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    for (int i = 0; i < 10; ++i) EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
    ExpectNothingLeft();
    EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  }
}

TEST_F(NodeRpcsTest, APathMayHaveMoreSlashesThanItNeeds) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id, Mount(), kStaging + "//"), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Mount(), kCo + "//pod-a/v/"), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(id), StatusCode::OK) << "the same target: " << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ExpectNothingLeft();
}

// ---- out of order -------------------------------------------------------------------------------

TEST_F(NodeRpcsTest, NothingIsPublishedThatIsNotStagedWhereTheCallSays) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    const Capability capability = CapabilityOf(is_block);
    EXPECT_EQ(PublishIt(id, capability), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(message_, HasSubstr("is not staged"));
    ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
    auto request = NodePublishRequest(id, capability);
    request.set_staging_target_path(kCo + "/stage-b");
    EXPECT_EQ(PublishIt(request), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(message_, HasSubstr("is staged at"));
    request.clear_staging_target_path();
    EXPECT_EQ(PublishIt(request), StatusCode::FAILED_PRECONDITION);
    EXPECT_FALSE(node_.Exists(kTarget));
    ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  }
}

TEST_F(NodeRpcsTest, AVolumeIsNotUnstagedWhileATargetHasIt) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    ASSERT_EQ(StageIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    ASSERT_EQ(PublishIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(message_, HasSubstr(kTarget));
    EXPECT_THAT(LeasesOf(id), SizeIs(1));
    EXPECT_EQ(ThereIs(kTarget), is_block ? "device" : "files");
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  }
}

TEST_F(NodeRpcsTest, ToTakeAwayWhatIsNotThereIsSuccessAndChangesNothing) {
  const std::string id = CreateNamed("a");
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  const std::string mounts = node_.DumpMounts();
  EXPECT_EQ(UnpublishIt(id, kOtherTarget), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id, kCo + "/stage-b"), StatusCode::OK) << "it is staged elsewhere";
  EXPECT_EQ(node_.DumpMounts(), mounts);
  EXPECT_THAT(LeasesOf(id), SizeIs(1)) << "it is staged still";
}

// The volume was unmounted where it is staged, under its targets.
TEST_F(NodeRpcsTest, AnUnpublishOfTheStagingPathUnmountedTheStaging) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    ASSERT_EQ(StageIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    for (const bool is_published : {false, true}) {
      if (is_published) {
        ASSERT_EQ(PublishIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
      }
      const std::string mounts = node_.DumpMounts();
      for (const std::string& path : {kStaging, kCo + "//stage/"}) {
        EXPECT_EQ(UnpublishIt(id, path), StatusCode::FAILED_PRECONDITION) << path;
        EXPECT_THAT(message_, HasSubstr("is staged there"));
      }
      EXPECT_EQ(UnpublishIt(id, kStaging + "/below"), StatusCode::OK) << message_;
      EXPECT_EQ(UnpublishIt(id, kCo + "/pod-a"), StatusCode::OK) << message_;
      EXPECT_EQ(node_.DumpMounts(), mounts);
      EXPECT_TRUE(node_.Exists(kStaging));
    }
    EXPECT_EQ(UnstageIt(id, kTarget), StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(message_, HasSubstr("is published there"));
    EXPECT_EQ(ThereIs(kTarget), is_block ? "device" : "files");
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
    ExpectNothingLeft();
  }
}

// It was said that something else was mounted where the volume is.
TEST_F(NodeRpcsTest, WhileThePoolIsAwayItsVolumeWasTakenForSomethingElse) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_.Rename(kPoolPath, "moved");
  node_.AddDirectory(kPoolPath);
  EXPECT_EQ(StageIt(id), StatusCode::UNAVAILABLE);
  EXPECT_THAT(message_, HasSubstr("another directory is there"));
}

TEST_F(NodeRpcsTest, AVolumeIsStagedAtOnePlaceAndInOneWay) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(id, Mount(), kCo + "/stage-b"), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_EQ(StageIt(id, In(Modes::MULTI_NODE_MULTI_WRITER)), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(StageIt(id, WithFlag("noatime")), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(StageIt(id, Mount("ext4")), StatusCode::OK) << "that is what it is: " << message_;
  EXPECT_EQ(StageIt(id, Mount("xfs")), StatusCode::FAILED_PRECONDITION) << "it is an ext4";
  EXPECT_EQ(StageIt(id, Block()), StatusCode::FAILED_PRECONDITION) << "it has files";
  EXPECT_EQ(PublishIt(id, Block()), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
}

TEST_F(NodeRpcsTest, TwoVolumesAreNotStagedAtOnePlace) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  ASSERT_EQ(StageIt(b), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(b), StatusCode::OK) << "it has a filesystem by now: " << message_;
  ASSERT_EQ(StageIt(a), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(b), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("something else than volume " + b));
  EXPECT_THAT(LeasesOf(b), IsEmpty());
  EXPECT_EQ(UnstageIt(b), StatusCode::OK) << "it is not there";
  EXPECT_EQ(ThereIs(kStaging), "files");
}

TEST_F(NodeRpcsTest, WhatElseIsMountedAtAPlaceStays) {
  const std::string id = CreateNamed("a");
  node_.AddMount("tmpfs", "theirs", kStaging);
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << "it is not staged: " << message_;
  node_.AddMount("tmpfs", "theirs", kTarget);
  ASSERT_EQ(StageIt(id, Mount(), kCo + "/stage-b"), StatusCode::OK) << message_;
  auto request = NodePublishRequest(id);
  request.set_staging_target_path(kCo + "/stage-b");
  EXPECT_EQ(PublishIt(request), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_TRUE(node_.IsMountPoint(kStaging));
  EXPECT_TRUE(node_.IsMountPoint(kTarget));
}

// NOT_FOUND would tell the CO that there is no such volume.
TEST_F(NodeRpcsTest, ADirectoryThatTheCoHasNotMadeIsNoVolumeThatIsNotFound) {
  const std::string id = CreateNamed("a");
  EXPECT_EQ(StageIt(id, Mount(), kCo + "/none"), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("there is no directory"));
  EXPECT_THAT(LeasesOf(id), IsEmpty()) << "nobody will unstage it";
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  const std::string other = CreateNamed("b");
  ASSERT_EQ(StageIt(other), StatusCode::OK) << message_;
  EXPECT_EQ(PublishIt(other, Mount(), kCo + "/none/v"), StatusCode::FAILED_PRECONDITION);
}

// ---- ids and paths ------------------------------------------------------------------------------

TEST_F(NodeRpcsTest, AnIdThatIsNoneIsNotFoundAndLeadsNowhere) {
  const std::string tree = node_.DumpTree("/");
  for (const std::string id :
       {"some-fake-volume-id", "../../etc", "v-../../../../etc/x", "/", ".", "..",
        "v-00000000-0123456789abcdef0123456", "V-00000000-0123456789ABCDEF01234567",
        "s-00000000-0123456789abcdef01234567", "v-00000000-0123456789abcdef01234567/../x"}) {
    EXPECT_EQ(StageIt(id), StatusCode::NOT_FOUND) << id;
    EXPECT_EQ(PublishIt(id), StatusCode::NOT_FOUND) << id;
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << id << message_;
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << id << message_;
  }
  EXPECT_EQ(node_.DumpTree("/"), tree);
}

TEST_F(NodeRpcsTest, AVolumeOfAnotherPoolIsNeverTakenForGone) {
  EXPECT_EQ(StageIt(kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(PublishIt(kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(UnpublishIt(kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(UnstageIt(kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION);
}

TEST_F(NodeRpcsTest, APathOutsideOfTheRootsIsRefusedInEveryCall) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  const std::string tree = node_.DumpTree("/");
  for (const std::string& path :
       {std::string("/etc"), std::string("/"), std::string("relative"), kCo, kCo + "/",
        kCo + "/../x", kCo + "/pod-a/../../etc/x", kCo + "/./x", kCo + "x/v", std::string("/srv"),
        kCo + std::string("/a\0b", 4)}) {
    EXPECT_EQ(StageIt(id, Mount(), path), StatusCode::INVALID_ARGUMENT) << path << message_;
    EXPECT_EQ(PublishIt(id, Mount(), path), StatusCode::INVALID_ARGUMENT) << path << message_;
    EXPECT_EQ(UnpublishIt(id, path), StatusCode::INVALID_ARGUMENT) << path << message_;
    EXPECT_EQ(UnstageIt(id, path), StatusCode::INVALID_ARGUMENT) << path << message_;
    auto request = NodePublishRequest(id);
    request.set_staging_target_path(path);
    EXPECT_EQ(PublishIt(request), StatusCode::INVALID_ARGUMENT) << path << message_;
  }
  EXPECT_EQ(node_.DumpTree("/"), tree);
}

TEST_F(NodeRpcsTest, ALinkBelowARootIsNotFollowed) {
  node_.AddDirectory("/etc/own");
  node_.AddSymlink(kCo + "/link", "/etc/own");
  const std::string id = CreateNamed("a");
  EXPECT_NE(StageIt(id, Mount(), kCo + "/link"), StatusCode::OK);
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_NE(PublishIt(id, Mount(), kCo + "/link/v"), StatusCode::OK);
  EXPECT_FALSE(node_.IsMountPoint("/etc/own"));
  EXPECT_FALSE(node_.Exists("/etc/own/v"));
}

TEST_F(NodeRpcsTest, WhatAnEarlierConfigurationHasLetInIsTakenAway) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  node_settings_.target_roots = {"/opt/other"};
  RestartNode();
  EXPECT_EQ(PublishIt(id, Mount(), kOtherTarget), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ExpectNothingLeft();
}

// ---- restarts -----------------------------------------------------------------------------------

TEST_F(NodeRpcsTest, ANewAgentGoesOnAfterEachCall) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    const Capability capability = CapabilityOf(is_block);
    RestartNode();
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(StageIt(id, capability), StatusCode::OK) << message_;
      RestartNode();
    }
    EXPECT_EQ(StageIt(id, In(Modes::MULTI_NODE_MULTI_WRITER, capability)),
              StatusCode::ALREADY_EXISTS);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(PublishIt(id, capability), StatusCode::OK) << message_;
      RestartNode();
    }
    EXPECT_EQ(PublishIt(id, In(Modes::MULTI_NODE_MULTI_WRITER, capability)),
              StatusCode::ALREADY_EXISTS);
    EXPECT_EQ(ThereIs(kTarget), is_block ? "device" : "files");
    EXPECT_THAT(Loops(), SizeIs(1));
    EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << "the node has it";
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
      RestartNode();
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
      RestartNode();
    }
    ExpectNothingLeft();
    EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  }
}

TEST_F(NodeRpcsTest, AfterARebootItIsStagedAndPublishedAnew) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  node_.Reboot();
  RestartNode("boot-b");
  EXPECT_EQ(PublishIt(id), StatusCode::FAILED_PRECONDITION) << "it is not staged in this boot";
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(ThereIs(kTarget), "files");
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ExpectNothingLeft();
}

TEST_F(NodeRpcsTest, ATargetWhoseRowIsLostIsFoundByTheMountTable) {
  for (const bool is_block : {false, true}) {
    const std::string id = CreateOf(is_block);
    ASSERT_EQ(StageIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    ASSERT_EQ(PublishIt(id, CapabilityOf(is_block)), StatusCode::OK) << message_;
    for (const Record& row : Must(store_.Load(kPodVolumeRecordKind)).records) {
      ASSERT_TRUE(store_.Remove(row.kind, row.key, kPodVolumeRecordDurability).ok());
    }
    RestartNode();
    if (!is_block) {
      EXPECT_EQ(UnstageIt(id), StatusCode::FAILED_PRECONDITION) << "the target shows it";
    }
    EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
    EXPECT_EQ(ThereIs(kTarget), "");
    EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
    EXPECT_THAT(Loops(), IsEmpty());
  }
}

// ---- leases -------------------------------------------------------------------------------------

TEST_F(NodeRpcsTest, StagingTakesALeaseThatKeepsTheVolumeUntilItIsUnstaged) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id),
              ElementsAre(PoolLease{kThisNode, false, Modes::SINGLE_NODE_WRITER, true}));
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id), IsEmpty());
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

TEST_F(NodeRpcsTest, TheLeaseOfAControllerPublishStaysWhenTheNodeUnstages) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(PublishCode(PublishRequest(id)), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ASSERT_THAT(LeasesOf(id), SizeIs(1));
  EXPECT_FALSE(LeasesOf(id).front().by_stage);
}

TEST_F(NodeRpcsTest, AVolumeThatAnotherNodeHasIsNotStagedHere) {
  const std::string id = CreateNamed("a");
  ASSERT_TRUE(volumes_->TakeLease(id, {"n2", false, Modes::SINGLE_NODE_WRITER, false}, 0).ok());
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_, HasSubstr("\"n2\" has it"));
  EXPECT_EQ(StageIt(id, In(Modes::MULTI_NODE_MULTI_WRITER)), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id), SizeIs(1)) << "n2 has it still";
}

TEST_F(NodeRpcsTest, NodesHaveAVolumeTogetherInAModeForSeveral) {
  const std::string id = CreateNamed("a");
  ASSERT_TRUE(
      volumes_->TakeLease(id, {"n2", false, Modes::MULTI_NODE_MULTI_WRITER, false}, 0).ok());
  EXPECT_EQ(StageIt(id), StatusCode::FAILED_PRECONDITION) << "as the only one";
  EXPECT_EQ(StageIt(id, In(Modes::MULTI_NODE_MULTI_WRITER)), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id), SizeIs(2));
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
}

TEST_F(NodeRpcsTest, TheNodeStagesNoMoreVolumesThanItMayHave) {
  node_settings_.most_volumes = 1;
  RestartNode();
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  ASSERT_EQ(StageIt(a), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(b, Mount(), kCo + "/stage-b"), StatusCode::RESOURCE_EXHAUSTED) << message_;
  ASSERT_EQ(UnstageIt(a), StatusCode::OK) << message_;
  EXPECT_EQ(StageIt(b, Mount(), kCo + "/stage-b"), StatusCode::OK) << message_;
}

// A failure that may have had its effect is answered by the inverse, which ends the lease.
TEST_F(NodeRpcsTest, AStageOfWhichNobodyKnowsKeepsItsLeaseUntilItIsUnstaged) {
  const std::string id = CreateNamed("a");
  node_.FailNext("Mount", Error::MaybeApplied(Code::kDeadlineExceeded, "no worker has answered"));
  EXPECT_EQ(StageIt(id), StatusCode::DEADLINE_EXCEEDED) << message_;
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id), IsEmpty());
  EXPECT_THAT(Loops(), IsEmpty());
}

TEST_F(NodeRpcsTest, WhatItsLevelDoesNotKnowIsNotAnnounced) {
  using Rpc = ::csi::v1::NodeServiceCapability::RPC;
  EXPECT_THAT(handlers_->Capabilities().node,
              ElementsAre(Rpc::STAGE_UNSTAGE_VOLUME, Rpc::GET_VOLUME_STATS, Rpc::EXPAND_VOLUME,
                          Rpc::SINGLE_NODE_MULTI_WRITER, Rpc::VOLUME_MOUNT_GROUP));
  EXPECT_EQ(handlers_->Find(*FindCsiMethod("NodeGetVolumeHealth")), nullptr);
}

}  // namespace
}  // namespace volumed
