// The CSI driver that the agent is, asked by csi-sanity: whatever it announces, the suite tries on
// the real daemon, whose pool is an xfs, or a btrfs for subvolumes, in a sparse file.
#include <gtest/gtest.h>

#include <string>

#include "interop/own_sanity_fixture.h"

namespace volumed::own_driver_sanity_test {
namespace {

// Of the 103 cases of csi-sanity 5.6.0, which is for level 1.13; one of them is pending in every
// run.
constexpr char kOfCentral[] = "102 Passed | 0 Failed | 1 Pending | 0 Skipped";
// What is of the newer level is not announced: the health of volumes, where snapshots are, and one
// RPC about them.
constexpr char kOfCentralAt12[] = "92 Passed | 0 Failed | 1 Pending | 10 Skipped";
constexpr char kNewerThan12[] =
    R"(ControllerGetVolumeHealth [Controller Server], should fail when no volume id is provided: ControllerGetVolumeHealth not supported
ControllerGetVolumeHealth [Controller Server], should return health for a valid volume: ControllerGetVolumeHealth not supported
ControllerListVolumeHealth [Controller Server], should return appropriate response: ControllerListVolumeHealth not supported
CreateSnapshot [Controller Server], should succeed when creating a snapshot with accessibility requirements: SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported
GetSnapshot [Controller Server], should return an error when the specified snapshot id does not exist: GetSnapshot not supported
GetSnapshot [Controller Server], should return an error: GetSnapshot not supported
GetSnapshot [Controller Server], should return snapshot that match the specified snapshot id: GetSnapshot not supported
Node Service, NodeGetStorageHealth, should return appropriate response: NodeGetStorageHealth not supported
Node Service, NodeGetVolumeHealth, should fail when no volume id is provided: NodeGetVolumeHealth not supported
Node Service, NodeGetVolumeHealth, should return health for a valid volume: NodeGetVolumeHealth not supported
)";
// What is for all nodes, and one case that is left out by name.
constexpr char kOfNode[] = "80 Passed | 0 Failed | 1 Pending | 22 Skipped";
constexpr char kLeftOutByNode[] =
    R"(Controller Service [Controller Server], ControllerPublishVolume, should fail when no node id is provided: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when no volume capability is provided: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when no volume id is provided: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when publishing more volumes than the node max attach limit: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when the node does not exist: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when the volume does not exist: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when the volume is already published but is incompatible: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerUnpublishVolume, should fail when no volume id is provided: ControllerUnpublishVolume not supported
Controller Service [Controller Server], CreateVolume, should create volume with a volume attribute class: Modify volume not supported
Controller Service [Controller Server], CreateVolume, should not create volume with an invalid volume attribute class: Modify Volume not supported
Controller Service [Controller Server], volume lifecycle, should be idempotent: Controller Publish, UnpublishVolume not supported
Controller Service [Controller Server], volume lifecycle, should work: Controller Publish, UnpublishVolume not supported
CreateSnapshot [Controller Server], should succeed when creating a snapshot with accessibility requirements: by name
ExpandVolume [Controller Server], should fail if no capacity range is given: ControllerExpandVolume not supported
ExpandVolume [Controller Server], should fail if no volume id is given: ControllerExpandVolume not supported
ExpandVolume [Controller Server], should work: ControllerExpandVolume not supported
ModifyVolume [Controller Server], should fail if no volume id is given: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should fail if specified mutable parameters are not supported by the volume: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should fail if volume does not exist: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should fail to modify a volume created with a volume attribute class if new mutable parameters are not supported by volume: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should modify a volume created with a volume attribute class: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should modify a volume created without a volume attribute class: ControllerModifyVolume not supported
)";
// The suite compares what it is told with a message that it has sent, sizes of its encoding
// included, which no answer equals: a driver that tells where its snapshots are fails it.
constexpr char kComparesEncodings[] =
    "should succeed when creating a snapshot with accessibility requirements";
// Of the 92 cases of csi-sanity 5.4.0, which is for level 1.12; the same one is pending.
constexpr char kOlderOfCentral[] = "91 Passed | 0 Failed | 1 Pending | 0 Skipped";

class OwnDriverSanityTest : public OwnSanityFixture {};

class OwnDriverOlderSanityTest : public OwnDriverSanityTest {
 protected:
  OwnDriverOlderSanityTest() { suite_ = "csi-sanity-5.4"; }
};

class OwnSubvolumesSanityTest : public OwnDriverSanityTest {
 protected:
  OwnSubvolumesSanityTest() {
    pool_filesystem_ = "btrfs";
    class_parameters_ = "backend: subvolume\n";
    changes_ = "quotaBytes: \"100000000\"\n";
  }
};

// Without a limit: that needs a kernel with project quotas.
class OwnDirectoriesSanityTest : public OwnDriverSanityTest {
 protected:
  OwnDirectoriesSanityTest() {
    class_parameters_ = "backend: directory\nquota: best-effort\n";
    changes_ = "{}\n";
  }
};

// What the two profiles leave out announces itself: it is skipped by the suite, and counted here.
TEST_F(OwnDriverSanityTest, HasNothingAgainstFilesystemsOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({}, kOfCentral);
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstBlockVolumesOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({"--csi.testvolumeaccesstype=block"}, kOfCentral);
}

TEST_F(OwnSubvolumesSanityTest, HasNothingAgainstThoseOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({}, kOfCentral);
}

TEST_F(OwnDirectoriesSanityTest, HasNothingAgainstThoseOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({}, kOfCentral);
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstADriverOfAnOlderLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  ExpectSanity({}, kOfCentralAt12, kNewerThan12);
}

TEST_F(OwnDriverOlderSanityTest, HasNothingAgainstFilesystemsOfADriverOfItsLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  ExpectSanity({}, kOlderOfCentral);
}

TEST_F(OwnDriverOlderSanityTest, HasNothingAgainstBlockVolumesOfADriverOfItsLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  ExpectSanity({"--csi.testvolumeaccesstype=block"}, kOlderOfCentral);
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstADriverOfItsNodeAlone) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("node"));
  ExpectSanity({"--ginkgo.skip=" + std::string(kComparesEncodings)}, kOfNode, kLeftOutByNode);
}

}  // namespace
}  // namespace volumed::own_driver_sanity_test
