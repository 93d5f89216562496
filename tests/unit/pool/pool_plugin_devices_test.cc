// PoolPlugin over FakeKernel: volumes that pods have as a device, that grow, and that are deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "blockmapper/volume_path_handler.h"
#include "unit/pool/pool_plugin_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// ---- as a device --------------------------------------------------------------------------------

TEST_F(PoolPluginTest, ABlockVolumeIsItsLoopDevice) {
  const ClaimedVolume claimed = ClaimBlock();
  EXPECT_EQ(std::get<CsiPersistentVolumeSource>(claimed.volume.spec.source).fs_type, "");
  const auto mapper = agent_.Mapper(claimed.Spec());
  EXPECT_EQ(Must(mapper->GetGlobalMapPath(claimed.Spec())).Display(),
            PoolPluginAgent::MapPlace(claimed.id()));
  EXPECT_EQ(Must(mapper->AsCustom()->SetUpDevice({})), "");
  ASSERT_THAT(node_.Loops(), SizeIs(1));
  EXPECT_EQ(Must(mapper->AsCustom()->MapPodDevice({})), node_.Loops()[0].path);
  EXPECT_THAT(node_.Loops(), SizeIs(1));
  EXPECT_TRUE(node_.Rows().at(0).used);
  Expect(agent_.TearDownDevice(claimed));
  Expect(agent_.TearDownDevice(claimed));
  EXPECT_THAT(node_.Loops(), IsEmpty());
}

TEST_F(PoolPluginTest, ABlockVolumeIsNeverMountedAndAnotherNeverGivenRaw) {
  ClaimedVolume block = ClaimBlock();
  block.volume.spec.volume_mode = VolumeMode::kFilesystem;  // as somebody has written it
  ExpectRefused(agent_.MountDevice(block.Spec()), Code::kInvalidArgument, "as a block volume");
  ClaimedVolume directory = Claim(ClaimOptions("pvc-2"));
  directory.volume.spec.volume_mode = VolumeMode::kBlock;
  const auto mapper = agent_.Mapper(directory.Spec());
  ExpectRefused(mapper->AsCustom()->SetUpDevice({}), Code::kInvalidArgument, "is no block volume");
  EXPECT_THAT(node_.Loops(), IsEmpty());
}

// ---- growth -------------------------------------------------------------------------------------

TEST_F(PoolPluginTest, AMountedVolumeGrowsWithItsDeviceAndItsFilesystem) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  EXPECT_EQ(Must(agent_.Expand(claimed, 32 * kMiB - 1)).Value(), 32 * kMiB);
  EXPECT_EQ(Device().identity.size_bytes, 32 * kMiB);
  EXPECT_EQ(Device().fs_bytes, 16 * kMiB);
  EXPECT_TRUE(Must(agent_.NodeExpand(claimed, 32 * kMiB)));
  EXPECT_EQ(Device().fs_bytes, 32 * kMiB);
  EXPECT_EQ(node_.Rows().at(0).capacity_bytes, 32 * kMiB);
  EXPECT_EQ(Must(agent_.Expand(claimed, 32 * kMiB)).Value(), 32 * kMiB);
}

TEST_F(PoolPluginTest, AVolumeThatNobodyHasGrowsAndItsDeviceIsAsLargeWhenItComes) {
  const ClaimedVolume claimed = Claim();
  EXPECT_EQ(Must(agent_.Expand(claimed, 32 * kMiB)).Value(), 32 * kMiB);
  EXPECT_THAT(node_.Loops(), IsEmpty());
  Expect(agent_.MountDevice(claimed.Spec()));
  EXPECT_EQ(Device().identity.size_bytes, 32 * kMiB);
}

TEST_F(PoolPluginTest, ABlockVolumeGrowsAsADevice) {
  const ClaimedVolume claimed = ClaimBlock();
  EXPECT_EQ(Must(agent_.Mapper(claimed.Spec())->AsCustom()->SetUpDevice({})), "");
  EXPECT_EQ(Must(agent_.Expand(claimed, 32 * kMiB)).Value(), 32 * kMiB);
  EXPECT_TRUE(Must(agent_.NodeExpand(claimed, 32 * kMiB)));
  EXPECT_EQ(Device().identity.size_bytes, 32 * kMiB);
}

// Its file grew, and its pods waited for a size that it could not have while they had it.
TEST_F(PoolPluginTest, AMountedExtDoesNotGrowWithoutTheCapabilityForIt) {
  PoolPluginWorld node;
  node.features.grows_mounted_ext = false;
  PoolPluginAgent agent(node);
  Expect(agent.Recover());
  const ClaimedVolume claimed = Must(agent.Plan(ClaimOptions()));
  ASSERT_TRUE(agent.Make(claimed).ok());
  Expect(agent.MountDevice(claimed.Spec()));
  ExpectRefused(agent.Expand(claimed, 32 * kMiB), Code::kFailedPrecondition,
                "lacks the capability CAP_SYS_RESOURCE");
  EXPECT_EQ(node.Rows().at(0).capacity_bytes, 16 * kMiB);
  Expect(agent.UnmountDevice(claimed.id()));
  EXPECT_EQ(Must(agent.Expand(claimed, 32 * kMiB)).Value(), 32 * kMiB);
}

TEST_F(PoolPluginTest, AVolumeDoesNotGrowBeyondWhatThePoolCanPromise) {
  node_.kernel.LimitFilesystem(kPoolPath, 64 * kMiB);
  const ClaimedVolume claimed = Claim();
  ExpectRefused(agent_.Expand(claimed, 1024 * kMiB), Code::kResourceExhausted, "can promise");
  EXPECT_EQ(node_.Rows().at(0).capacity_bytes, 16 * kMiB);
}

// ---- deleting -----------------------------------------------------------------------------------

TEST_F(PoolPluginTest, ADeletedVolumeLeavesNothing) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  Expect(agent_.UnmountDevice(claimed.id()));
  Expect(agent_.Delete(claimed));
  Expect(agent_.Delete(claimed));
  EXPECT_THAT(node_.Directories(), IsEmpty());
  EXPECT_THAT(node_.Rows(), IsEmpty());
}

TEST_F(PoolPluginTest, AVolumeThatIsMountedIsNotDeleted) {
  const ClaimedVolume claimed = Claim();
  Expect(agent_.MountDevice(claimed.Spec()));
  const Status refused = agent_.Delete(claimed);
  ExpectRefused(refused, Code::kFailedPrecondition, "is mounted at");
  EXPECT_TRUE(IsDeletedVolumeInUse(refused.error()));
  EXPECT_EQ(node_.Rows().at(0).state, PoolVolumeState::kReady);
  Expect(agent_.SetUp(claimed.Spec()));
}

TEST_F(PoolPluginTest, AVolumeWhoseDeviceAPodHasIsNotDeleted) {
  const ClaimedVolume claimed = ClaimBlock();
  const auto mapper = agent_.Mapper(claimed.Spec());
  const std::string device = Must(mapper->AsCustom()->MapPodDevice({}));
  const IdentifiedDevice found = node_.Aside(IdentifyDevice{.path = {device, ""}});
  Expect(VolumePathHandler(node_.kernel)
             .MapDeviceByBind(found, Must(mapper->GetGlobalMapPath(claimed.Spec())), "u1", {}));
  const Status refused = agent_.Delete(claimed);
  ExpectRefused(refused, Code::kFailedPrecondition, "pod u1 has the device");
  EXPECT_TRUE(IsDeletedVolumeInUse(refused.error()));
  EXPECT_EQ(node_.Rows().at(0).state, PoolVolumeState::kReady);
}

TEST_F(PoolPluginTest, WhatLiesInAVolumesDirectoryWasSaidToKeepAPodsDirectory) {
  const ClaimedVolume claimed = Claim();
  node_.kernel.AddFile(kPoolPath + "/volumes/" + claimed.id() + "/notes", "somebody's");
  const Status refused = agent_.Delete(claimed);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("notes is not the agent's"));
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("pod")));
}

TEST_F(PoolPluginTest, AVolumeThatWasWrittenDownByHandIsNotDeletedWithIt) {
  ClaimedVolume claimed = Claim();
  claimed.volume.metadata.annotations.clear();
  ExpectRefused(agent_.Delete(claimed), Code::kFailedPrecondition,
                "does not say that pool.volumed.io has made it");
  EXPECT_THAT(node_.Rows(), SizeIs(1));
}

TEST_F(PoolPluginTest, NothingIsMadeOrDeletedWhileRecordsAreInDoubt) {
  const ClaimedVolume claimed = Claim();
  const ClaimedVolume planned = Must(agent_.Plan(ClaimOptions("pvc-2")));
  agent_.irreversible.hold = true;
  ExpectRefused(agent_.Make(planned), Code::kFailedPrecondition, "provision pvc-2 is held back");
  ExpectRefused(agent_.Delete(claimed), Code::kFailedPrecondition, "delete pvc-1 is held back");
  EXPECT_THAT(node_.Rows(), SizeIs(1));
}

}  // namespace
}  // namespace volumed
