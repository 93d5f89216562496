// What a CO deletes that is on the node still, or of which the node has but a row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/csidriver/node_fixture.h"

namespace volumed {
namespace {

using grpc::StatusCode;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeDeleteTest : public NodeFixture {
 protected:
  // What an agent leaves that is killed before it has staged, or after it has unstaged.
  void LeaveLeaseOf(const std::string& node, const std::string& id) {
    const PoolLease lease{node, false, Modes::SINGLE_NODE_WRITER, /*by_stage=*/true};
    const Status taken = volumes_->TakeLease(id, lease, 0);
    ASSERT_TRUE(taken.ok()) << taken.error().ToString();
    EXPECT_THAT(LeasesOf(id), SizeIs(1));
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(ThereIs(kStaging), "");
    EXPECT_FALSE(node_.Exists(kTarget));
    EXPECT_THAT(Loops(), IsEmpty());
    EXPECT_THAT(LoadPodVolumeRecords(store_), IsEmpty());
  }
};

// A volume was deleted, and its loop device left, when its pool had got another path meanwhile.
TEST_F(NodeDeleteTest, AVolumeWasDeletedWhileItsFileWasAttachedUnderAnotherPath) {
  const std::string id = CreateNamed("a");
  const std::string elsewhere = "/mnt/elsewhere";
  node_.AddDirectory(elsewhere);
  Must(node_.DoAside(BindMount{.source = {kPoolPath, ""}, .target = {elsewhere, ""}}));
  const auto attached = std::get<AttachedLoop>(
      Must(node_.DoAside(AttachLoop{.path = {elsewhere, "volumes/" + id + "/image"}})));
  auto opened = std::get<IdentifiedDevice>(
      Must(node_.DoAside(IdentifyDevice{{attached.device.path, ""}, /*pin=*/true})));
  EXPECT_NE(Delete(id), StatusCode::OK) << "somebody has it";
  EXPECT_THAT(message_, HasSubstr(attached.device.path));
  EXPECT_TRUE(node_.Exists(kPoolPath + "/volumes/" + id + "/image"));
  opened.pin.reset();
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_FALSE(node_.Exists(kPoolPath + "/volumes/" + id));
}

// It was said that its storage was another persistent volume's.
TEST_F(NodeDeleteTest, ADeletionOfWhatIsStagedDidNotSayWhereItIs) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(message_,
              HasSubstr("volume " + id + " is in use: it is staged at \"" + kStaging + "\""));
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

// A kubelet that is killed before it unstages never does, and its volume could be deleted by
// nobody, unless the node was started anew.
TEST_F(NodeDeleteTest, AVolumeWhoseStagingSomebodyHadUnmountedCouldNotBeDeleted) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(NodePublishRequest(id)), StatusCode::OK) << message_;
  Must(node_.DoAside(Unmount{{kStaging, ""}}));
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << "a pod has it";
  EXPECT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_FALSE(node_.Exists(kPoolPath + "/volumes/" + id));
  EXPECT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ExpectNothingLeft();
}

// Its staging was taken for one that somebody had unmounted: the row and the lease went, and the
// volume was promised to go.
TEST_F(NodeDeleteTest, AVolumeWhoseStagingWasRenamedForAMomentWasDeleted) {
  const std::string id = CreateNamed("files");
  const std::string staging = kCo + "/claim/stage";
  node_.AddDirectory(staging);
  ASSERT_EQ(StageIt(id, Mount(), staging), StatusCode::OK) << message_;
  node_.Rename(kCo + "/claim", "aside");
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
  node_.Rename(kCo + "/aside", "claim");
  EXPECT_EQ(StageIt(id, Mount(), staging), StatusCode::OK) << message_;
  EXPECT_EQ(UnstageIt(id, staging), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

// Nothing but its staging ended the lease, and nobody stages what is to be deleted.
TEST_F(NodeDeleteTest, ALeaseOfAStagingThatDidNotLiveKeptItsVolumeForEver) {
  for (const char* node : {kThisNode, "the name of the node before"}) {
    const std::string id = CreateNamed("a");
    ASSERT_NO_FATAL_FAILURE(LeaveLeaseOf(node, id));
    EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
    EXPECT_FALSE(node_.Exists(kPoolPath + "/volumes/" + id));
  }
}

// Only with the old name could it be staged or deleted again.
TEST_F(NodeDeleteTest, ANodeThatGotAnotherNameWhileAVolumeWasStagedCouldNotHaveItAnyMore) {
  const std::string id = CreateNamed("a");
  ASSERT_NO_FATAL_FAILURE(LeaveLeaseOf("the name before", id));
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_THAT(LeasesOf(id), SizeIs(1));
  EXPECT_EQ(LeasesOf(id)[0].node, kThisNode);
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  EXPECT_THAT(LeasesOf(id), IsEmpty());
}

// Another node got it while it was mounted here for writing.
TEST_F(NodeDeleteTest, ALeaseWasEndedOfAVolumeThatIsMountedWithoutARow) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_TRUE(
      store_.Remove(kDeviceRecordKind, PoolDeviceName(id).str(), Durability::kProcess).ok());
  opens_pools_ = false;  // it tells that somebody has the device still
  RestartNode();
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
  Must(node_.DoAside(Unmount{{kStaging, ""}}));
  irreversible_.hold = true;
  EXPECT_NE(Delete(id), StatusCode::OK);
  EXPECT_THAT(LeasesOf(id), SizeIs(1)) << "the row may come back";
  irreversible_.hold = false;
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

// Staged as it was, it could not be staged again where it is.
TEST_F(NodeDeleteTest, AStagingWasRefusedToTheSameNodeByAnotherName) {
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id), StatusCode::OK) << message_;
  node_settings_.node = "its new name";
  RestartNode();
  EXPECT_EQ(StageIt(id), StatusCode::OK) << message_;
  ASSERT_THAT(LeasesOf(id), SizeIs(1));
  EXPECT_EQ(LeasesOf(id)[0].node, "its new name");
}

TEST_F(NodeDeleteTest, ALeaseThatAControllerGaveKeepsItsVolume) {
  const std::string id = CreateNamed("a");
  const PoolLease lease{"another", false, Modes::SINGLE_NODE_WRITER, /*by_stage=*/false};
  ASSERT_TRUE(volumes_->TakeLease(id, lease, 0).ok());
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(LeasesOf(id), SizeIs(1));
}

// There is no mount of it that somebody could take away, and a kubelet that was killed never
// unstages it.
TEST_F(NodeDeleteTest, ABlockVolumeThatNobodyUnstagedCouldNotBeDeleted) {
  const std::string id = CreateBlock("raw");
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << "it is attached";
  Must(node_.DoAside(DetachLoops{{kPoolPath, "volumes/" + id + "/image"}}));
  ASSERT_THAT(Loops(), IsEmpty());
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
  EXPECT_FALSE(node_.Exists(kPoolPath + "/volumes/" + id));
  ExpectNothingLeft();
}

// Where its file was said nothing of whoever had its device open.
TEST_F(NodeDeleteTest, ABlockVolumeWhoseFileWasAwayForAMomentWasDeletedUnderWhoeverHadItOpen) {
  const std::string id = CreateBlock("raw");
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  node_.Rename(kPoolPath + "/volumes/" + id, "moved");
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << "it is attached";
  node_.Rename(kPoolPath + "/volumes/moved", id);
  ASSERT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
}

// Its row may still have the device of the publication before.
TEST_F(NodeDeleteTest, ABlockVolumeThatIsStagedAgainIsNotDeletedForTheEndOfItsDeviceBefore) {
  const std::string id = CreateBlock("raw");
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(PublishIt(id, Block()), StatusCode::OK) << message_;
  ASSERT_EQ(UnpublishIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(UnstageIt(id), StatusCode::OK) << message_;
  ASSERT_EQ(StageIt(id, Block()), StatusCode::OK) << message_;
  EXPECT_EQ(Delete(id), StatusCode::FAILED_PRECONDITION) << "it is attached";
  EXPECT_THAT(Loops(), SizeIs(1));
}

// Each worker of the pool stood there.
TEST_F(NodeDeleteTest, ADeletionWaitedForTheFilesystemOfTheStagingPath) {
  const std::string far = kCo + "/far";
  node_.AddDirectory(far + "/stage");
  const std::string id = CreateNamed("a");
  ASSERT_EQ(StageIt(id, Mount(), far + "/stage"), StatusCode::OK) << message_;
  Must(node_.DoAside(Unmount{{far + "/stage", ""}}));
  node_.Hang(far);
  kernel_.calls.clear();
  EXPECT_EQ(Delete(id), StatusCode::DEADLINE_EXCEEDED) << message_;
  EXPECT_THAT(kernel_.Domains(), Each(far)) << "no worker of the pool waits for it";
  node_.Unhang(far);
  EXPECT_EQ(Delete(id), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
