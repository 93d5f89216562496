// Each filesystem x {new, existing, damaged, read-only, wrong type} on real loop devices: the
// outcome and its message.
#include <fstream>

#include "integration/mounter/block_mount_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

class FormatMatrix : public BlockMountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::string Type() { return GetParam(); }
  static bool IsExt() { return Type().compare(0, 3, "ext") == 0; }
  void Mark() { std::ofstream(Path("mnt/mark")) << "data"; }
  bool HasMark() const { return ::access(Path("mnt/mark").c_str(), F_OK) == 0; }
  static void Damage(const std::string& image, int64_t offset, size_t size) {
    std::fstream file(image, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file << std::string(size, '\x5a');
    ASSERT_TRUE(file.good());
  }
};

TEST_P(FormatMatrix, ANewDiskIsFormattedOnceAndMounted) {
  const LoopDevice device(Image());
  ASSERT_TRUE(device.valid());
  SafeMountReport report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_TRUE(report.formatted);
  ASSERT_TRUE(Mounted().has_value());
  EXPECT_EQ(Mounted()->fs_type, Type());
  EXPECT_EQ(Mounted()->source, device.path());
  EXPECT_THAT(Text(report), HasSubstr("was blank and is formatted with " + Type()));
  EXPECT_THAT(intents_.calls(), ::testing::ElementsAre("begin volume", "finish volume"));
  Mark();
  Unmount();
  report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_FALSE(report.formatted);
  EXPECT_TRUE(HasMark());
  EXPECT_EQ(kernel_->formats(), 1);
}

TEST_P(FormatMatrix, AnExistingFilesystemIsCheckedAndMountedWithItsData) {
  const std::string image = Image();
  Mkfs(Type(), image);
  const LoopDevice device(image);
  SafeMountReport report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_EQ(kernel_->formats(), 0);
  ASSERT_TRUE(report.check.has_value());
  EXPECT_EQ(report.check->result, IsExt() ? CheckResult::kClean : CheckResult::kSkipped);
  Mark();
  Unmount();
  SafeMountRequest request = Request(device, Type());
  request.fsck_policy = FsckPolicy::kReport;
  report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  ASSERT_TRUE(report.check.has_value());
  EXPECT_EQ(report.check->result, CheckResult::kClean) << report.check->output;
  EXPECT_TRUE(HasMark());
}

// The head of the root's metadata is gone, the superblock is whole.
TEST_P(FormatMatrix, ADamagedFilesystemIsReportedAndNeverFormatted) {
  const std::string image = Image();
  Mkfs(Type(), image);
  if (IsExt()) {
    // The root directory is gone, and the kernel has noticed: else e2fsck -a trusts the clean flag.
    ASSERT_EQ(Shell("debugfs -w -R 'clri <2>' " + image), 0);
    ASSERT_EQ(Shell("debugfs -w -R 'ssv state 2' " + image), 0);
  } else if (Type() == "xfs") {
    // AGF, AGI and the first btrees, but for the superblock.
    Damage(image, 512, 64 * 1024);
  } else {
    Damage(image, 65536 + 0x48, 16);  // the root tree's address and the generation
  }
  const LoopDevice device(image);
  const SafeMountReport report = Run(Request(device, Type()));
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(kernel_->formats(), 0);
  EXPECT_FALSE(Mounted().has_value());
  if (IsExt()) {
    EXPECT_EQ(report.error_type, MountErrorType::kHasFilesystemErrors) << Text(report);
    EXPECT_THAT(Text(report), HasSubstr("'fsck' found errors on device " + device.path() +
                                        " but could not correct them: "));
  } else {
    EXPECT_EQ(report.error_type, MountErrorType::kUnknownMountError) << Text(report);
    EXPECT_THAT(Text(report), HasSubstr("mount " + Type() + " on "));
  }
}

TEST_P(FormatMatrix, TheReportPolicyWarnsOfErrorsAndLeavesTheMountToTheKernel) {
  const std::string image = Image();
  Mkfs(Type(), image);
  if (IsExt()) {
    ASSERT_EQ(Shell("debugfs -w -R 'sif <11> links_count 9' " + image), 0);
  } else if (Type() == "xfs") {
    // A secondary superblock, which a mount does not read.
    ASSERT_EQ(Shell("xfs_db -x -c 'sb 1' -c 'write -d magicnum 0' " + image), 0);
  } else {
    Damage(image, 65536 + 0x48, 16);
  }
  const LoopDevice device(image);
  SafeMountRequest request = Request(device, Type());
  request.fsck_policy = FsckPolicy::kReport;
  const SafeMountReport report = Run(request);
  EXPECT_EQ(report.status.ok(), Type() != "btrfs") << Text(report);
  ASSERT_TRUE(report.check.has_value());
  EXPECT_EQ(report.check->result, CheckResult::kUncorrected);
  EXPECT_THAT(Text(report), HasSubstr("FilesystemHasErrors: '" + report.check->tool));
  EXPECT_EQ(kernel_->formats(), 0);
}

TEST_P(FormatMatrix, PreeningMendsWhatIsSafeToMend) {
  if (!IsExt()) return;  // XFS and btrfs recover at mount; a preen of theirs does nothing
  const std::string image = Image();
  Mkfs(Type(), image);
  ASSERT_EQ(Shell("debugfs -w -R 'sif <11> links_count 9' " + image), 0);
  ASSERT_EQ(Shell("debugfs -w -R 'ssv state 2' " + image), 0);
  const LoopDevice device(image);
  const SafeMountReport report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  ASSERT_TRUE(report.check.has_value());
  EXPECT_EQ(report.check->result, CheckResult::kFixed);
  EXPECT_THAT(Text(report), HasSubstr("has errors which were corrected by 'e2fsck -a'"));
}

TEST_P(FormatMatrix, AnUnformattedDiskIsRefusedReadOnly) {
  const LoopDevice device(Image());
  SafeMountRequest request = Request(device, Type());
  request.options = {"ro"};
  const SafeMountReport report = Run(request);
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kUnformattedReadOnly);
  EXPECT_THAT(Text(report), HasSubstr("cannot mount unformatted disk " + device.path() +
                                      " as we are manipulating it in read-only mode"));
  EXPECT_EQ(kernel_->formats(), 0);
}

TEST_P(FormatMatrix, AReadOnlyDeviceIsMountedReadOnlyOnly) {
  const std::string image = Image();
  Mkfs(Type(), image);
  const LoopDevice device(image, true);
  ASSERT_TRUE(device.valid());
  SafeMountRequest request = Request(device, Type());
  SafeMountReport report = Run(request);
  ASSERT_FALSE(report.status.ok());
  EXPECT_THAT(Text(report), HasSubstr("is read-only and can only be mounted read-only"));
  request.options = {"ro"};
  report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_FALSE(report.check.has_value());
  EXPECT_THAT(Mounted()->options, ::testing::Contains("ro"));
}

TEST_P(FormatMatrix, AnUnformattedReadOnlyDeviceIsRefused) {
  const LoopDevice device(Image(), true);
  const SafeMountReport report = Run(Request(device, Type()));
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kUnformattedReadOnly);
  EXPECT_THAT(Text(report), HasSubstr("(the device is read-only)"));
}

TEST_P(FormatMatrix, AnotherTypeIsRefusedNamingBoth) {
  const std::string other = Type() == "xfs" ? "ext4" : "xfs";
  const std::string image = Image();
  Mkfs(other, image);
  const LoopDevice device(image);
  const SafeMountReport report = Run(Request(device, Type()));
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kFilesystemMismatch);
  EXPECT_THAT(Text(report), HasSubstr("is already formatted with \"" + other + "\", where \"" +
                                      Type() + "\" is wanted"));
  EXPECT_EQ(kernel_->formats(), 0);
  EXPECT_FALSE(Mounted().has_value());
}

// It was made again, though it was whole. How a mkfs fares that is cut off is in cut_mkfs_test.cc.
TEST_P(FormatMatrix, AFormatWhoseEndNobodyHeardOfIsProvenAndNotMadeAgain) {
  const LoopDevice device(Image());
  intents_.FailNext("finish");
  SafeMountReport report = Run(Request(device, Type()));
  ASSERT_FALSE(report.status.ok());
  const std::string uuid = (*intents_.Find("volume"))->fs_uuid;
  report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_FALSE(report.formatted);
  EXPECT_EQ(report.device.uuid, uuid);
  EXPECT_EQ(kernel_->formats(), 1);
  EXPECT_THAT(Text(report), HasSubstr("finds it clean: the format is finished"));
  Mark();
  Unmount();
  report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_TRUE(HasMark());
}

// A filesystem that had lost its superblock was made again, on a record that was older than it.
TEST_P(FormatMatrix, AnOldRecordOfABegunFormatCostsNoData) {
  const LoopDevice device(Image());
  ASSERT_TRUE(Run(Request(device, Type())).status.ok());
  const FormatIntent intent = **intents_.Find("volume");
  Mark();
  Unmount();
  ASSERT_TRUE(intents_.Begin("volume", intent).ok());
  SafeMountReport report = Run(Request(device, Type()));
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_TRUE(HasMark());
  EXPECT_TRUE((*intents_.Find("volume"))->finished);
  Unmount();
  ASSERT_TRUE(intents_.Begin("volume", intent).ok());
  ASSERT_EQ(Shell("wipefs -a -f " + device.path()), 0);
  report = Run(Request(device, Type()));
  ASSERT_FALSE(report.status.ok());
  EXPECT_EQ(report.error_type, MountErrorType::kFormatFailed);
  EXPECT_THAT(Text(report), HasSubstr("has unknown data and is not formatted: byte 0x"));
  EXPECT_THAT(Text(report), HasSubstr("UUID " + intent.fs_uuid + ") and did not end"));
  EXPECT_EQ(kernel_->formats(), 1);
}

INSTANTIATE_TEST_SUITE_P(Filesystems, FormatMatrix,
                         ::testing::Values("ext2", "ext3", "ext4", "xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed
