// The operations on a pool's volumes that are asked for by the volume's id: what a caller of the
// CSI driver can do, and what the claims of this node keep from it.
#include "pool/pool_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>

#include "operation/provision_operations.h"
#include "unit/pool/pool_import_fixture.h"
#include "unit/pool/pool_operations_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PoolServedOperationsTest : public PoolOperationsFixture {
 protected:
  PoolServedOperationsTest() { Serve(); }
  void Serve() { pools_ = std::make_unique<PoolServed>(PoolServed{*volumes_, kDriver}); }

  PoolVolumeRecord Made(const std::string& name) {
    EXPECT_EQ(Start(CreatePoolVolume(*pools_, Wish(name))), "");
    return volumes_->FindByName(name).value_or(PoolVolumeRecord{});
  }
  std::string DeleteId(const std::string& id) { return Start(DeletePoolVolume(*pools_, id)); }

  std::unique_ptr<PoolServed> pools_;
};

TEST_F(PoolServedOperationsTest, AVolumeIsMadeFoundAgainAndDeleted) {
  const PoolVolumeRecord made = Made("csi:a");
  EXPECT_EQ(made.state, PoolVolumeState::kReady);
  EXPECT_EQ(Made("csi:a").id, made.id);
  EXPECT_EQ(DeleteId(made.id), "");
  EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
  EXPECT_EQ(DeleteId(made.id), "") << "the same call again";
}

TEST_F(PoolServedOperationsTest, AnotherVolumeOfTheNameIsRefused) {
  Made("csi:a");
  EXPECT_THAT(Start(CreatePoolVolume(*pools_, Wish("csi:a", 64 * kMiB))),
              HasSubstr("has the name csi:a already"));
}

TEST_F(PoolServedOperationsTest, ItsEffectsHangWithThePool) {
  const PoolVolumeRecord made = Made("csi:a");
  EXPECT_EQ(CreatePoolVolume(*pools_, Wish("csi:b")).Traits(Parts()).domain.lane, kPoolPath);
  const OperationTraits traits = DeletePoolVolume(*pools_, made.id).Traits(Parts());
  EXPECT_EQ(traits.domain.lane, kPoolPath);
  EXPECT_EQ(traits.device, PoolDeviceName(made.id));
  EXPECT_EQ(traits.use, DeviceUse::kExclusive);
}

TEST_F(PoolServedOperationsTest, AVolumeThatAPersistentVolumeNamesIsNotDeletedById) {
  const PoolVolumeRecord made = Made("csi:a");
  const StorageName name{.path = made.id, .driver = kDriver};
  // Whatever it is called: no object's name is the one that stands for a volume without an object.
  for (const std::string& volume : {std::string("pvc-1"), made.id, made.name}) {
    operations_->NameStorage(volume, &name);
    EXPECT_THAT(DeleteId(made.id), HasSubstr("persistent volume " + volume));
    EXPECT_EQ(volumes_->Find(made.id)->state, PoolVolumeState::kReady);
    operations_->NameStorage(volume, nullptr);
  }
  EXPECT_EQ(DeleteId(made.id), "");
}

TEST_F(PoolServedOperationsTest, AVolumeIsNotDeletedByIdWhileAPodHasItBeforeAndAfterARestart) {
  const PersistentVolume claimed = Claim();
  const std::string id = std::get<CsiPersistentVolumeSource>(claimed.spec.source).volume_handle;
  ASSERT_EQ(Stage(claimed), "");
  EXPECT_THAT(DeleteId(id), HasSubstr("which is also, in whole or in part, that of"));
  Restart();
  Serve();
  EXPECT_THAT(DeleteId(id), HasSubstr("which is also, in whole or in part, that of"));
  EXPECT_THAT(volumes_->List("", 10).volumes, SizeIs(1));
}

TEST_F(PoolServedOperationsTest, AVolumeIsMadeLargerAndNeverSmaller) {
  const PoolVolumeRecord made = Made("csi:a");
  EXPECT_EQ(Start(ExpandPoolVolume(*pools_, made.id, 32 * kMiB)), "");
  EXPECT_EQ(volumes_->Find(made.id)->capacity_bytes, 32 * kMiB);
  EXPECT_EQ(Start(ExpandPoolVolume(*pools_, made.id, 16 * kMiB)), "");
  EXPECT_EQ(volumes_->Find(made.id)->capacity_bytes, 32 * kMiB);
  EXPECT_THAT(Start(ExpandPoolVolume(*pools_, "no-id", 16 * kMiB)), HasSubstr("there is no"));
}

TEST_F(PoolServedOperationsTest, AVolumeThatIsClonedIsHadByNobodyElseMeanwhile) {
  const PoolVolumeRecord made = Made("csi:a");
  PoolVolumeWish wish = Wish("csi:b");
  wish.content.emplace();
  wish.content->handle = made.id;
  const OperationTraits clone = CreatePoolVolume(*pools_, wish).Traits(Parts());
  EXPECT_EQ(clone.device, PoolDeviceName(made.id));
  EXPECT_EQ(clone.use, DeviceUse::kExclusive);
  EXPECT_EQ(clone.domain.lane, kPoolPath);
  wish.content->is_snapshot = true;
  EXPECT_EQ(CreatePoolVolume(*pools_, wish).Traits(Parts()).device, UniqueVolumeName());
}

TEST_F(PoolServedOperationsTest, AVolumeThatIsClonedForAClaimIsHadByNobodyElseMeanwhile) {
  ProvisionRequest request;
  request.plugin_name = kDriver;
  request.options = ClaimOptions("pvc-2");
  EXPECT_EQ(ProvisionVolume(request).Traits(Parts()).device, UniqueVolumeName());
  const PoolVolumeRecord made = Made("csi:a");
  request.options.content.emplace();
  request.options.content->handle = made.id;
  const OperationTraits clone = ProvisionVolume(request).Traits(Parts());
  EXPECT_EQ(clone.device, PoolDeviceName(made.id));
  EXPECT_EQ(clone.use, DeviceUse::kExclusive);
}

TEST_F(PoolServedOperationsTest, WhereAVolumeIsMountedForWritingIsKnownByItsRecord) {
  const PersistentVolume claimed = Claim();
  const std::string id = std::get<CsiPersistentVolumeSource>(claimed.spec.source).volume_handle;
  const auto asked = [&] {
    return Must(MountedForWriting(*volumes_, paths_, *devices_, node_, id, {}));
  };
  EXPECT_FALSE(asked().has_value());
  ASSERT_EQ(Stage(claimed), "");
  const std::optional<CutWish::Mounted> mounted = asked();
  ASSERT_TRUE(mounted.has_value());
  EXPECT_EQ(mounted->place.Display(), PoolDevicePlace(paths_, id).Display());
  bool is_there = false;
  for (const MountEntry& mount : node_.Mounts()) {
    is_there = is_there || (mount.mount_point == mounted->place.Display() &&
                            mount.device_major == mounted->device_major &&
                            mount.device_minor == mounted->device_minor);
  }
  EXPECT_TRUE(is_there) << "the number is the filesystem's";
  ASSERT_EQ(Unstage(claimed), "");
  EXPECT_FALSE(asked().has_value());
}

// Records of before the staging were put back: its snapshots were not frozen, and lacked what had
// been written, or were a mixture.
TEST_F(PoolServedOperationsTest, AVolumeThatWasMountedAndOnNoRecordWasCutAsIfNobodyHadIt) {
  const std::string id = Made("csi:a").id;
  const std::string device = Must(volumes_->Open(id, false, {})).device;
  node_.AddMount("xfs", device, "/somebodys");
  const auto asked = MountedForWriting(*volumes_, paths_, *devices_, node_, id, {});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(asked.error().maybe_applied());
  EXPECT_THAT(asked.error().message(), HasSubstr("is mounted or bound, and no record says so"));
  Must(node_.DoAside(Unmount{{"/somebodys", ""}}));
  EXPECT_FALSE(Must(MountedForWriting(*volumes_, paths_, *devices_, node_, id, {})).has_value());
}

TEST_F(PoolServedOperationsTest, ABlockVolumeIsNeverMountedForWriting) {
  const PersistentVolume claimed = Claim(VolumeMode::kBlock);
  const std::string id = std::get<CsiPersistentVolumeSource>(claimed.spec.source).volume_handle;
  ASSERT_EQ(Stage(claimed), "");
  ASSERT_EQ(Publish(claimed), "");
  EXPECT_FALSE(Must(MountedForWriting(*volumes_, paths_, *devices_, node_, id, {})).has_value());
}

TEST_F(PoolServedOperationsTest, APodOfThisNodeHasTheThrottleBeforeItHasTheVolume) {
  for (const VolumeMode mode : {VolumeMode::kFilesystem, VolumeMode::kBlock}) {
    const PersistentVolume claimed = Claim(mode, mode == VolumeMode::kBlock ? "pvc-2" : "pvc-1");
    const std::string id = std::get<CsiPersistentVolumeSource>(claimed.spec.source).volume_handle;
    ASSERT_EQ(Stage(claimed), "");
    ASSERT_EQ(Start(ModifyPoolVolume(*pools_, id, {{"readBps", "4096"}})), "");
    EXPECT_THAT(Publish(claimed), HasSubstr("there is no cgroup"));
    const std::string hierarchy = "/sys/fs/cgroup-" + claimed.metadata.name;
    node_.AddMount("cgroup2", "cgroup2", hierarchy);
    const std::string file = hierarchy + "/kubepods/poda/io.max";
    node_.AddFile(file, "");
    ASSERT_EQ(Publish(claimed), "");
    EXPECT_THAT(node_.Find(file).content, HasSubstr(" rbps=4096 wbps=max riops=max wiops=max"));
    ASSERT_EQ(Start(ModifyPoolVolume(*pools_, id, {{"readBps", "8192"}})), "");
    EXPECT_THAT(node_.Find(file).content, HasSubstr(" rbps=8192 "));
    ASSERT_EQ(Unpublish(claimed), "");
    node_.UnmountBelow(hierarchy);
  }
}

TEST_F(PoolServedOperationsTest, APersistentVolumeStandsForTheVolumeOfTheRecord) {
  PoolVolumeRecord record = Made("csi:a");
  PersistentVolume volume = PoolPvOf(record, kDriver, "n1");
  const auto& source = std::get<CsiPersistentVolumeSource>(volume.spec.source);
  EXPECT_EQ(source.driver, kDriver);
  EXPECT_EQ(source.volume_handle, record.id);
  EXPECT_EQ(source.fs_type, "ext4");
  EXPECT_EQ(volume.spec.capacity.Value(), record.capacity_bytes);
  EXPECT_EQ(NameOf(volume), PoolDeviceName(record.id));
  EXPECT_THAT(volume.metadata.name, HasSubstr(":")) << "which no object's name has";
  record.filesystem.type = "xfs";
  volume = PoolPvOf(record, kDriver, "n1");
  EXPECT_EQ(std::get<CsiPersistentVolumeSource>(volume.spec.source).fs_type, "xfs");
  record.is_block = true;
  volume = PoolPvOf(record, kDriver, "n1");
  EXPECT_EQ(std::get<CsiPersistentVolumeSource>(volume.spec.source).fs_type, "");
  EXPECT_EQ(volume.spec.volume_mode, VolumeMode::kBlock);
}

class PoolServedImportTest : public PoolOperationsFixture {
 protected:
  PoolServedImportTest() : PoolOperationsFixture("xfs") {
    pools_ = std::make_unique<PoolServed>(PoolServed{*volumes_, kDriver});
    node_.AddDirectory(kOldDirectory);
    AddOldImage(node_, kOldImage, "ext4");
  }
  ImportPoolVolume Import(bool does) {
    ImportRequest request;
    request.source = kOldImage;
    return {*pools_, request, does};
  }

  std::unique_ptr<PoolServed> pools_;
};

TEST_F(PoolServedImportTest, AnImportOnlyLooksUnlessItIsToldToDoIt) {
  EXPECT_EQ(Import(false).Traits(Parts()).domain.lane, kOldImage);
  EXPECT_EQ(Start(Import(false)), "");
  EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
  EXPECT_EQ(Start(Import(true)), "");
  EXPECT_EQ(Start(Import(true)), "");
  EXPECT_THAT(volumes_->List("", 10).volumes, SizeIs(1)) << "the same call again";
}

TEST_F(PoolServedImportTest, AnImportedVolumeIsMountedWithItsOwnFilesystemAndNeverFormatted) {
  ASSERT_EQ(Start(Import(true)), "");
  const PoolVolumeRecord made = volumes_->List("", 10).volumes.at(0);
  const std::string image = kPoolPath + "/volumes/" + made.id + "/image";
  const int formats = node_.Image(image).formats;
  PersistentVolume volume = PoolPvOf(made, kDriver, "node");
  volume.metadata.name = "imported";
  EXPECT_EQ(Stage(volume), "");
  EXPECT_EQ(node_.Image(image).formats, formats);
  EXPECT_EQ(node_.Image(image).identity.uuid, "uuid-of-old");
  EXPECT_EQ(volumes_->Find(made.id)->filesystem, (PoolFilesystem{"ext4", "uuid-of-old", ""}));
}

}  // namespace
}  // namespace volumed
