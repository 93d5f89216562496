// iscsi: logging in, mounting, and taking all of it away again, on a fake open-iscsi.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit/plugins/iscsi_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(IscsiTest, ADiskIsLoggedInToMountedAndTakenAwayAgain) {
  Mount();
  EXPECT_TRUE(kernel_.IsMountPoint(kPlace));
  EXPECT_THAT(FakeIscsiSessions(kernel_),
              ElementsAre("session1 iqn.2026-01.lab:t 10.0.0.1:3260 default"));
  EXPECT_EQ(kernel_.Device("/dev/sdb").formats, 0);
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  ExpectNothingLeft();
  EXPECT_TRUE(UnmountDevice().ok()) << "once more";
}

TEST_F(IscsiTest, TheAnswerIsUdevsLinkAndASecondWaitLogsInToNothing) {
  EXPECT_EQ(WaitForAttach(Spec()).value(), kByPath);
  const size_t calls = FakeIscsiCalls(kernel_).size();
  EXPECT_EQ(WaitForAttach(Spec()).value(), kByPath);
  EXPECT_EQ(FakeIscsiCalls(kernel_).size(), calls + 1) << "the interface is looked at";
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U);
}

TEST_F(IscsiTest, TheFileIsThereBeforeTheFirstLoginAndBeneathTheMount) {
  bool file_first = false;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* program = std::get_if<RunProgram>(&request);
    if (program != nullptr && program->arguments.back() == "--login") {
      file_first = kernel_.Exists(std::string(kPlace) + "/iscsi.json");
    }
  });
  Mount();
  EXPECT_TRUE(file_first);
  EXPECT_FALSE(kernel_.Exists(std::string(kPlace) + "/iscsi.json")) << "the mount covers it";
  kernel_.UnmountBelow(kPlace);
  EXPECT_TRUE(kernel_.Exists(std::string(kPlace) + "/iscsi.json"));
}

TEST_F(IscsiTest, ASessionIsSharedAndEndsWithItsLastDisk) {
  Mount(1);
  Mount(2);
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U);
  ASSERT_TRUE(UnmountDevice().ok());
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U) << "LUN 2 is used";
  EXPECT_FALSE(kernel_.Exists("/dev/sdb"));
  EXPECT_TRUE(kernel_.Exists("/dev/sdc"));
  std::string other = kPlace;
  other.back() = '2';
  ASSERT_TRUE(UnmountDevice(other).ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, AVolumeThatIsAboutToLogInKeepsTheSession) {
  Mount(1);
  // Its file is written, and its LUN is not scanned yet.
  std::string other = kPlace;
  other.back() = '2';
  IscsiDisk disk = IscsiVolumeOf(Spec(2)).value().disk;
  kernel_.AddFile(other + "/iscsi.json", EncodeIscsiDisk(disk));
  ASSERT_TRUE(UnmountDevice().ok());
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U);
}

// Of a mounted volume only the portal is known that its place names.
TEST_F(IscsiTest, TheDiskOfAnotherVolumeWithItsPortalsInAnotherOrderWasTakenAway) {
  source_.target_portal = "10.0.0.2";
  source_.portals = {"10.0.0.1"};
  Mount();
  source_.target_portal = "10.0.0.1";
  source_.portals = {"10.0.0.2"};
  const IscsiDisk disk = IscsiVolumeOf(Spec()).value().disk;
  kernel_.AddFile(std::string(kPlace) + "/iscsi.json", EncodeIscsiDisk(disk));
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_FALSE(kernel_.Exists(kPlace));
  for (const char* path : {"/dev/sdb", "/dev/sdbb"}) EXPECT_TRUE(kernel_.Exists(path)) << path;
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 2U);
  EXPECT_THAT(FakeIscsiMistakes(kernel_), IsEmpty());
}

TEST_F(IscsiTest, ADiskThatSomebodyUsesIsNotTakenAway) {
  Mount();
  kernel_.UnmountBelow(kPlace);
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& disk) { disk.claimed = true; });
  const Status refused = UnmountDevice();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(refused.error().maybe_applied()) << "its mount is gone";
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U);
  EXPECT_TRUE(kernel_.Exists(std::string(kPlace) + "/iscsi.json"));
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& disk) { disk.claimed = false; });
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, ABlankDiskIsFormattedOnceAndByIntent) {
  AddFakeLun(kernel_, *target_, 1, FakeDevice());
  Mount();
  EXPECT_EQ(kernel_.Device("/dev/sdb").formats, 1);
  ASSERT_TRUE(UnmountDevice().ok());
  Mount();
  EXPECT_EQ(kernel_.Device("/dev/sdb").formats, 1);
}

// ---- CHAP ---------------------------------------------------------------------------------------

TEST_F(IscsiTest, ASecretIsSeenNowhereButInTheRecords) {
  UseChap();
  PutChapSecret(kCanary);
  target_->chap_discovery = true;
  source_.chap_auth_discovery = true;
  Mount();
  const std::string record = "/etc/iscsi/nodes/iqn.2026-01.lab:t/10.0.0.1,3260,1/default";
  EXPECT_THAT(kernel_.Find(record).content, HasSubstr(kCanary));
  EXPECT_EQ(kernel_.Find(record).mode, 0600U);
  EXPECT_FALSE(kernel_.Exists("/etc/iscsi/send_targets/10.0.0.1,3260")) << "it was ours";
  EXPECT_THAT(kernel_.CallLogText(), Not(HasSubstr(kCanary)));
  for (const std::string& line : FakeIscsiCalls(kernel_))
    EXPECT_THAT(line, Not(HasSubstr(kCanary)));
  kernel_.UnmountBelow(kPlace);
  EXPECT_THAT(kernel_.Find(std::string(kPlace) + "/iscsi.json").content, Not(HasSubstr(kCanary)));
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, ARefusedLoginSaysWhyAndLeavesNoSecretBehind) {
  UseChap();
  PutChapSecret("wrong-" + std::string(kCanary));
  const auto device = WaitForAttach(Spec());
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), Code::kUnauthenticated);
  EXPECT_THAT(device.error().message(), HasSubstr("see the CHAP secret"));
  EXPECT_THAT(device.error().message(), Not(HasSubstr(kCanary)));
  EXPECT_THAT(FakeIscsiNodes(kernel_), IsEmpty());
  EXPECT_TRUE(device.error().maybe_applied()) << "its directory is there";
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, WithoutItsSecretNothingIsBegun) {
  UseChap();
  const auto missing = WaitForAttach(Spec());
  ASSERT_FALSE(missing.ok());
  EXPECT_FALSE(missing.error().maybe_applied());
  EXPECT_THAT(FakeIscsiCalls(kernel_), IsEmpty());
  PutChapSecret(kCanary);
  source_.secret_ref.reset();
  EXPECT_THAT(WaitForAttach(Spec()).error().message(),
              HasSubstr("CHAP enabled but secret name is empty"));
}

// Kubernetes' own examples have a type of its own, and nothing that asks for it.
TEST_F(IscsiTest, AChapSecretOfAnyTypeWasRefused) {
  for (const char* type : {"Opaque", "kubernetes.io/iscsi", "kubernetes.io/iscsi-chap"}) {
    UseChap();
    PutChapSecret(kCanary);
    world_.objects.SetSecretType("chap", type);
    const auto device = WaitForAttach(Spec());
    EXPECT_TRUE(device.ok()) << type << ": " << device.error().ToString();
    ASSERT_TRUE(UnmountDevice().ok());
  }
}

// ---- several portals ----------------------------------------------------------------------------

TEST_F(IscsiTest, TwoPathsAreUsedThroughTheirMultipathDevice) {
  target_->multipath = true;
  source_.portals = {"10.0.0.2"};
  EXPECT_THAT(WaitForAttach(Spec()).value(), HasSubstr("/dev/disk/by-id/dm-uuid-mpath-3600140"));
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 2U);
  Mount();
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_FALSE(kernel_.Exists("/dev/dm-1"));
  ExpectNothingLeft();
}

// Seen on a slow node: the wait ended when multipathd had the device and udevd had not; a path of
// it was given out, which could not be formatted, and the pod was told of a single path.
TEST_F(IscsiTest, OfAMultipathDeviceWithoutItsLinkNoPathIsUsed) {
  target_->multipath = true;
  target_->names_multipath = false;
  source_.portals = {"10.0.0.2"};
  EXPECT_EQ(WaitForAttach(Spec()).value(), "/dev/dm-1");
  EXPECT_THAT(EventText(), Not(HasSubstr("IscsiSinglePath")));
  Mount();
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  ExpectNothingLeft();
}

TEST_F(IscsiTest, WithoutMultipathASinglePathIsUsedAndThePodHearsOfIt) {
  source_.portals = {"10.0.0.2"};
  EXPECT_EQ(WaitForAttach(Spec()).value(), kByPath);
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 2U);
  EXPECT_THAT(EventText(), HasSubstr("IscsiSinglePath"));
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, APortalThatIsDeadIsDoneWithout) {
  source_.portals = {"10.0.0.2"};
  target_->dead_portals = {"10.0.0.1:3260"};
  const auto device = WaitForAttach(Spec());
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_THAT(*device, HasSubstr("ip-10.0.0.2:3260"));
  EXPECT_THAT(EventText(), HasSubstr("1 of 2 portals"));
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

// The kernel has no address of a connection that is down.
TEST_F(IscsiTest, APathThatIsDownHidesNoOther) {
  target_->multipath = true;
  source_.portals = {"10.0.0.2"};
  Mount();
  const size_t calls = FakeIscsiCalls(kernel_).size();
  for (const char* attribute : {"/address", "/port"}) {
    kernel_.FailNextBelow("ReadFile",
                          std::string("/sys/class/iscsi_connection/connection2:0") + attribute,
                          Error::FromErrno(ENOTCONN, "read", Outcome::kNotApplied), 100);
  }
  const auto device = WaitForAttach(Spec());
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_THAT(*device, HasSubstr("/dev/disk/by-id/dm-uuid-mpath-3600140"));
  EXPECT_EQ(FakeIscsiCalls(kernel_).size(), calls + 1) << "the interface is looked at";
  const Status gone = UnmountDevice();
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  ExpectNothingLeft();
}

// ---- what is missing ----------------------------------------------------------------------------

TEST_F(IscsiTest, WhatIsMissingIsNamed) {
  target_->daemon_runs = false;
  EXPECT_THAT(WaitForAttach(Spec()).error().message(), HasSubstr("iscsid.service"));
  ASSERT_TRUE(UnmountDevice().ok());
  target_->daemon_runs = true;
  source_.iqn = "iqn.2026-01.lab:other";
  EXPECT_THAT(WaitForAttach(Spec()).error().message(), HasSubstr("offers no target"));
  source_.iqn = target_->iqn;
  EXPECT_THAT(WaitForAttach(Spec(7)).error().message(), HasSubstr("shows no disk as LUN 7"));
  kernel_.Remove(kFakeIscsiadm);
  const auto missing = WaitForAttach(Spec());
  ASSERT_FALSE(missing.ok());
  EXPECT_FALSE(missing.error().maybe_applied());
  EXPECT_THAT(missing.error().message(), HasSubstr("need the package open-iscsi"));
}

TEST_F(IscsiTest, ADiskOfAnotherTargetBehindTheLinkIsRefused) {
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  kernel_.AddDevice("/dev/sdz", WithFilesystem());
  kernel_.Remove(kByPath);
  kernel_.AddSymlink(kByPath, "../../sdz");
  const auto device = WaitForAttach(Spec());
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(device.error().message(), HasSubstr("device /dev/sdz"));
  EXPECT_THAT(device.error().message(), HasSubstr("is not LUN 1 of target"));
  EXPECT_THAT(MountDevice(Spec(), kByPath).error().message(), HasSubstr("is not LUN 1 of target"));
  EXPECT_FALSE(kernel_.IsMountPoint(kPlace));
}

// ---- sizes --------------------------------------------------------------------------------------

TEST_F(IscsiTest, AVolumeGrowsWithItsLun) {
  Mount();
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& disk) {
    disk.fs_bytes = disk.identity.size_bytes;
    disk.identity.size_bytes = int64_t{2} << 30;
  });
  NodeResizeOptions options{.spec = Spec(),
                            .device_path = "",
                            .device_mount_path = {kPlace, ""},
                            .device_stage_path = {kPlace, ""},
                            .new_size = Quantity::FromBytes(int64_t{2} << 30),
                            .old_size = Quantity::FromBytes(int64_t{1} << 30)};
  const auto grown = plugin_->NodeExpand(options, {});
  ASSERT_TRUE(grown.ok()) << grown.error().ToString();
  EXPECT_TRUE(*grown);
  EXPECT_EQ(kernel_.Device("/dev/sdb").fs_bytes, int64_t{2} << 30);
  EXPECT_EQ(kernel_.Find("/fake-iscsi/rescans").content, "/dev/sdb\n");
  options.new_size = Quantity::FromBytes(int64_t{4} << 30);
  EXPECT_EQ(plugin_->NodeExpand(options, {}).error().code(), Code::kResourceExhausted);
}

TEST_F(IscsiTest, WhatItSaysOfItself) {
  EXPECT_EQ(plugin_->FaultDomain(Spec()), "iscsi:10.0.0.1:3260");
  EXPECT_EQ(plugin_->GetVolumeName(Spec()).value(), "10.0.0.1:3260:iqn.2026-01.lab:t:1");
  EXPECT_TRUE(plugin_->VerifiesAttachments());
  EXPECT_EQ(UnmountDevice("/r/plugins/kubernetes.io/iscsi/other").error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
