// The volumes that a driver's controller deletes, and all those that it must not be told to delete.
#include <gtest/gtest.h>

#include <string>

#include "csi/csi_names.h"
#include "csi/csi_storage.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "unit/csi/storage_fixture.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

TEST_F(CsiStorageTest, AVolumeIsDeletedByItsHandleAndWithItsSecret) {
  PutSecret("made", "hunter2-delete");
  PersistentVolume volume = Make().value();
  volume.metadata.annotations["pv.kubernetes.io/provisioned-by"] = kName;
  volume.metadata.annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] = "made";
  volume.metadata.annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = "s";
  ASSERT_TRUE(Delete(volume).ok());
  EXPECT_EQ(deleted_.at(0).volume_id(), "vol-pvc-c1");
  EXPECT_EQ(deleted_.at(0).secrets().at("password"), "hunter2-delete");
  EXPECT_TRUE(volumes_.empty());
}

TEST_F(CsiStorageTest, AVolumeThatIsNotThereIsDeletedAndOneInUseIsNot) {
  Fails("DeleteVolume", Code::kNotFound);
  EXPECT_TRUE(Delete(MadeVolume()).ok());
  Fails("DeleteVolume", Code::kFailedPrecondition);
  const Status in_use = Delete(MadeVolume());
  ASSERT_FALSE(in_use.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(in_use.error()));
  Fails("DeleteVolume", Code::kInternal);
  const Status unknown = Delete(MadeVolume());
  ASSERT_FALSE(unknown.ok());
  EXPECT_FALSE(IsDeletedVolumeInUse(unknown.error()));
  EXPECT_TRUE(unknown.error().maybe_applied());
}

TEST_F(CsiStorageTest, NothingIsDeletedThatThisNodeHasOrThatIsAttachedSomewhere) {
  PutDevice("vol-1");
  const Status here = Delete(MadeVolume());
  ASSERT_FALSE(here.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(here.error()));
  RemoveDevice("vol-1");
  attachments_.all["a"].node_name = "n7";
  attachments_.all["a"].persistent_volume_name = "pv-made";
  const Status there = Delete(MadeVolume());
  ASSERT_FALSE(there.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(there.error()));
  EXPECT_NE(there.error().message().find("still attached to node n7"), std::string::npos);
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  attachments_.all.clear();
  EXPECT_TRUE(Delete(MadeVolume()).ok());
}

TEST_F(CsiStorageTest, AVolumeWasDeletedThatAnInlineSpecHasAttachedSomewhere) {
  VolumeAttachment& attachment = attachments_.all["a"];
  attachment.node_name = "n7";
  attachment.inline_volume_spec.emplace().csi.driver = kName;
  attachment.inline_volume_spec->csi.volume_handle = "vol-1";
  const Status there = Delete(MadeVolume());
  ASSERT_FALSE(there.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(there.error()));
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  attachment.inline_volume_spec->csi.volume_handle = "vol-2";
  EXPECT_TRUE(Delete(MadeVolume()).ok());
}

// DeleteVolume was made while the pod of an earlier agent had the volume mounted.
TEST_F(CsiStorageTest, LostRecordsLetNoVolumeBeDeletedThatAPodHasMounted) {
  const SpecName name("pv-made");
  const SafePath target = CsiTargetPath(paths_, PodUid("lost"), name);
  for (const UniqueVolumeName& volume : {CsiUniqueName(kName, "vol-1"), UniqueVolumeName()}) {
    unrecorded_.Set({LeftAt(target, volume, name, "lost")});
    const Status held = Delete(MadeVolume());
    ASSERT_FALSE(held.ok());
    EXPECT_TRUE(IsDeletedVolumeInUse(held.error()));
    EXPECT_NE(held.error().message().find("volume pv-made is mounted in pod lost, of which no "
                                          "record tells: " +
                                          target.Display()),
              std::string::npos)
        << held.error().message();
    kernel_.UnmountBelow(target.Display());
  }
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  EXPECT_TRUE(Delete(MadeVolume()).ok());
  unrecorded_.Set({LeftAt(target, CsiUniqueName(kName, "vol-7"), SpecName("other"), "lost")});
  EXPECT_TRUE(Delete(MadeVolume()).ok()) << "another volume is mounted";
}

TEST_F(CsiStorageTest, TheHandleOfALostPodsInlineVolumeInAPersistentVolumeWasDeleted) {
  const SpecName scratch("scratch");
  const SafePath target = CsiTargetPath(paths_, PodUid("lost"), scratch);
  UnrecordedMount left = LeftAt(target, UniqueVolumeName(), scratch, "lost");
  left.is_pods_own = true;
  unrecorded_.Set({left});
  PersistentVolume volume = MadeVolume();
  auto& handle = std::get<CsiPersistentVolumeSource>(volume.spec.source).volume_handle;
  handle = CsiInlineHandle(PodUid("lost"), scratch);
  const Status held = Delete(volume);
  ASSERT_FALSE(held.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(held.error()));
  EXPECT_NE(held.error().message().find("volume pv-made has the storage of volume scratch: volume "
                                        "scratch is mounted in pod lost, of which no record "
                                        "tells: " +
                                        target.Display()),
            std::string::npos)
      << held.error().message();
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  handle = CsiInlineHandle(PodUid("other"), scratch);
  EXPECT_TRUE(Delete(volume).ok()) << "that is another pod's";
}

TEST_F(CsiStorageTest, LostRecordsLetNoVolumeBeDeletedThatIsStagedThoughNoFileSaysWhichItIs) {
  const SafePath staged = CsiStagingPath(paths_, kName, "vol-1");
  const auto device = paths_.ParseDeviceMount(staged.Display());
  ASSERT_TRUE(device.has_value());
  const UniqueVolumeName stand_in(std::string(kCsiPluginName) + "/" + device->volume.str());
  unrecorded_.Set({LeftAt(staged, stand_in, SpecName(), "")});
  const Status held = Delete(MadeVolume());
  ASSERT_FALSE(held.ok());
  EXPECT_NE(held.error().message().find("is mounted on this node, of which no record tells: " +
                                        staged.Display()),
            std::string::npos)
      << held.error().message();
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

TEST_F(CsiStorageTest, LostRecordsLetNoBlockVolumeBeDeletedThatIsAtItsTargetPathAlone) {
  const SafePath target = CsiBlockPublishPath(paths_, SpecName("pv-made"), PodUid("lost"));
  const auto device = paths_.ParseDeviceMount(target.Display());
  ASSERT_TRUE(device.has_value());
  const UniqueVolumeName stand_in(std::string(kCsiPluginName) + "/" + device->volume.str());
  for (const UniqueVolumeName& volume : {CsiUniqueName(kName, "vol-1"), stand_in}) {
    unrecorded_.Set({LeftAt(target, volume, SpecName(), "lost")});
    const Status held = Delete(MadeVolume());
    ASSERT_FALSE(held.ok());
    EXPECT_NE(held.error().message().find(target.Display()), std::string::npos)
        << held.error().message();
    kernel_.UnmountBelow(target.Display());
  }
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

TEST_F(CsiStorageTest, AVolumeThatSomebodyHasWrittenDownIsNotTheDriversToDelete) {
  PersistentVolume by_hand = MadeVolume();
  by_hand.metadata.annotations.clear();
  const Status refused = Delete(by_hand);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("pv.kubernetes.io/provisioned-by"), std::string::npos);
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
}

TEST_F(CsiStorageTest, ADriverWithoutAControllerHereDeletesNothing) {
  Serve({});
  const Status refused = Delete(MadeVolume());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("serves no controller here"), std::string::npos);
}

}  // namespace
}  // namespace volumed
