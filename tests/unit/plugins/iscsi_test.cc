// iscsi: logging in, mounting, and taking all of it away again, on a fake open-iscsi.
#include "plugins/iscsi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_device_finder.h"
#include "fakes/fake_kernel.h"
#include "fakes/fake_open_iscsi.h"
#include "fakes/memory_format_intents.h"
#include "fakes/simulated_crash.h"
#include "pluginmgr/wrapper_volumes.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kPlace[] =
    "/r/plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-iqn.2026-01.lab:t-lun-1";
constexpr char kMapPlace[] =
    "/r/plugins/kubernetes.io/iscsi/volumeDevices/iface-default/"
    "10.0.0.1:3260-iqn.2026-01.lab:t-lun-1";
constexpr char kByPath[] = "/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-iqn.2026-01.lab:t-lun-1";
constexpr char kCanary[] = "canary-4711-geheim";

FakeDevice WithFilesystem() {
  FakeDevice device;
  device.fs_type = "ext4";
  device.usage = "filesystem";
  device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  return device;
}

class IscsiTest : public ::testing::Test {
 protected:
  IscsiTest() : world_(kernel_, "/r"), finder_(kernel_) {
    kernel_.AddDirectory("/r/plugins", 0750);
    target_->portals = {"10.0.0.1:3260", "10.0.0.2:3260"};
    target_->luns = {{1, "/dev/sdb"}, {2, "/dev/sdc"}};
    InstallFakeOpenIscsi(kernel_, target_);
    AddFakeLun(kernel_, *target_, 1, WithFilesystem());
    AddFakeLun(kernel_, *target_, 2, WithFilesystem());
    volume_.metadata.name = "disk";
    source_.target_portal = "10.0.0.1";
    source_.iqn = target_->iqn;
    source_.lun = 1;
    IscsiSettings settings;
    settings.formats.format_intents = &intents_;
    settings.devices = &finder_;
    plugin_ = std::make_unique<IscsiPlugin>(settings);
    EXPECT_TRUE(plugin_->Init(PluginContext{world_.host, wrappers_}).ok());
  }

  VolumeSpec Spec(int32_t lun = 1) {
    source_.lun = lun;
    volume_.spec.source = source_;
    return VolumeSpec::FromPersistentVolume(volume_, false);
  }
  Result<std::string> WaitForAttach(const VolumeSpec& spec) {
    return plugin_->NewAttacher().value()->WaitForAttach(spec, "", MakePod(), {});
  }
  Status MountDevice(const VolumeSpec& spec, const std::string& device) {
    const auto mounter = plugin_->NewDeviceMounter().value();
    return mounter->MountDevice(spec, device, mounter->GetDeviceMountPath(spec).value(), {});
  }
  void Mount(int32_t lun = 1) {
    const VolumeSpec spec = Spec(lun);
    const auto device = WaitForAttach(spec);
    ASSERT_TRUE(device.ok()) << device.error().ToString();
    const Status mounted = MountDevice(spec, *device);
    ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  }
  Status UnmountDevice(const std::string& place = kPlace) {
    const SafePath path{"/r", place.substr(3)};
    return plugin_->NewDeviceUnmounter().value()->UnmountDevice(path, {});
  }
  void UseChap() {
    target_->chap_user = "user";
    target_->chap_password = kCanary;
    source_.chap_auth_session = true;
    source_.secret_ref = SecretReference{"chap", ""};
  }
  void PutChapSecret(const std::string& password) {
    world_.objects.PutSecret("chap", {{"node.session.auth.username", "user"},
                                      {"node.session.auth.password", password},
                                      {"discovery.sendtargets.auth.username", "user"},
                                      {"discovery.sendtargets.auth.password", password}});
    world_.objects.SetSecretType("chap", "kubernetes.io/iscsi-chap");
  }
  std::string EventText() const {
    std::string text;
    for (const KeptEvent& event : world_.events.Snapshot(PodUid("u1"))) {
      text += event.reason + ": " + event.message + "\n";
    }
    return text;
  }
  void ExpectNothingLeft() {
    EXPECT_THAT(FakeIscsiSessions(kernel_), IsEmpty());
    EXPECT_THAT(FakeIscsiNodes(kernel_), IsEmpty());
    EXPECT_THAT(FakeIscsiMistakes(kernel_), IsEmpty());
    EXPECT_FALSE(kernel_.Exists("/dev/sdb"));
    EXPECT_FALSE(kernel_.Exists(kPlace));
  }

  FakeKernel kernel_;
  PluginWorld world_;
  FakeDeviceFinder finder_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  MemoryFormatIntents intents_;
  std::shared_ptr<FakeIscsiTarget> target_ = std::make_shared<FakeIscsiTarget>();
  PersistentVolume volume_;
  IscsiPersistentVolumeSource source_;
  std::unique_ptr<IscsiPlugin> plugin_;
};

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

// ---- restarts -----------------------------------------------------------------------------------

TEST_F(IscsiTest, WithoutItsFileTheNameOfThePlaceSuffices) {
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  kernel_.AddFile(std::string(kPlace) + "/iscsi.json", "{\"Portals");
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, ASpecIsReadBackFromTheLayout) {
  Mount();
  const VolumeSpec spec = Spec();
  kernel_.AddDirectory("/r/pods/u1/volumes", 0750);
  MounterArgs args;
  const auto mounter = plugin_->NewMounter(spec, std::make_shared<const Pod>(MakePod())).value();
  ASSERT_TRUE(mounter->SetUp(args).ok());
  const auto found = plugin_->ConstructVolumeSpec(SpecName("disk"), mounter->GetSafePath(), {});
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(plugin_->GetVolumeName(found->spec).value(), "10.0.0.1:3260:iqn.2026-01.lab:t:1");
  EXPECT_EQ(plugin_->NewDeviceMounter().value()->GetDeviceMountPath(found->spec)->Display(),
            kPlace);
  const auto unmounter = plugin_->NewUnmounter(SpecName("disk"), PodUid("u1")).value();
  ASSERT_TRUE(unmounter->TearDown({}).ok());
  EXPECT_EQ(
      plugin_->ConstructVolumeSpec(SpecName("disk"), mounter->GetSafePath(), {}).error().code(),
      Code::kNotFound);
}

TEST_F(IscsiTest, ABlockVolumeHasAPlaceOfItsOwnAndGoesAsWell) {
  volume_.spec.volume_mode = VolumeMode::kBlock;
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  EXPECT_TRUE(kernel_.Exists(std::string(kMapPlace) + "/iscsi.json"));
  const auto unmapper = plugin_->NewBlockVolumeUnmapper(SpecName("disk"), PodUid()).value();
  const SafePath place = unmapper->GetGlobalMapPath(Spec()).value();
  EXPECT_EQ(place.Display(), kMapPlace);
  ASSERT_TRUE(unmapper->AsCustom()->TearDownDevice(place, "", {}).ok());
  EXPECT_THAT(FakeIscsiSessions(kernel_), IsEmpty());
  EXPECT_THAT(FakeIscsiMistakes(kernel_), IsEmpty());
  EXPECT_TRUE(kernel_.Exists(kMapPlace)) << "the caller's";
}

// A walk by hand: the agent ends before or after each call of a mount, and another one takes all of
// it away.
TEST_F(IscsiTest, WhereverItIsCutOffAllOfItCanBeTakenAway) {
  const auto mount_at = [&](FakeKernel& kernel) {
    PluginWorld world(kernel, "/r");
    FakeDeviceFinder finder(kernel);
    IscsiSettings settings;
    settings.formats.format_intents = &intents_;
    settings.devices = &finder;
    IscsiPlugin plugin(settings);
    ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
    const auto attacher = plugin.NewAttacher().value();
    const auto device = attacher->WaitForAttach(Spec(), "", MakePod(), {});
    if (device.ok()) {
      (void)attacher->MountDevice(Spec(), *device, attacher->GetDeviceMountPath(Spec()).value(),
                                  {});
    }
  };
  source_.portals = {"10.0.0.2"};
  const auto probe = kernel_.Clone();
  InstallFakeOpenIscsi(*probe, target_);
  mount_at(*probe);
  const uint64_t calls = probe->call_count();
  ASSERT_GT(calls, 20U);
  for (uint64_t at = 1; at <= calls; ++at) {
    for (const auto point : {FakeKernel::CrashPoint::kBefore, FakeKernel::CrashPoint::kAfter}) {
      const auto kernel = kernel_.Clone();
      kernel->CrashAtCall(at, point);
      try {
        mount_at(*kernel);
      } catch (const SimulatedCrash&) {
      }
      kernel->Revive();
      PluginWorld world(*kernel, "/r");
      FakeDeviceFinder finder(*kernel);
      IscsiSettings settings;
      settings.devices = &finder;
      IscsiPlugin plugin(settings);
      ASSERT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
      const Status gone = plugin.NewDeviceUnmounter().value()->UnmountDevice(
          {"/r", std::string(kPlace).substr(3)}, {});
      ASSERT_TRUE(gone.ok()) << "call " << at << ": " << gone.error().ToString();
      EXPECT_THAT(FakeIscsiSessions(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiNodes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiMistakes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_FALSE(kernel->Exists(kPlace)) << "call " << at;
    }
  }
}

TEST_F(IscsiTest, ATeardownThatIsCutOffIsFinishedByTheNext) {
  Mount(1);
  const auto unmount_at = [&](FakeKernel& kernel) {
    PluginWorld world(kernel, "/r");
    FakeDeviceFinder finder(kernel);
    IscsiSettings settings;
    settings.devices = &finder;
    IscsiPlugin plugin(settings);
    EXPECT_TRUE(plugin.Init(PluginContext{world.host, wrappers_}).ok());
    return plugin.NewDeviceUnmounter().value()->UnmountDevice({"/r", std::string(kPlace).substr(3)},
                                                              {});
  };
  const auto probe = kernel_.Clone();
  probe->Revive();
  ASSERT_TRUE(unmount_at(*probe).ok());
  const uint64_t calls = probe->call_count();
  ASSERT_GT(calls, 10U);
  for (uint64_t at = 1; at <= calls; ++at) {
    for (const auto point : {FakeKernel::CrashPoint::kBefore, FakeKernel::CrashPoint::kAfter}) {
      const auto kernel = kernel_.Clone();
      kernel->Revive();
      kernel->CrashAtCall(at, point);
      try {
        (void)unmount_at(*kernel);
      } catch (const SimulatedCrash&) {
      }
      kernel->Revive();
      const Status gone = unmount_at(*kernel);
      ASSERT_TRUE(gone.ok()) << "call " << at << ": " << gone.error().ToString();
      EXPECT_THAT(FakeIscsiSessions(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiNodes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_THAT(FakeIscsiMistakes(*kernel), IsEmpty()) << "call " << at;
      EXPECT_FALSE(kernel->Exists(kPlace)) << "call " << at;
    }
  }
}

TEST_F(IscsiTest, ALoginThatHangsEndsAtItsDeadlineAndIsTakenBack) {
  int logins = 0;
  kernel_.SetCallHook([&](const AnyRequest& request) {
    const auto* program = std::get_if<RunProgram>(&request);
    if (program == nullptr || program->arguments.back() != "--login") return;
    if (++logins == 1) {
      kernel_.FailNext("RunProgram", Error::MaybeApplied(Code::kDeadlineExceeded, "hung"), 1, true);
    }
  });
  const auto device = WaitForAttach(Spec());
  ASSERT_FALSE(device.ok());
  EXPECT_TRUE(device.error().maybe_applied());
  kernel_.SetCallHook(nullptr);
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
}

TEST_F(IscsiTest, ADiskThatDoesNotAnswerKeepsItsSessionUntilItDoes) {
  Mount();
  kernel_.Hang("/dev/sdb");
  const Status hung = UnmountDevice();
  ASSERT_FALSE(hung.ok());
  EXPECT_EQ(hung.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(hung.error().maybe_applied());
  EXPECT_EQ(FakeIscsiSessions(kernel_).size(), 1U);
  EXPECT_TRUE(kernel_.Exists(std::string(kPlace) + "/iscsi.json"));
  kernel_.Unhang("/dev/sdb");
  ASSERT_TRUE(UnmountDevice().ok());
  ExpectNothingLeft();
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
  EXPECT_FALSE(plugin_->VerifiesAttachments());
  EXPECT_THAT(
      plugin_->NewAttacher().value()->VolumesAreAttached({Spec()}, NodeName("n"), {}).value(),
      ElementsAre(true));
  EXPECT_EQ(UnmountDevice("/r/plugins/kubernetes.io/iscsi/other").error().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
