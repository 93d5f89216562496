// Calls by hand beside pods, devices and storage that are on record.
#include <gmock/gmock.h>

#include "unit/csi/csi_call_by_hand_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(CsiCallByHandTest, ItsRowIsThereBeforeTheDriverIsCalledAndGoesWithTheAnswer) {
  std::optional<Record> row;
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [&](const Message&) {
    row = store_.Find(kCsiCommandRecordKind, CsiUniqueName(kName, kHandle).str());
  });
  const Outcome outcome = ByHand(StageRequest());
  ASSERT_TRUE(outcome && outcome->value) << outcome->failure->error.ToString();
  EXPECT_EQ(*outcome->value, "{}");
  ASSERT_TRUE(row.has_value());
  EXPECT_THAT(row->bytes, Not(HasSubstr("hunter2")));
  EXPECT_EQ(Rows(), 0u);
  EXPECT_TRUE(Stage(CsiSpec()).ok()) << "operations go on";
}

TEST_F(CsiCallByHandTest, TheAnswerToACallByHandShowedASecretThatTheDriverRepeats) {
  ::csi::v1::CreateVolumeResponse made;
  made.mutable_volume()->set_volume_id("vol-new");
  auto& context = *made.mutable_volume()->mutable_volume_context();
  context["login"] = "u:hunter2-hand@nas";
  context["of-earlier"] = "hunter2-earlier";
  process_->Answer("CreateVolume", made);
  drivers_->Find(kName)->secrets()->Remember({"hunter2-earlier"});
  ::csi::v1::CreateVolumeRequest request;
  request.set_name("new");
  (*request.mutable_secrets())["password"] = "hunter2-hand";
  const Outcome outcome = ByHand(request);
  ASSERT_TRUE(outcome && outcome->value);
  EXPECT_THAT(*outcome->value, HasSubstr("\"volume_id\":\"vol-new\""));
  EXPECT_THAT(*outcome->value, HasSubstr("\"login\":\"u:***stripped***@nas\""));
  EXPECT_THAT(*outcome->value, HasSubstr("\"of-earlier\":\"***stripped***\""));
}

TEST_F(CsiCallByHandTest, WhileAPodHasTheVolumeItIsRefusedWithThePodsName) {
  PutPod(/*is_inline=*/false);
  const Error refused = RefusedByHand(UnstageRequest());
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_THAT(refused.message(), HasSubstr("is in use: pod shop/web has it"));
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_EQ(Rows(), 0u);
}

TEST_F(CsiCallByHandTest, WhileAPodHasAnInlineVolumeItIsRefusedWithThePodsName) {
  PutPod(/*is_inline=*/true);
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id(CsiInlineHandle(PodUid(kPodUid), SpecName("scratch")));
  request.set_target_path("/kubelet/x");
  EXPECT_THAT(RefusedByHand(request).message(), HasSubstr("pod shop/web has it"));
  EXPECT_THAT(calls_, ElementsAre());
}

// A pod stayed Ready without its volume: its path came with the id of a volume that nobody has, and
// a driver unmounts by the path.
TEST_F(CsiCallByHandTest, ACallAboutAnotherVolumeTookThePathOfAPodsVolume) {
  PutPod(/*is_inline=*/false);
  const std::string target = Target(CsiSpec());
  kernel_.AddDirectory("/elsewhere");
  kernel_.AddSymlink("/elsewhere/pods", "/kubelet/pods");
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  const std::string pod_dir = "/kubelet/pods/" + std::string(kPodUid);
  for (const std::string& path :
       {target, target + "/", target + "/inside", pod_dir, std::string("/"),
        "/kubelet/x/../pods/" + std::string(kPodUid), "/elsewhere/pods/" + std::string(kPodUid)}) {
    SCOPED_TRACE(path);
    request.set_target_path(path);
    const Error refused = RefusedByHand(request);
    EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
    EXPECT_FALSE(refused.maybe_applied());
    EXPECT_THAT(refused.message(),
                HasSubstr("target_path " + path + " is in use: pod shop/web has volume pv-1 at "));
  }
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_EQ(Rows(), 0u);
  request.set_target_path("relative");
  EXPECT_EQ(RefusedByHand(request).code(), Code::kInvalidArgument);
  request.set_target_path("/kubelet/pods/" + std::string(kPodUid) + "-2");
  const Outcome outcome = ByHand(request);
  EXPECT_TRUE(outcome && outcome->value) << "nobody has that";
}

TEST_F(CsiCallByHandTest, ACallAboutAnotherVolumeTookTheStagingPathOfADevice) {
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  calls_.clear();
  ::csi::v1::NodeUnstageVolumeRequest request = UnstageRequest();
  request.set_volume_id("nosuch");
  EXPECT_THAT(RefusedByHand(request).message(),
              HasSubstr("staging_target_path " + Staging() +
                        " is in use: this node has the device of volume pv-1 at " + Staging()));
  EXPECT_THAT(calls_, ElementsAre());
  ASSERT_TRUE(Unstage(CsiSpec()).ok());
  const Outcome outcome = ByHand(request);
  EXPECT_TRUE(outcome && outcome->value) << "it is not staged any more";
}

// The root may have a second name, as /data/kubelet has beside /var/lib/kubelet: what is unmounted
// below the one is unmounted below the other.
TEST_F(CsiCallByHandTest, ThroughABindOfTheRootACallAboutAnotherVolumeTookAPodsVolume) {
  PutPod(/*is_inline=*/false);
  Mounts(Target(CsiSpec()), disk_);
  const std::string alias = BindRoot();
  const std::string target = alias + Target(CsiSpec()).substr(paths_.root().size());
  ASSERT_TRUE(kernel_.IsMountPoint(target));
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  for (const std::string& path :
       std::vector<std::string>{target, target + "/inside", alias + "/pods/" + kPodUid, alias,
                                "/data", "/data/./other/../alias/pods"}) {
    SCOPED_TRACE(path);
    request.set_target_path(path);
    const Error refused = RefusedByHand(request);
    EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
    EXPECT_THAT(refused.message(),
                HasSubstr("target_path " + path + " is in use: pod shop/web has volume pv-1 at "));
  }
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_TRUE(kernel_.IsMountPoint(target));
  request.set_target_path(alias + "/pods/" + kPodUid + "-2/mount");
  const Outcome outcome = ByHand(request);
  EXPECT_TRUE(outcome && outcome->value) << "nobody has that";
}

TEST_F(CsiCallByHandTest, ThroughAnotherMountOfItACallAboutAnotherVolumeTookAStagedDevice) {
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  calls_.clear();
  const std::string staged = BindRoot() + Staging().substr(paths_.root().size());
  kernel_.AddDirectory("/mnt/again");
  Must(kernel_.Call(BindMount{.source = HostPathOf(Staging()), .target = HostPathOf("/mnt/again")},
                    {}));
  Mounts("/mnt/other", "/dev/sdb");
  ::csi::v1::NodeUnstageVolumeRequest request = UnstageRequest();
  request.set_volume_id("nosuch");
  for (const std::string& path : {staged, std::string("/mnt/again"), std::string("/mnt")}) {
    request.set_staging_target_path(path);
    EXPECT_THAT(RefusedByHand(request).message(),
                HasSubstr("staging_target_path " + path +
                          " is in use: this node has the device of volume pv-1 at " + Staging()));
  }
  EXPECT_THAT(calls_, ElementsAre());
  request.set_staging_target_path("/mnt/other");
  const Outcome outcome = ByHand(request);
  EXPECT_TRUE(outcome && outcome->value) << "that is another disk";
}

TEST_F(CsiCallByHandTest, ACallAboutAnotherVolumeTookThePathsOfABlockVolume) {
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [](const Message&) {});
  ASSERT_TRUE(SetUpDevice(CsiBlockSpec()).ok());
  calls_.clear();
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  const SpecName spec("pv-1");
  for (const SafePath& place :
       {CsiBlockPublishPath(paths_, spec, PodUid(kPodUid)), CsiBlockStagingPath(paths_, spec),
        CsiBlockMapDir(paths_, spec).Below(kPodUid)}) {
    request.set_target_path(place.Display());
    EXPECT_THAT(RefusedByHand(request).message(),
                HasSubstr("this node has the device of volume pv-1 at "));
  }
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiCallByHandTest, ALoopOfLinksAtThePathIsRefused) {
  kernel_.AddSymlink("/a", "/b");
  kernel_.AddSymlink("/b", "/a");
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  request.set_target_path("/a/x");
  const Error refused = RefusedByHand(request);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("loop of links"));
  EXPECT_EQ(Rows(), 0u);
}

TEST_F(CsiCallByHandTest, WhileTheNodeHasTheDeviceItIsRefused) {
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  calls_.clear();
  EXPECT_THAT(RefusedByHand(UnstageRequest()).message(),
              HasSubstr("this node, for volume pv-1, whose device is DeviceMounted, has it"));
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiCallByHandTest, WhileTheStorageIsBeingDeletedItIsRefusedWithTheHoldersName) {
  StorageHolder holder;
  holder.id = "reclaim/pv-1";
  holder.volume = "pv-1";
  holder.use = StorageUse::kReclaim;
  holder.text = "persistent volume pv-1";
  ASSERT_TRUE(storage_->Take(holder, {kHandle, "", kName}, Call()).ok());
  const Error refused = RefusedByHand(UnstageRequest());
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(),
              HasSubstr("persistent volume pv-1, whose content is being deleted"));
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_EQ(Rows(), 0u);
}

// It had waited for its driver's lane, and a list of the time at which it was asked for let it
// pass.
TEST_F(CsiCallByHandTest, AVolumeWasDeletedThatAPersistentVolumeWasGivenWhileTheCallWaited) {
  ::csi::v1::DeleteVolumeRequest remove;
  remove.set_volume_id(kHandle);
  meanwhile_ = [this] { Name("pv-1"); };
  const Error refused = RefusedByHand(remove);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_THAT(refused.message(), HasSubstr("is in use: persistent volume pv-1 has it"));
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  EXPECT_EQ(Rows(), 0u);
  meanwhile_ = [] {};
  const Outcome unstaged = ByHand(UnstageRequest());
  EXPECT_TRUE(unstaged && unstaged->value) << "other calls take nothing from it";
}

TEST_F(CsiCallByHandTest, WhatIsDeletedByHandIsGivenToNoPersistentVolumeMeanwhile) {
  ::csi::v1::DeleteVolumeRequest remove;
  remove.set_volume_id(kHandle);
  std::map<std::string, std::string> going;
  Does<::csi::v1::DeleteVolumeResponse>("DeleteVolume", [&](const Message&) {
    Name("pv-1");
    going = storage_->VolumesBeingDeleted();
  });
  const Outcome outcome = ByHand(remove);
  EXPECT_TRUE(outcome && outcome->value);
  const std::map<std::string, std::string> expected = {
      {"pv-1", "its storage is being deleted for DeleteVolume by hand"}};
  EXPECT_EQ(going, expected);
  EXPECT_TRUE(storage_->VolumesBeingDeleted().empty());
}

// The claim that it was given to had storage that may have been going, and its owner had to delete
// pod, claim and PersistentVolume before the call could be made again.
TEST_F(CsiCallByHandTest, AVolumeWhoseDeletionByHandHasAnOpenOutcomeWasGivenToAClaim) {
  ::csi::v1::DeleteVolumeRequest remove;
  remove.set_volume_id(kHandle);
  Says("DeleteVolume", Code::kInternal);
  const Outcome open = ByHand(remove);
  ASSERT_TRUE(open && open->failure && open->failure->error.maybe_applied());
  Name("pv-1");
  const std::map<std::string, std::string> going = {
      {"pv-1", "its storage is being deleted for DeleteVolume by hand, whose outcome is open"}};
  EXPECT_EQ(storage_->VolumesBeingDeleted(), going);
  RestartAll();
  Name("pv-1");
  EXPECT_EQ(storage_->VolumesBeingDeleted(), going);

  EXPECT_THAT(RefusedByHand(remove).message(), HasSubstr("persistent volume pv-1 has it"));
  EXPECT_EQ(storage_->VolumesBeingDeleted(), going) << "what was refused has settled nothing";
  storage_->NameStorage("pv-1", nullptr);
  Does<::csi::v1::DeleteVolumeResponse>("DeleteVolume", [](const Message&) {});
  const Outcome done = ByHand(remove);
  EXPECT_TRUE(done && done->value);
  Name("pv-1");
  EXPECT_TRUE(storage_->VolumesBeingDeleted().empty());
}

TEST_F(CsiCallByHandTest, OnlyADeletionKeepsItsVolumeFromClaims) {
  Says("NodeUnstageVolume", Code::kInternal);
  const Outcome open = ByHand(UnstageRequest());
  ASSERT_TRUE(open && open->failure);
  Name("pv-1");
  EXPECT_TRUE(storage_->VolumesBeingDeleted().empty());
}

TEST_F(CsiCallByHandTest, WhatARowThatCannotBeReadIsAboutIsGivenToNobody) {
  Says("NodeUnstageVolume", Code::kInternal);
  ASSERT_TRUE(ByHand(UnstageRequest())->failure);
  LoadedRecords rows = *store_.Load(kCsiCommandRecordKind);
  ASSERT_EQ(rows.records.size(), 1u);
  rows.records[0].bytes = "damaged";
  CsiCommands next(store_, log_);
  next.Restore(rows);
  const std::vector<StorageGuard::Deletion> deletions = OpenDeletionsOf(next)();
  ASSERT_EQ(deletions.size(), 1u);
  EXPECT_EQ(deletions[0].name, (StorageName{.path = kHandle, .server = "", .driver = kName}));
  EXPECT_THAT(deletions[0].text, HasSubstr("a call by hand whose row cannot be read; `volumectl "
                                           "records accept`"));
}

TEST_F(CsiCallByHandTest, AnOpenOutcomeKeepsOperationsOutOverARestartUntilItIsTakenBack) {
  Says("NodeStageVolume", Code::kInternal);
  const Outcome outcome = ByHand(StageRequest());
  ASSERT_TRUE(outcome && outcome->failure);
  EXPECT_TRUE(outcome->failure->error.maybe_applied());
  EXPECT_EQ(Rows(), 1u);
  RestartAll();
  calls_.clear();
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_FALSE(staged.error().maybe_applied());
  EXPECT_THAT(staged.error().message(), HasSubstr("NodeStageVolume by hand has an open outcome"));
  EXPECT_THAT(calls_, ElementsAre());
  const std::optional<DeviceRecord> left = devices_->Find(CsiUniqueName(kName, kHandle));
  EXPECT_TRUE(!left || IsGone(*left));
  const Outcome back = ByHand(UnstageRequest());
  ASSERT_TRUE(back && back->value);
  EXPECT_EQ(Rows(), 0u);
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [this](const Message& request) {
    Mounts(Field(request, "staging_target_path"), disk_);
  });
  EXPECT_TRUE(Stage(CsiSpec()).ok());
}

TEST_F(CsiCallByHandTest, ACallWithoutAnAnswerIsOpenAndMayBeMadeAgain) {
  process_->Hang("NodeUnstageVolume");
  const Outcome first = ByHand(UnstageRequest());
  ASSERT_TRUE(first && first->failure);
  EXPECT_TRUE(first->failure->error.maybe_applied());
  EXPECT_EQ(Rows(), 1u);
  process_->Unhang("NodeUnstageVolume");
  const Outcome again = ByHand(UnstageRequest());
  ASSERT_TRUE(again && again->value);
  EXPECT_EQ(Rows(), 0u);
}

}  // namespace
}  // namespace volumed
