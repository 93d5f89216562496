// What is mounted is what was probed; copies beside their originals; policies.
#include <fstream>

#include "base/random.h"
#include "integration/mounter/block_mount_fixture.h"
#include "os/worker_kernel.h"
#include "places.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

class DeviceIdentityTest : public BlockMountTest {
 protected:
  static void Copy(const std::string& from, const std::string& to) {
    ASSERT_EQ(Shell("cp --sparse=always " + from + " " + to), 0);
  }
  Result<DeviceProbe> Probe(const std::string& device, bool find_duplicates = false) {
    return kernel_->Call(ProbeDevice{device, false, find_duplicates}, {});
  }
  SafeMountRequest Second(const LoopDevice& device, const std::string& fs_type) const {
    SafeMountRequest request = Request(device, fs_type);
    request.key = "second";
    request.target = {scratch(), "mnt2"};
    return request;
  }
};

TEST_F(DeviceIdentityTest, AnXfsCopyIsMountedWithNouuidOnlyBesideItsOriginal) {
  const std::string image = Image();
  Mkfs("xfs", image);
  Copy(image, Path("copy"));
  const LoopDevice original(image);
  const LoopDevice copy(Path("copy"));
  SafeMountReport report = Run(Second(copy, "xfs"));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_TRUE(report.notices.empty()) << Text(report);
  Unmount("mnt2");
  ASSERT_TRUE(Run(Request(original, "xfs")).status.ok());
  report = Run(Second(copy, "xfs"));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_THAT(Text(report),
              HasSubstr("DuplicateFilesystemUUID: disk " + copy.path() + " is a copy of " +
                        original.path() + ", mounted on " + Path("mnt")));
  EXPECT_THAT(Mounted("mnt2")->super_options, ::testing::Contains("nouuid"));
}

TEST_F(DeviceIdentityTest, ABtrfsCopyIsRefusedBesideItsOriginal) {
  const std::string image = Image();
  Mkfs("btrfs", image);
  Copy(image, Path("copy"));
  const LoopDevice original(image);
  ASSERT_TRUE(Run(Request(original, "btrfs")).status.ok());
  const LoopDevice copy(Path("copy"));
  const SafeMountReport report = Run(Second(copy, "btrfs"));
  ASSERT_FALSE(report.status.ok());
  EXPECT_THAT(Text(report), HasSubstr("of a mounted filesystem (" + original.path() + ")"));
  EXPECT_FALSE(Mounted("mnt2").has_value());
}

TEST_F(DeviceIdentityTest, AnExt4CopyIsMountedBesideItsOriginal) {
  const std::string image = Image();
  Mkfs("ext4", image);
  Copy(image, Path("copy"));
  const LoopDevice original(image);
  const LoopDevice copy(Path("copy"));
  ASSERT_TRUE(Run(Request(original, "ext4")).status.ok());
  const SafeMountReport report = Run(Second(copy, "ext4"));
  EXPECT_TRUE(report.status.ok()) << Text(report);
}

// A link that leads elsewhere by the time of the mount, and a device that got another medium.
TEST_F(DeviceIdentityTest, AnotherDeviceThanTheProbedOneIsNeitherMountedNorFormattedNorChecked) {
  const std::string image = Image();
  Mkfs("ext4", image);
  Mkfs("ext4", Image("other"));
  LoopDevice device(image);
  const LoopDevice other(Path("other"));
  const std::string link = Path("link");
  ASSERT_EQ(::symlink(device.path().c_str(), link.c_str()), 0);
  const auto probed = Probe(link);
  ASSERT_TRUE(probed.ok());
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_EQ(::symlink(other.path().c_str(), link.c_str()), 0);
  const auto mounted =
      kernel_->Call(Mount{"ext4", link, {scratch(), "mnt"}, {}, probed->identity}, {});
  ASSERT_FALSE(mounted.ok());
  EXPECT_EQ(mounted.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(mounted.error().message(), HasSubstr("is not the one that was probed: its number"));
  const auto checked =
      kernel_->Call(CheckFilesystem{link, probed->identity, "ext4", CheckMode::kPreen}, {});
  EXPECT_EQ(checked.error().code(), Code::kFailedPrecondition);
  FormatDevice format{link, probed->identity, "ext4", NewUuid(), {}, false, true};
  EXPECT_EQ(kernel_->Call(format, {}).error().code(), Code::kFailedPrecondition);
}

TEST_F(DeviceIdentityTest, AFilesystemThatWasReplacedSinceTheProbeIsNotMounted) {
  const std::string image = Image();
  Mkfs("ext4", image);
  const LoopDevice device(image);
  const auto probed = Probe(device.path());
  ASSERT_TRUE(probed.ok());
  Mkfs("ext4", device.path());
  const auto mounted =
      kernel_->Call(Mount{"ext4", device.path(), {scratch(), "mnt"}, {}, probed->identity}, {});
  ASSERT_FALSE(mounted.ok());
  EXPECT_THAT(mounted.error().message(), HasSubstr("its filesystem's UUID is"));
}

TEST_F(DeviceIdentityTest, TheIdentityOfALoopDeviceOutlivesItsAttachment) {
  const std::string image = Image();
  LoopDevice first(image);
  const auto before = Probe(first.path());
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(before->identity.size_bytes, kImageBytes);
  EXPECT_NE(before->identity.disk_sequence, 0u);
  EXPECT_THAT(before->identity.stable_id, HasSubstr("loop:" + image + ":"));
  first.Detach();
  const LoopDevice second(image);
  const auto after = Probe(second.path());
  ASSERT_TRUE(after.ok());
  EXPECT_NE(IdentityDifference(before->identity, after->identity), "");
  EXPECT_EQ(before->identity.stable_id, after->identity.stable_id);
}

TEST_F(DeviceIdentityTest, AMountedDeviceIsNeverFormatted) {
  const LoopDevice device(Image());
  ASSERT_TRUE(Run(Request(device, "ext4")).status.ok());
  auto probe = Probe(device.path());
  ASSERT_TRUE(probe.ok());
  FormatDevice format{device.path(), probe->identity, "ext4", probe->identity.uuid, {}, false,
                      true};
  const auto formatted = kernel_->Call(format, {});
  ASSERT_FALSE(formatted.ok());
  EXPECT_EQ(formatted.error().sys_errno(), EBUSY);
  EXPECT_FALSE(formatted.error().maybe_applied());
  // And not after its unmount either: it was mounted.
  Unmount();
  const auto again = kernel_->Call(format, {});
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message(), HasSubstr("not blank: ext4 signature"));
}

TEST_F(DeviceIdentityTest, OnlyAFullScanFindsDataBetweenTheRegions) {
  const std::string image = Image();
  {
    // 101 MiB: in no region of a device of 320 MiB.
    std::fstream file(image, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((int64_t{101} << 20) + 123);
    file << "database page";
  }
  const LoopDevice device(image);
  const auto probe = Probe(device.path());
  ASSERT_TRUE(probe.ok());
  EXPECT_TRUE(probe->blank);
  EXPECT_FALSE(probe->read_whole);
  EXPECT_GT(probe->bytes_read, 32 << 20);
  EXPECT_LT(probe->bytes_read, 64 << 20);
  SafeMountRequest request = Request(device, "ext4");
  request.format_policy = FormatPolicy::kFullScan;
  SafeMountReport report = Run(request);
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kFormatFailed);
  EXPECT_THAT(Text(report), HasSubstr("byte 0x64 at offset " +
                                      std::to_string((int64_t{101} << 20) + 123) + " (device)"));
  EXPECT_EQ(kernel_->formats(), 0);
  request.format_policy = FormatPolicy::kNever;
  report = Run(request);
  EXPECT_THAT(Text(report), HasSubstr("its formatPolicy is never"));
}

TEST_F(DeviceIdentityTest, AFullScanOfABlankDiskLetsTheJournalBeLazy) {
  const LoopDevice device(ImageOfZeros());
  SafeMountRequest request = Request(device, "ext4");
  request.format_policy = FormatPolicy::kFullScan;
  const SafeMountReport report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_TRUE(report.formatted);
  EXPECT_GE(kernel_->bytes_read(), kImageBytes);
}

TEST_F(DeviceIdentityTest, ADeviceWhoseFileIsOneHoleIsKnownToBeBlankUnread) {
  const LoopDevice device(Image());
  const auto probe = Probe(device.path());
  ASSERT_TRUE(probe.ok());
  EXPECT_TRUE(probe->blank);
  EXPECT_TRUE(probe->read_whole);
  EXPECT_EQ(probe->bytes_read, 0);
  const SafeMountReport report = Run(Request(device, "ext4"));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_TRUE(report.formatted);
  EXPECT_FALSE(Probe(device.path())->blank);
}

TEST_F(DeviceIdentityTest, AMissingToolIsNamedWithItsPackageAndNothingIsWritten) {
  LocalKernelOptions options;
  options.tool_directories = {Path("no-tools")};
  auto kernel = LocalKernel::Create(options);
  ASSERT_TRUE(kernel.ok());
  const LoopDevice device(Image());
  FakeIrreversibleSteps irreversible;
  SafeFormatAndMount mounter(**kernel, intents_, irreversible);
  const SafeMountReport report = mounter.FormatAndMount(Request(device, "xfs"), {});
  ASSERT_FALSE(report.status.ok());
  EXPECT_FALSE(report.status.error().maybe_applied());
  EXPECT_EQ(report.error_type, MountErrorType::kFormatFailed);
  EXPECT_THAT(Text(report), HasSubstr("mkfs.xfs is missing: install the package xfsprogs"));
  EXPECT_THAT(intents_.calls(), ::testing::ElementsAre("begin volume", "withdraw volume"));
  EXPECT_TRUE(Probe(device.path())->blank);
}

TEST_F(DeviceIdentityTest, AToolThatFailsIsQuoted) {
  const LoopDevice device(Image("small", int64_t{64} << 20));  // mkfs.xfs wants 300 MB
  const SafeMountReport report = Run(Request(device, "xfs"));
  ASSERT_FALSE(report.status.ok());
  EXPECT_TRUE(report.status.error().maybe_applied());
  EXPECT_THAT(Text(report), HasSubstr("mkfs.xfs ended with status 1: "));
  EXPECT_THAT(Text(report), HasSubstr("300MB"));
  // Nothing was written, so another type may be tried.
  EXPECT_TRUE(Run(Request(device, "ext4")).status.ok());
}

TEST_F(DeviceIdentityTest, FormatOptionsReachTheTool) {
  const LoopDevice device(Image());
  SafeMountRequest request = Request(device, "ext4");
  request.format_options = {"-E", "stride=8", "-L", "mylabel"};
  const SafeMountReport report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_EQ(Probe(device.path())->label, "mylabel");
  EXPECT_EQ(Shell("dumpe2fs -h " + device.path() + " | grep -q 'RAID stride: *8'"), 0);
}

TEST_F(DeviceIdentityTest, TheWholeWayWorksThroughWorkersWithTheKeyLocked) {
  ASSERT_EQ(::mkdir(Path("keys").c_str(), 0700), 0);
  WorkerKernelOptions options;
  options.worker_path = VolumedWorkerPath();
  options.key_directory = Path("keys");
  RealClock clock;
  auto kernel = WorkerKernel::Create(options, clock);
  ASSERT_TRUE(kernel.ok()) << kernel.error().ToString();
  for (const char* type : {"ext4", "xfs", "btrfs"}) {
    const LoopDevice device(Image());
    SafeMountRequest request = Request(device, type);
    request.key = type;
    CallOptions call;
    call.key = "volume";
    call.deadline = Deadline::After(clock, std::chrono::seconds(60));
    FakeIrreversibleSteps irreversible;
    SafeFormatAndMount mounter(**kernel, intents_, irreversible);
    SafeMountReport report = mounter.FormatAndMount(request, call);
    ASSERT_TRUE(report.status.ok()) << Text(report);
    EXPECT_TRUE(report.formatted);
    Unmount();
    request.fsck_policy = FsckPolicy::kReport;
    report = mounter.FormatAndMount(request, call);
    ASSERT_TRUE(report.status.ok()) << Text(report);
    EXPECT_EQ(report.check->result, CheckResult::kClean);
    Unmount();
  }
}

TEST_F(DeviceIdentityTest, WhatIsNoDeviceIsRefused) {
  EXPECT_EQ(Probe("/dev/null").error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Probe("/dev/no-such-device").error().code(), Code::kNotFound);
  EXPECT_EQ(Probe("relative").error().code(), Code::kInvalidArgument);
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(Probe(Path("fifo")).error().code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace volumed
