// Teardown of pods' volumes, and the removal of pods once they have none.
#include <cerrno>

#include "unit/operation/node_volume_operations_fixture.h"
#include "unit/operation/usual_errors.h"

namespace volumed {
namespace {

TEST_F(NodeVolumeOperationsTest, ATeardownGoesOnWhereTheDirectoriesOfSubPathsCannotGo) {
  MountRequest request = Request();
  request.sub_paths = {{.container = "app", .index = 0, .sub_path = "logs"}};
  ASSERT_TRUE(Mount(request).value);
  kernel_.FailNextBelow("RemoveDirectory", kPodDir + "/volume-subpaths",
                        Error::FromErrno(EROFS, "remove directory", Outcome::kNotApplied));
  const auto failure = Unmount();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "CleanSubPaths");
  EXPECT_EQ(script_.tear_downs, 1);
  EXPECT_EQ(StoredState(), "TearingDown*");
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(StoredState(), "none");
}

TEST_F(NodeVolumeOperationsTest, ATeardownDoesNotBeginWhileSubPathsStay) {
  MountRequest request = Request();
  request.sub_paths = {{.container = "app", .index = 0, .sub_path = "logs"}};
  ASSERT_TRUE(Mount(request).value);
  kernel_.FailNext("Unmount", kRefusal);
  const auto failure = Unmount();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "UnmountSubPaths");
  EXPECT_EQ(script_.tear_downs, 0);
  EXPECT_EQ(StoredState(), "TearingDown*");
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(StoredState(), "none");
}

TEST_F(NodeVolumeOperationsTest, ARefusedTeardownIsToldAndTriedAgain) {
  ASSERT_TRUE(Mount().value);
  script_.tear_down_error = kTimedOut;
  const auto failure = Unmount();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->operation, "volume_unmount");
  EXPECT_EQ(failure->step, "TearDown");
  EXPECT_TRUE(parts_.events.empty());  // kubelet has no event for it
  EXPECT_EQ(StoredState(), "TearingDown*");
  script_.tear_down_error.reset();
  ASSERT_FALSE(Unmount());
}

TEST_F(NodeVolumeOperationsTest, AFullDiskStopsSetUpBeforeItsEffectAndNoTeardown) {
  store_.FailNext(kDiskFull, 1);
  const auto outcome = Mount();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->step, "RecordIntent");
  EXPECT_FALSE(outcome.failure->error.maybe_applied());
  EXPECT_EQ(kernel_.call_count(), 0u);

  ASSERT_TRUE(Mount().value);
  store_.FailNext(kDiskFull, 1000);
  ASSERT_FALSE(Unmount());
  EXPECT_FALSE(kernel_.Exists(kVolumeDir));
  EXPECT_EQ(StoredState(), "SetUp");  // what a restart would find, and take down again
  const auto removal = RemovePod();
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->step, "RemovePodRecord");
  EXPECT_FALSE(kernel_.Exists(kPodDir));
}

TEST_F(NodeVolumeOperationsTest, AfterAFullDiskTheRowsGoWithThePod) {
  ASSERT_TRUE(Mount().value);
  store_.FailNext(kDiskFull, 2);
  ASSERT_FALSE(Unmount());
  ASSERT_FALSE(RemovePod());
  EXPECT_TRUE(store_.All().empty());
}

TEST_F(NodeVolumeOperationsTest, RemovesThePodAndItsRecord) {
  ASSERT_TRUE(
      store_
          .Put(EncodeRecord(PodRecord{.uid = PodUid("uid-1"), .name = "web"}), kPodRecordDurability)
          .ok());
  ASSERT_TRUE(Mount().value);
  auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "CheckVolumes");
  EXPECT_NE(failure->error.message().find("\"data\" is still SetUp"), std::string::npos);
  EXPECT_TRUE(kernel_.IsMountPoint(kVolumeDir));

  ASSERT_FALSE(Unmount());
  failure = RemovePod();
  ASSERT_FALSE(failure) << failure->error.ToString();
  EXPECT_FALSE(kernel_.Exists(kPodDir));
  EXPECT_TRUE(store_.All().empty());
}

TEST_F(NodeVolumeOperationsTest, TheRecordOfADeletionByCommandStaysWhenTheDirectoriesGo) {
  const PodRecord deleted{.uid = PodUid("uid-1"), .name = "web", .terminating = true};
  ASSERT_TRUE(store_.Put(EncodeRecord(deleted), kPodRecordDurability).ok());
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  ASSERT_FALSE(RemovePod(PodRecordEnd::kKeep));
  EXPECT_FALSE(kernel_.Exists(kPodDir));
  ASSERT_EQ(store_.All().size(), 1u);
  EXPECT_EQ(store_.All()[0], EncodeRecord(deleted));
}

TEST_F(NodeVolumeOperationsTest, APodsRecordStaysAsLongAsForeignFilesDo) {
  ASSERT_TRUE(
      store_
          .Put(EncodeRecord(PodRecord{.uid = PodUid("uid-1"), .name = "web"}), kPodRecordDurability)
          .ok());
  kernel_.AddFile(kPodDir + "/notes.txt", "mine");
  const auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "RemovePodDirectories");
  EXPECT_NE(failure->error.message().find("notes.txt"), std::string::npos);
  EXPECT_EQ(store_.All().size(), 1u);
}

// It said that a directory is not empty, and below that was a volume of which no record told.
TEST_F(NodeVolumeOperationsTest, APodsRemovalDidNotNameTheMountThatItsDirectoryWaitsFor) {
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  UnrecordedMount lost;
  lost.plugin = kScriptedPlugin;
  lost.spec = SpecName("lost");
  lost.pod = PodUid("uid-1");
  lost.places = {kPodDir + "/volumes/kubernetes.io~csi/lost/mount"};
  kernel_.AddDirectory(lost.places.front(), 0750);
  kernel_.AddMount("ext4", "/dev/sdb", lost.places.front());
  kernel_.AddFile(kPodDir + "/volumes/kubernetes.io~csi/lost/vol_data.json", "{}");
  unrecorded_->Set({lost});
  const auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "RemovePodDirectories");
  EXPECT_EQ(failure->error.message().find("volume lost is mounted in pod uid-1, of which no record "
                                          "tells: " +
                                          lost.places.front()),
            0u)
      << failure->error.message();
  EXPECT_EQ(failure->error.message().find("start the agent anew"), std::string::npos)
      << "it goes on by itself: " << failure->error.message();
  EXPECT_TRUE(failure->error.IsAbout(kAboutUnrecordedMount));
  EXPECT_TRUE(kernel_.IsMountPoint(lost.places.front()));
}

// Neither the binds of the device were named nor that a start is needed after their unmount, so
// the link was removed by hand.
TEST_F(NodeVolumeOperationsTest, APodsRemovalDidNotNameTheBindsOfALostBlockVolume) {
  ASSERT_TRUE(Mount().value);
  ASSERT_FALSE(Unmount());
  UnrecordedMount lost;
  lost.plugin = kScriptedPlugin;
  lost.volume = UniqueVolumeName("scripted/lost");
  lost.spec = SpecName("lost");
  lost.is_map = lost.is_block = true;
  lost.places = {"/var/lib/volumed/plugins/x/dev", "/var/lib/volumed/plugins/x/publish"};
  std::vector<std::string> binds;
  for (const std::string& place : lost.places) {
    for (const char* pod : {"uid-1", "uid-other"}) {
      const std::string bind = place + "/" + pod;
      kernel_.AddDirectory(bind, 0750);
      kernel_.AddMount("devtmpfs", "udev", bind);
      if (pod == std::string("uid-1")) binds.push_back(bind);
    }
  }
  kernel_.AddDirectory(kPodDir + "/volumeDevices/kubernetes.io~csi", 0750);
  kernel_.AddSymlink(kPodDir + "/volumeDevices/kubernetes.io~csi/lost", "/dev/sdb");
  unrecorded_->Set({lost});
  auto failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error.message().find("volume lost is mounted in pod uid-1, of which no record "
                                          "tells: " +
                                          binds[0] + ", " + binds[1] + ";"),
            0u)
      << failure->error.message();
  EXPECT_NE(failure->error.message().find("and then to start the agent anew"), std::string::npos);

  for (const std::string& bind : binds) kernel_.UnmountBelow(bind);
  failure = RemovePod();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->error.message().find("nothing of it is mounted: the agent has to be started "
                                          "anew"),
            std::string::npos)
      << failure->error.message();
  EXPECT_TRUE(failure->error.IsAbout(kAboutUnrecordedMount));
}

TEST_F(NodeVolumeOperationsTest, TearsDownWhatHasNoRecord) {
  kernel_.AddMount("tmpfs", "tmpfs", kVolumeDir);
  std::string state_in_call;
  std::string domain;
  script_.on_tear_down = [&](const CallOptions& call) {
    state_in_call = StoredState();
    domain = call.domain;
  };
  ASSERT_FALSE(Unmount());
  EXPECT_EQ(state_in_call, "TearingDown*");
  EXPECT_FALSE(domain.empty());  // not the lane that nothing may hang
  EXPECT_FALSE(kernel_.Exists(kVolumeDir));
}

}  // namespace
}  // namespace volumed
