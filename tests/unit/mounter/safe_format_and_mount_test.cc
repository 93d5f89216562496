#include "mounter/safe_format_and_mount.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_irreversible_steps.h"
#include "fakes/fake_kernel.h"
#include "fakes/memory_format_intents.h"
#include "fakes/simulated_crash.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDevice[] = "/dev/sdb";

class SafeFormatAndMountTest : public ::testing::Test {
 protected:
  SafeFormatAndMountTest() {
    kernel_.AddDirectory("/root/mnt");
    kernel_.AddDirectory("/root/mnt2");
    FakeDevice device;
    device.identity.stable_id = "wwid:sdb";
    kernel_.AddDevice(kDevice, device);
    request_.key = "v";
    request_.volume = "pv";
    request_.device = kDevice;
    request_.target = {"/root", "mnt"};
  }
  SafeMountReport Run() {
    return SafeFormatAndMount(kernel_, intents_, irreversible_).FormatAndMount(request_, {});
  }
  void PutFilesystem(const std::string& type, const std::string& uuid,
                     const std::string& path = kDevice) {
    kernel_.ChangeDevice(path, [&](FakeDevice& device) {
      device.fs_type = type;
      device.usage = "filesystem";
      device.identity.uuid = uuid;
    });
  }
  bool IsMounted() const { return kernel_.IsMountPoint("/root/mnt"); }

  FakeKernel kernel_;
  MemoryFormatIntents intents_;
  FakeIrreversibleSteps irreversible_;
  SafeMountRequest request_;
};

TEST_F(SafeFormatAndMountTest, ABlankDiskIsFormattedBetweenTwoRecordsAndMountedByIdentity) {
  const SafeMountReport report = Run();
  ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
  EXPECT_EQ(report.fs_type, "ext4");
  EXPECT_TRUE(report.formatted);
  EXPECT_TRUE(IsMounted());
  EXPECT_THAT(intents_.calls(), ElementsAre("begin v", "finish v"));
  EXPECT_EQ(report.device, kernel_.Device(kDevice).identity);
  EXPECT_EQ((*intents_.Find("v"))->fs_uuid, report.device.uuid);
  ASSERT_EQ(report.notices.size(), 1u);
  EXPECT_FALSE(report.notices[0].warning);
}

TEST_F(SafeFormatAndMountTest, ADiskThatIsToHaveAFilesystemAndIsBlankIsNotFormatted) {
  request_.fs_uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  const SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kFilesystemMismatch);
  EXPECT_THAT(report.status.error().message(), HasSubstr("none with a UUID"));
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
}

TEST_F(SafeFormatAndMountTest, ADiskIsMountedWithTheFilesystemThatItIsToHaveAndWithNoOther) {
  const std::string wanted = "6b1c6a5e-0000-4000-8000-000000000001";
  const std::string other = "6b1c6a5e-0000-4000-8000-000000000002";
  request_.fs_uuid = wanted;
  PutFilesystem("ext4", other);
  const SafeMountReport refused = Run();
  ASSERT_FALSE(refused.status.ok());
  EXPECT_THAT(refused.status.error().message(), HasSubstr(other));
  EXPECT_FALSE(IsMounted());
  PutFilesystem("ext4", wanted);
  EXPECT_TRUE(Run().status.ok());
  EXPECT_TRUE(IsMounted());
}

TEST_F(SafeFormatAndMountTest, NothingIsFormattedWithoutARecordOrMountedWithoutItsFinish) {
  intents_.FailNext("begin");
  SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_FALSE(report.status.error().maybe_applied());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
  intents_.FailNext("finish");
  report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_TRUE(report.status.error().maybe_applied());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 1);
  EXPECT_FALSE(IsMounted());
  // It is whole, and is not made again.
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 1);
  EXPECT_TRUE((*intents_.Find("v"))->finished);
}

TEST_F(SafeFormatAndMountTest, AFormatThatIsHeldBackLeavesNeitherAnIntentNorAFilesystem) {
  irreversible_.hold = true;
  const SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.status.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(report.status.error().message(), "mkfs pv is held back");
  EXPECT_EQ(report.error_type, MountErrorType::kFormatFailed);
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
  EXPECT_THAT(intents_.calls(), IsEmpty());
  irreversible_.hold = false;
  EXPECT_TRUE(Run().status.ok());
}

TEST_F(SafeFormatAndMountTest, ARepeatedFormatIsHeldBackToo) {
  request_.fs_type = "xfs";  // whose unfinished mkfs is known by a mark
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.cut_next_format = true; });
  ASSERT_FALSE(Run().status.ok());
  irreversible_.hold = true;
  const int formats = kernel_.Device(kDevice).formats;
  ASSERT_FALSE(Run().status.ok());
  EXPECT_EQ(kernel_.Device(kDevice).formats, formats);
  irreversible_.hold = false;
  EXPECT_TRUE(Run().status.ok());
}

TEST_F(SafeFormatAndMountTest, NobodyIsAskedBeforeAFilesystemIsMounted) {
  PutFilesystem("ext4", "u-1");
  irreversible_.hold = true;
  EXPECT_TRUE(Run().status.ok());
  EXPECT_THAT(irreversible_.asked, IsEmpty());
}

TEST_F(SafeFormatAndMountTest, AnUnreadableDiskIsNeverFormatted) {
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.unreadable = true; });
  const SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kGetDiskFormatFailed);
  EXPECT_EQ(report.status.error().sys_errno(), EIO);
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
  EXPECT_THAT(intents_.calls(), IsEmpty());
}

TEST_F(SafeFormatAndMountTest, AFullScanFindsWhatTheRegionsDoNot) {
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.hidden_data = "byte 0x01"; });
  request_.format_policy = FormatPolicy::kFullScan;
  SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.hidden_data.clear(); });
  EXPECT_TRUE(Run().status.ok());
}

TEST_F(SafeFormatAndMountTest, ACutFormatIsRepeatedAlsoAfterARebootAndKeepsItsUuid) {
  for (const char* type : {"xfs", "btrfs"}) {
    request_.key = request_.fs_type = type;
    request_.device = std::string("/dev/") + type;
    FakeDevice device;
    device.cut_next_format = true;
    kernel_.AddDevice(request_.device, device);
    SafeMountReport report = Run();
    ASSERT_FALSE(report.status.ok());
    EXPECT_TRUE(report.status.error().maybe_applied());
    EXPECT_EQ(report.error_type, MountErrorType::kFormatFailed);
    const std::string uuid = (*intents_.Find(type))->fs_uuid;
    kernel_.Reboot();
    kernel_.AddDirectory("/root/mnt");
    report = Run();
    ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
    EXPECT_EQ(report.device.uuid, uuid);
    EXPECT_EQ(kernel_.Device(request_.device).formats, 2);
  }
}

// ext writes its superblock last: what is there before it could be anybody's.
TEST_F(SafeFormatAndMountTest, ACutFormatThatLeftNoMarkIsRefusedUntilItIsWiped) {
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.cut_next_format = true; });
  ASSERT_FALSE(Run().status.ok());
  const std::string uuid = (*intents_.Find("v"))->fs_uuid;
  SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_FALSE(report.status.error().maybe_applied());
  EXPECT_THAT(report.status.error().message(),
              HasSubstr("a format of this volume was begun (ext4, UUID " + uuid + ")"));
  EXPECT_EQ(kernel_.Device(kDevice).formats, 1);
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.data.clear(); });
  ASSERT_TRUE(Run().status.ok());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 2);
}

TEST_F(SafeFormatAndMountTest, AFormatWhoseEndNobodyHeardOfIsProvenAndNotMadeAgain) {
  kernel_.ChangeDevice(
      kDevice, [](FakeDevice& device) { device.unheard_next_format = CheckResult::kClean; });
  ASSERT_FALSE(Run().status.ok());
  EXPECT_FALSE((*intents_.Find("v"))->finished);
  const SafeMountReport report = Run();
  ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
  EXPECT_FALSE(report.formatted);
  EXPECT_EQ(kernel_.Device(kDevice).formats, 1);
  EXPECT_THAT(intents_.calls(), ElementsAre("begin v", "finish v"));
  ASSERT_EQ(report.notices.size(), 1u);
  EXPECT_THAT(report.notices[0].message, HasSubstr("finds it clean: the format is finished"));
}

TEST_F(SafeFormatAndMountTest, AFormatThatIsNotProvenCompleteIsNeitherMadeAgainNorMounted) {
  kernel_.ChangeDevice(
      kDevice, [](FakeDevice& device) { device.unheard_next_format = CheckResult::kUncorrected; });
  ASSERT_FALSE(Run().status.ok());
  SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_FALSE(report.status.error().maybe_applied());
  EXPECT_EQ(report.error_type, MountErrorType::kFormatFailed);
  EXPECT_THAT(report.status.error().message(),
              HasSubstr("which 'e2fsck' does not find clean (status 4): it is neither mounted nor "
                        "formatted again"));
  // What could not be looked at is not proven either.
  kernel_.ChangeDevice(kDevice,
                       [](FakeDevice& device) { device.damage = CheckResult::kOperationalError; });
  EXPECT_FALSE(Run().status.ok());
  kernel_.FailNext("CheckFilesystem", Error::NotApplied(Code::kNotFound, "e2fsck is missing"));
  report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.status.error().code(), Code::kNotFound);
  EXPECT_EQ(kernel_.Device(kDevice).formats, 1);
  EXPECT_FALSE(IsMounted());
  // Nor what took too long, which has written nothing.
  kernel_.FailNext("CheckFilesystem", Error::MaybeApplied(Code::kDeadlineExceeded, "too long"));
  report = Run();
  EXPECT_EQ(report.status.error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(report.status.error().maybe_applied());
  // An administrator has mended it.
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.damage = CheckResult::kClean; });
  intents_.FailNext("finish");
  EXPECT_FALSE(Run().status.ok());
  EXPECT_FALSE(IsMounted());
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 1);
}

TEST_F(SafeFormatAndMountTest, ARefusedFormatLeavesNoIntentThatCouldBeRepeated) {
  // Somebody writes between the probe and the format.
  kernel_.SetCallHook([this](const AnyRequest& any) {
    if (!std::holds_alternative<FormatDevice>(any)) return;
    kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.data = "byte 0x01"; });
  });
  SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_THAT(intents_.calls(), ElementsAre("begin v", "withdraw v"));
  report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
}

// Passes every call on, and keeps how its checks are to be made.
class CheckWatcher final : public Kernel {
 public:
  explicit CheckWatcher(Kernel& kernel) : kernel_(kernel) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<CheckFilesystem>(request))
      must_finish_.push_back(options.must_finish);
    return kernel_.Do(request, options);
  }
  const std::vector<bool>& must_finish() const { return must_finish_; }

 private:
  Kernel& kernel_;
  std::vector<bool> must_finish_;
};

// e2fsck -fn was lost for a quarter of an hour in what was left of an ext4.
TEST_F(SafeFormatAndMountTest, AProofEndsAtItsDeadlineAndAReportThatWasAskedForDoesNot) {
  PutFilesystem("ext4", "ours");
  ASSERT_TRUE(intents_.Begin("v", {kernel_.Device(kDevice).identity, "ext4", "ours"}).ok());
  request_.fsck_policy = FsckPolicy::kReport;
  CheckWatcher watcher(kernel_);
  ASSERT_TRUE(SafeFormatAndMount(watcher, intents_, irreversible_)
                  .FormatAndMount(request_, {})
                  .status.ok());
  EXPECT_THAT(watcher.must_finish(), ElementsAre(false, true));
}

TEST_F(SafeFormatAndMountTest, AFoundFilesystemIsRecordedBeforeItsMountAndNeverFormattedLater) {
  PutFilesystem("ext4", "found");
  ASSERT_TRUE(Run().status.ok());
  EXPECT_THAT(intents_.calls(), ElementsAre("finish v"));
  kernel_.UnmountBelow("/root/mnt");
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) {
    device.fs_type.clear();
    device.usage.clear();
    device.identity.uuid.clear();
  });
  SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_THAT(report.status.error().message(), HasSubstr("had a filesystem before"));
  EXPECT_EQ(kernel_.Device(kDevice).formats, 0);
}

// A volume whose path led to another disk was checked and mounted, with a notice.
TEST_F(SafeFormatAndMountTest, AnotherFilesystemThanTheVolumesIsNeitherCheckedNorMounted) {
  PutFilesystem("ext4", "found");
  ASSERT_TRUE(Run().status.ok());
  kernel_.UnmountBelow("/root/mnt");
  PutFilesystem("ext4", "another");
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.damage = CheckResult::kFixed; });
  const SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kFilesystemMismatch);
  EXPECT_THAT(report.status.error().message(),
              HasSubstr("has a filesystem with UUID another, and this volume's has found"));
  EXPECT_FALSE(report.check.has_value());
  EXPECT_EQ(report.notices.size(), 0u);
}

TEST_F(SafeFormatAndMountTest, ChecksEndAsKubeletsDo) {
  PutFilesystem("ext4", "u");
  const auto damage = [this](CheckResult result) {
    kernel_.UnmountBelow("/root/mnt");
    kernel_.ChangeDevice(kDevice, [result](FakeDevice& device) { device.damage = result; });
  };
  damage(CheckResult::kFixed);
  SafeMountReport report = Run();
  ASSERT_TRUE(report.status.ok());
  EXPECT_EQ(report.notices[0].reason, "FilesystemFixed");
  EXPECT_FALSE(report.notices[0].warning);
  damage(CheckResult::kOperationalError);
  report = Run();
  ASSERT_TRUE(report.status.ok());
  EXPECT_EQ(report.notices[0].reason, "FilesystemNotChecked");
  damage(CheckResult::kUncorrected);
  report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kHasFilesystemErrors);
  EXPECT_FALSE(IsMounted());
  request_.fsck_policy = FsckPolicy::kReport;
  report = Run();
  ASSERT_TRUE(report.status.ok());
  EXPECT_EQ(report.notices[0].reason, "FilesystemHasErrors");
  EXPECT_TRUE(report.notices[0].warning);
}

TEST_F(SafeFormatAndMountTest, AMissingCheckerIsToldAndTheMountGoesOn) {
  PutFilesystem("ext4", "u");
  kernel_.FailNext("CheckFilesystem", Error::NotApplied(Code::kNotFound, "e2fsck is missing"));
  const SafeMountReport report = Run();
  ASSERT_TRUE(report.status.ok());
  EXPECT_EQ(report.notices[0].message, "e2fsck is missing");
}

TEST_F(SafeFormatAndMountTest, ADeviceThatIsSwappedBeforeTheMountIsNotMounted) {
  PutFilesystem("ext4", "u");
  kernel_.SetCallHook([this](const AnyRequest& any) {
    if (!std::holds_alternative<Mount>(any)) return;
    kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { ++device.identity.disk_sequence; });
  });
  const SafeMountReport report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_THAT(report.status.error().message(), HasSubstr("is not the one that was probed"));
  EXPECT_FALSE(IsMounted());
}

TEST_F(SafeFormatAndMountTest, NouuidIsGivenOnlyToACopyOfAMountedXfs) {
  kernel_.AddDevice("/dev/sdc");
  PutFilesystem("xfs", "u");
  PutFilesystem("xfs", "u", "/dev/sdc");
  request_.fs_type = "xfs";
  ASSERT_TRUE(Run().status.ok());
  request_.key = "w";
  request_.device = "/dev/sdc";
  request_.target = {"/root", "mnt2"};
  SafeMountReport report = Run();
  ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
  EXPECT_EQ(report.notices[0].reason, "DuplicateFilesystemUUID");
  kernel_.UnmountBelow("/root");
  // EINVAL for another reason stays an error.
  kernel_.FailNext("Mount", EINVAL, Outcome::kNotApplied);
  report = Run();
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kUnknownMountError);
}

TEST_F(SafeFormatAndMountTest, ProgressNamesTheStages) {
  std::vector<std::string> stages;
  SafeFormatAndMount mounter(kernel_, intents_, irreversible_);
  mounter.FormatAndMount(request_, {}, [&stages](SafeMountStage stage, int64_t) {
    stages.emplace_back(SafeMountStageName(stage));
  });
  EXPECT_THAT(stages, ElementsAre("probing", "formatting", "mounting"));
}

TEST_F(SafeFormatAndMountTest, AFilesystemThatIsToGrowHasGrownWhenItIsMounted) {
  for (const char* type : {"ext3", "ext4"}) {
    request_.key = request_.fs_type = type;
    request_.device = std::string("/dev/") + type;
    kernel_.AddDevice(request_.device);
    PutFilesystem(type, "u", request_.device);
    kernel_.ChangeDevice(request_.device, [](FakeDevice& device) { device.fs_bytes = 1 << 20; });
    request_.grow = true;
    std::vector<std::string> stages;
    SafeFormatAndMount mounter(kernel_, intents_, irreversible_);
    const SafeMountReport report =
        mounter.FormatAndMount(request_, {}, [&stages](SafeMountStage stage, int64_t) {
          stages.emplace_back(SafeMountStageName(stage));
        });
    ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
    EXPECT_THAT(stages, ElementsAre("probing", "checking", "growing", "mounting"));
    EXPECT_EQ(kernel_.Device(request_.device).growths, 1);
    ASSERT_TRUE(report.growth.has_value());
    EXPECT_TRUE(report.growth->fills_device);
    EXPECT_EQ(report.notices.back().reason, "FilesystemGrown");
    EXPECT_FALSE(report.notices.back().warning);
    kernel_.UnmountBelow("/root/mnt");
  }
}

TEST_F(SafeFormatAndMountTest, ADiskThatIsWriteProtectedSaysSoOnlyToWhoeverWantedToWrite) {
  PutFilesystem("ext4", "u");
  kernel_.ChangeDevice(kDevice, [](FakeDevice& device) { device.read_only = true; });
  request_.read_only_if_protected = true;
  SafeMountReport report = Run();
  ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
  ASSERT_EQ(report.notices.size(), 1u);
  EXPECT_EQ(report.notices[0].reason, "DeviceReadOnly");
  EXPECT_TRUE(report.notices[0].warning);
  kernel_.UnmountBelow("/root/mnt");
  request_.options = {"ro"};
  report = Run();
  ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
  EXPECT_THAT(report.notices, IsEmpty());
}

// The agent ends before or after each call of a first mount; the next one converges, and data that
// was ever mounted is never formatted.
TEST_F(SafeFormatAndMountTest, AnEndOfTheAgentAtAnyCallConvergesAndNeverFormatsData) {
  for (const auto point : {FakeKernel::CrashPoint::kBefore, FakeKernel::CrashPoint::kAfter}) {
    for (uint64_t call = 1; call <= 3; ++call) {
      std::unique_ptr<FakeKernel> kernel = kernel_.Clone();
      MemoryFormatIntents intents;
      kernel->CrashAtCall(call, point);
      EXPECT_THROW(SafeFormatAndMount(*kernel, intents, irreversible_).FormatAndMount(request_, {}),
                   SimulatedCrash);
      kernel->Revive();
      const int formats = kernel->Device(kDevice).formats;
      const bool was_mounted = kernel->IsMountPoint("/root/mnt");
      kernel->UnmountBelow("/root/mnt");
      const SafeMountReport report =
          SafeFormatAndMount(*kernel, intents, irreversible_).FormatAndMount(request_, {});
      ASSERT_TRUE(report.status.ok()) << report.status.error().ToString();
      if (was_mounted) {
        EXPECT_EQ(kernel->Device(kDevice).formats, formats);
      }
      EXPECT_TRUE((*intents.Find("v"))->finished);
    }
  }
}

}  // namespace
}  // namespace volumed
