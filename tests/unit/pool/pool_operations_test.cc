// The operations of the volume manager on a pool's volumes: who has a volume is known by its
// handle, over a restart too, and neither the pool's own directory nor a pod that sees the whole
// node is in the way of a loop device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit/pool/pool_operations_fixture.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PoolOperationsTest : public PoolOperationsFixture {};

constexpr char kStillHere[] = "its device is still on this node";

// A restart forgot the holder, whose fault domain is not its driver's, and the file went under the
// mount.
TEST_F(PoolOperationsTest, AVolumeIsNotDeletedWhileItIsStagedBeforeAndAfterARestart) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(Stage(volume), "");
  ASSERT_EQ(Publish(volume), "");
  EXPECT_THAT(Delete(volume), HasSubstr(kStillHere));
  Restart();
  EXPECT_THAT(Delete(volume), HasSubstr(kStillHere));
  EXPECT_EQ(Unpublish(volume), "");
  EXPECT_THAT(Delete(volume), HasSubstr(kStillHere));
  EXPECT_EQ(Unstage(volume), "");
  EXPECT_EQ(Delete(volume), "");
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_THAT(volumes_->List("", 10).volumes, IsEmpty());
}

TEST_F(PoolOperationsTest, ABlockVolumeIsNotDeletedWhileItsDeviceIsThereBeforeAndAfterARestart) {
  const PersistentVolume volume = Claim(VolumeMode::kBlock);
  ASSERT_EQ(Stage(volume), "");
  ASSERT_EQ(Publish(volume), "");
  EXPECT_THAT(Delete(volume), HasSubstr(kStillHere));
  Restart();
  EXPECT_THAT(Delete(volume), HasSubstr(kStillHere));
  EXPECT_THAT(Loops(), SizeIs(1)) << "a pod has it";
  EXPECT_EQ(Unpublish(volume), "");
  EXPECT_EQ(Unstage(volume), "");
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_EQ(Delete(volume), "");
}

// As udev does for a moment. It is unmounted by then, and the next try has nothing else to do.
TEST_F(PoolOperationsTest, ADeviceThatSomebodyElseHasOpenGoesWithTheFirstTryAfterThat) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(Stage(volume), "");
  ASSERT_THAT(Loops(), SizeIs(1));
  auto held = std::make_shared<const Descriptor>();
  node_.ChangeDevice(Loops()[0].path, [&](FakeDevice& device) { device.pins.push_back(held); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Unstage(volume), HasSubstr("somebody still has " + Loops()[0].path + " open"));
    const DeviceRecord left = devices_->Find(NameOf(volume)).value();
    EXPECT_EQ(left.state, VolumeState::kUnmountingDevice);
    const auto there = Must(node_.DoAside(ListMounts{.below = left.device_mount_path}));
    EXPECT_THAT(std::get<MountListing>(there).mounts, IsEmpty());
  }
  EXPECT_THAT(Delete(volume), HasSubstr(kStillHere));
  held.reset();
  EXPECT_EQ(Unstage(volume), "");
  EXPECT_THAT(Loops(), IsEmpty());
  EXPECT_EQ(Delete(volume), "");
}

TEST_F(PoolOperationsTest, AnotherPersistentVolumeWithTheHandleKeepsIt) {
  const PersistentVolume volume = Claim();
  PersistentVolume other = volume;
  other.metadata.name = "by-hand";
  ReclaimRequest request{std::make_shared<const PersistentVolume>(volume), ReclaimAction::kDelete};
  request.others = {std::make_shared<const PersistentVolume>(other)};
  EXPECT_THAT(Start(ReclaimVolume(request)), HasSubstr("persistent volume by-hand"));
  EXPECT_THAT(volumes_->List("", 10).volumes, SizeIs(1));
}

TEST_F(PoolOperationsTest, ADeleteHasTheDeviceOfTheVolumeForItself) {
  const PersistentVolume volume = Claim();
  const OperationTraits traits = DeleteOf(volume).Traits(Parts());
  EXPECT_EQ(traits.device, NameOf(volume));
  EXPECT_EQ(traits.use, DeviceUse::kExclusive);
}

TEST_F(PoolOperationsTest, EffectsOnAVolumeHangWithItsPool) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(Stage(volume), "");
  EXPECT_EQ(devices_->Find(NameOf(volume))->fault_domain, kPoolPath);
  for (const char* effect : {"AttachLoop", "FormatDevice", "Mount"}) {
    EXPECT_THAT(kernel_.DomainsOf(effect), Each(kPoolPath)) << effect;
    EXPECT_THAT(kernel_.DomainsOf(effect), Contains(kPoolPath)) << effect;
  }
}

// A pod that looks at the node's whole tree kept every new volume of a pool from its format.
TEST_F(PoolOperationsTest, APodThatSeesTheWholeNodeKeepsNoVolumeFromBeingFormatted) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(TakeWholeNode(), "");
  EXPECT_EQ(Stage(volume), "");
}

TEST_F(PoolOperationsTest, APodThatSeesTheWholeNodeAndOneWithABlockVolumeAreBesideEachOther) {
  const PersistentVolume volume = Claim(VolumeMode::kBlock);
  ASSERT_EQ(TakeWholeNode(), "");
  ASSERT_EQ(Stage(volume), "");
  EXPECT_EQ(Publish(volume), "");
  ASSERT_TRUE(guard_->Release("pod/watcher/node").ok());
  EXPECT_EQ(TakeWholeNode(), "");
}

TEST_F(PoolOperationsTest, TheFileOfABlockVolumeIsNobodyElses) {
  const PersistentVolume volume = Claim(VolumeMode::kBlock);
  ASSERT_EQ(Stage(volume), "");
  ASSERT_EQ(Publish(volume), "");
  StorageHolder pod;
  pod.id = "pod/thief/image";
  pod.volume = pod.id;
  pod.use = StorageUse::kShared;
  pod.text = "volume image of pod thief";
  const std::string image = PoolWorld::ImageOf(Must(PoolVolumeIdOf(SpecOf(volume), kDriver)));
  const Result<StorageIdentity> taken = guard_->Take(pod, {image}, {});
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().message(), HasSubstr("which a pod has as a block device"));
}

TEST_F(PoolOperationsTest, AVolumeIsMountedAgainAfterARebootAndNotFormatted) {
  const PersistentVolume volume = Claim();
  ASSERT_EQ(Stage(volume), "");
  const PoolFilesystem before = volumes_->List("", 1).volumes.at(0).filesystem;
  node_.Reboot();
  store_.PowerLoss();
  Restart("boot-b");
  EXPECT_THAT(Loops(), IsEmpty());
  ASSERT_EQ(Stage(volume), "");
  ASSERT_THAT(Loops(), SizeIs(1));
  EXPECT_EQ(node_.Device(Loops()[0].path).formats, 1);
  EXPECT_EQ(volumes_->List("", 1).volumes.at(0).filesystem, before);
}

TEST_F(PoolOperationsTest, ADeviceOnRecordStaysOpenWhenANewAgentClosesWhatNobodyHas) {
  const PersistentVolume volume = Claim(VolumeMode::kBlock);
  ASSERT_EQ(Stage(volume), "");
  const std::vector<LoopEntry> before = Loops();
  Restart();
  EXPECT_EQ(Loops(), before);
}

}  // namespace
}  // namespace volumed
