// Volumes that a driver makes, takes back and makes larger: what the operations ask of it, and what
// they look at before.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/driver_storage.h"
#include "operation/expand_storage_operations.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "operation/recorded_volume.h"
#include "operation/storage_steps.h"
#include "unit/operation/made_by_drivers_fixture.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

TEST_F(MadeByDriversTest, ADriverIsFoundAsTheProvisionerOfItsNameAndGetsThePlan) {
  EXPECT_EQ(Provision(), "");
  ASSERT_TRUE(maker_.plan);
  EXPECT_EQ(maker_.plan->text, "the plan");
  EXPECT_EQ(maker_.plan->volume, request_.planned);
  request_.plugin_name = "other.example.com";
  EXPECT_EQ(Provision(), "no volume plugin matched name: other.example.com");
}

TEST_F(MadeByDriversTest, StorageThatAnotherVolumeHasIsNoNewOne) {
  AddOther("vol-2");
  EXPECT_EQ(Provision(), "");
  AddOther("vol-1");
  EXPECT_EQ(Provision(), "it is the storage of PersistentVolume other");
}

TEST_F(MadeByDriversTest, WhatWasMadeIsTakenBackByTheHandleThatTheDriverSays) {
  EXPECT_EQ(Undo(), "");
  EXPECT_EQ(maker_.undone, std::vector<std::string>{"vol-1"});
  EXPECT_EQ(Undo(), "") << "nothing of the first is in the way";
}

TEST_F(MadeByDriversTest, NothingIsTakenBackIfCertainlyNothingIsThere) {
  maker_.there.reset();
  EXPECT_EQ(Undo(), "");
  EXPECT_TRUE(maker_.undone.empty());
}

TEST_F(MadeByDriversTest, NothingIsTakenBackThatAnotherVolumeHas) {
  AddOther("vol-1");
  EXPECT_NE(Undo(), "");
  EXPECT_TRUE(maker_.undone.empty());
}

// It was not in the list of the time at which the undo was asked for.
TEST_F(MadeByDriversTest, AnUndoDeletedTheStorageOfAVolumeThatCameDuringItsCreateVolume) {
  maker_.while_made = [this] { AddOther("vol-1"); };
  EXPECT_EQ(Undo(), "it is the storage of PersistentVolume other");
  EXPECT_EQ(outcome_, Outcome::kNotApplied);
  EXPECT_TRUE(maker_.undone.empty());
  storage_.NameStorage("other", nullptr);
  maker_.while_made = [] {};
  EXPECT_EQ(Undo(), "") << "nobody else has it any more";
  EXPECT_EQ(maker_.undone.size(), 1u);
}

TEST_F(MadeByDriversTest, AClaimGotTheStorageOfAVolumeThatCameDuringItsCreateVolume) {
  maker_.while_made = [this] { AddOther("vol-1"); };
  EXPECT_EQ(Provision(), "it is the storage of PersistentVolume other");
  maker_.while_made = [] {};
  AddOther("vol-2");
  EXPECT_EQ(Provision(), "") << "it names another one now";
}

// None of them was on record, or in a list, when the others were answered.
TEST_F(MadeByDriversTest, ClaimsThatWereMadeAtTheSameTimeGotOneVolume) {
  storage_.NameStorage("pvc-1", nullptr);
  maker_.while_made = [this, nested = false]() mutable {
    if (std::exchange(nested, true)) return;
    const ProvisionRequest first = request_;
    ForClaim("pvc-2");
    EXPECT_EQ(Provision(), "") << "its answer came first";
    request_ = first;
    maker_.there = VolumeOf("pvc-1", "vol-1");
  };
  EXPECT_EQ(Provision(), "it is the storage of PersistentVolume pvc-2");
  maker_.while_made = [] {};
  ForClaim("pvc-3");
  EXPECT_EQ(Provision(), "it is the storage of PersistentVolume pvc-2");
  ForClaim("pvc-2");
  EXPECT_EQ(Provision(), "") << "the very same call";
  storage_.ForgetMade("pvc-2");
  ForClaim("pvc-3");
  EXPECT_EQ(Provision(), "") << "what was made for pvc-2 is gone";
}

TEST_F(MadeByDriversTest, AVolumeThatComesWhileItsStorageIsDeletedForAnotherIsGivenToNobody) {
  std::map<std::string, std::string> going;
  std::string made;
  maker_.while_undone = [&] {
    AddOther("vol-1");
    going = storage_.VolumesBeingDeleted();
    const ProvisionRequest first = request_;
    ForClaim("pvc-2");
    made = Provision();
    request_ = first;
  };
  EXPECT_EQ(Undo(), "");
  const std::map<std::string, std::string> expected = {
      {"other", "its storage is being deleted for persistent volume pvc-1"}};
  EXPECT_EQ(going, expected);
  EXPECT_EQ(made, "it is the storage of PersistentVolume pvc-1");
  EXPECT_TRUE(storage_.VolumesBeingDeleted().empty()) << "it is over";
}

// It is not tried again, so nobody would ever have told that the volume may be had.
TEST_F(MadeByDriversTest, AReclaimThatHasEndedKeepsNoVolumeThatCameMeanwhile) {
  maker_.undo_error = Error::MaybeApplied(Code::kDeadlineExceeded, "no answer");
  EXPECT_EQ(Undo(), "no answer");
  AddOther("vol-1");
  EXPECT_EQ(storage_.VolumesBeingDeleted().count("other"), 1u) << "it may be going on";
  node_.FailNext("Stat", Error::NotApplied(Code::kAborted, "a worker is at it"));
  ASSERT_TRUE(storage_.EndReclaims("pvc-1").ok());
  EXPECT_TRUE(storage_.VolumesBeingDeleted().empty());
  const StorageHolder device{.id = DriverStorageId(kUnique),
                             .volume = "other",
                             .use = StorageUse::kShared,
                             .persistent = true,
                             .text = "volume other"};
  const StorageName name{.path = "vol-1", .server = "", .driver = kDriver};
  EXPECT_TRUE(storage_.Take(device, name, {}).ok()) << "whoever comes looks again";
}

TEST_F(MadeByDriversTest, WhatIsDeletedByHandAtThatMomentIsGivenToNoClaim) {
  storage_.NameStorage("pvc-1", nullptr);
  const StorageHolder by_hand{.id = "command/x",
                              .volume = "command/x",
                              .use = StorageUse::kReclaim,
                              .persistent = false,
                              .text = "DeleteVolume by hand"};
  ASSERT_TRUE(storage_.Take(by_hand, {.path = "vol-1", .server = "", .driver = kDriver}, {}).ok());
  EXPECT_EQ(Provision(),
            "disk.example.com^vol-1 is not given to volume pvc-1 yet: it is being deleted, or "
            "changed, for DeleteVolume by hand");
  ASSERT_TRUE(storage_.Release(by_hand.id).ok());
  EXPECT_EQ(Provision(), "");
  EXPECT_FALSE(storage_.Take(by_hand, {.path = "vol-1", .server = "", .driver = kDriver}, {}).ok())
      << "it is a claim's now, though no record says so yet";
}

// Somebody had written the handle into a PersistentVolume, whose claim was deleted.
TEST_F(MadeByDriversTest, ADeletionTookTheInlineVolumeOfAPod) {
  PodVolume scratch;
  scratch.name = "scratch";
  CsiVolumeSource source;
  source.driver = kDriver;
  scratch.source = source;
  Pod pod;
  pod.metadata.uid = "uid-1";
  pod.spec.volumes = {scratch};
  const auto wanting = std::make_shared<const Pod>(pod);
  const std::string handle = CsiInlineHandle(PodUid("uid-1"), SpecName("scratch"));
  const std::string whose = "that of volume scratch of pod uid-1";
  EXPECT_NE(Reclaim(handle, {wanting}).find(whose), std::string::npos) << "it wants it";
  PodVolumeRecord record;
  record.key = {PodUid("uid-1"), SpecName("scratch")};
  record.state = VolumeState::kSetUp;
  record.volume_json = EncodeRecordedVolume(VolumeSpec::FromVolume(scratch));
  ASSERT_TRUE(MayHaveStorage(record));
  const std::optional<KnownStorage> had = StorageOf(record);
  ASSERT_TRUE(had);
  storage_.ExpectUnread(BootId("boot-a"), had->holder.id, [had] { return had; });
  EXPECT_NE(Reclaim(handle, {}).find(whose), std::string::npos) << "it has it by its record";
  maker_.there = VolumeOf("pvc-1", handle);
  EXPECT_EQ(Provision(), "it is the storage of volume scratch of pod uid-1");
  ASSERT_TRUE(storage_.Release(had->holder.id).ok());
  EXPECT_EQ(Reclaim(handle, {}).find(whose), std::string::npos) << "it has left";
  const VolumeSpec spec = VolumeSpec::FromVolume(scratch);
  const MountRequest mount{
      .target = PodVolumeTarget(paths_, wanting, "kubernetes.io/csi", spec.name()),
      .spec = spec,
      .sub_paths = {},
      .nested_mount_points = {}};
  MakingPlugin plugin(maker_);
  PodStorage taken(storage_, node_, mount, plugin, mount.target.place);
  ASSERT_TRUE(taken.Reserve({}).ok());
  EXPECT_NE(Reclaim(handle, {}).find(whose), std::string::npos) << "its set-up has taken it";
}

TEST_F(MadeByDriversTest, NothingIsTakenBackThatADeviceOfTheNodeHas) {
  const StorageHolder device{.id = DriverStorageId(kUnique),
                             .volume = "other",
                             .use = StorageUse::kShared,
                             .persistent = true,
                             .text = "volume other"};
  ASSERT_TRUE(storage_.Take(device, StorageName{.path = "vol-1", .driver = kDriver}, {}).ok());
  EXPECT_NE(Undo(), "");
  EXPECT_TRUE(maker_.undone.empty());
  ASSERT_TRUE(storage_.Release(device.id).ok());
  EXPECT_EQ(Undo(), "");
  EXPECT_EQ(maker_.undone.size(), 1u);
}

TEST_F(MadeByDriversTest, NothingIsAskedOfTheDriverWhileTheRecordsAreInDoubt) {
  irreversible_.hold = true;
  EXPECT_NE(Undo(), "");
  EXPECT_EQ(maker_.found, 0);
}

TEST_F(MadeByDriversTest, StorageIsMadeLargerByItsPlugin) {
  EXPECT_EQ(Grow(), "");
  EXPECT_EQ(maker_.grows, 1);
  maker_.expands = false;
  EXPECT_NE(Grow().find("nothing on this node makes the storage"), std::string::npos);
  EXPECT_EQ(maker_.grows, 1);
}

TEST_F(MadeByDriversTest, StorageThatGrowsOnlyUnusedIsNotTouchedWhileTheNodeHasIt) {
  PutDevice();
  EXPECT_EQ(Grow(), "") << "it may be in use";
  maker_.only_unused = true;
  EXPECT_NE(Grow().find("is on the node"), std::string::npos);
  EXPECT_EQ(outcome_, Outcome::kNotApplied);
  EXPECT_EQ(maker_.grows, 1);
}

// A driver was told to make larger what it grows only unused, while a pod whose records were lost
// had it mounted.
TEST_F(MadeByDriversTest, StorageThatGrowsOnlyUnusedGrewUnderTheMountOfALostPod) {
  const std::string target = "/var/lib/volumed/pods/lost/volumes/kubernetes.io~csi/pv/mount";
  node_.AddDirectory(target);
  node_.AddMount("tmpfs", "tmpfs", target);
  UnrecordedMount left;
  left.plugin = "kubernetes.io/csi";
  left.spec = SpecName("pv");
  left.pod = PodUid("lost");
  left.places = {target};
  maker_.only_unused = true;
  for (const UniqueVolumeName& volume : {kUnique, UniqueVolumeName()}) {
    left.volume = volume;
    unrecorded_->Set({left});
    EXPECT_NE(Grow().find("in pod lost, of which no record tells: " + target), std::string::npos)
        << volume.str();
    EXPECT_EQ(outcome_, Outcome::kNotApplied);
  }
  EXPECT_EQ(maker_.grows, 0);
  maker_.only_unused = false;
  EXPECT_EQ(Grow(), "") << "it grows in use";
  maker_.only_unused = true;
  node_.UnmountBelow(target);
  EXPECT_EQ(Grow(), "") << "it is mounted no more";
  EXPECT_EQ(maker_.grows, 2);
}

TEST_F(MadeByDriversTest, AnAnswerSmallerThanWhatWasAskedForIsAnErrorWhoseOutcomeIsOpen) {
  maker_.grown = ExpandedStorage{Quantity::FromBytes(150), false};
  EXPECT_NE(Grow(), "");
  EXPECT_EQ(outcome_, Outcome::kMaybeApplied);
}

TEST_F(MadeByDriversTest, AGrowthHasTheDriversLaneAndTheDeviceForItself) {
  const ExpandStorage growth(
      {.volume = kUnique,
       .spec = VolumeSpec::FromPersistentVolume(VolumeOf("pv", "vol-1"), false),
       .claim = "",
       .new_size = {},
       .old_size = {}});
  const OperationTraits traits = growth.Traits(Parts());
  EXPECT_EQ(traits.domain.lane, "csi:disk.example.com");
  EXPECT_EQ(traits.device, kUnique);
  EXPECT_EQ(traits.use, DeviceUse::kExclusive);
}

// The claim went while its growth was with the driver, and DeleteVolume was called beside it.
TEST_F(MadeByDriversTest, AVolumeThatIsMadeLargerWasDeletedMeanwhile) {
  const ReclaimVolume deletion(ReclaimRequest{
      std::make_shared<const PersistentVolume>(VolumeOf("pv", "vol-1")), ReclaimAction::kDelete});
  const OperationTraits traits = deletion.Traits(Parts());
  EXPECT_EQ(traits.domain.lane, "csi:disk.example.com");
  EXPECT_EQ(traits.device, kUnique);
  EXPECT_EQ(traits.use, DeviceUse::kExclusive);
}

}  // namespace
}  // namespace volumed
