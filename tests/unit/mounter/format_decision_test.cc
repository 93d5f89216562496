#include "mounter/format_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volumed {
namespace {

using ::testing::HasSubstr;

const DeviceIdentity kDisk{1 << 30, 8, 16, 5, "wwid:a", ""};

DeviceProbe Blank() {
  DeviceProbe probe;
  probe.identity = kDisk;
  probe.blank = true;
  return probe;
}
DeviceProbe Data() {
  DeviceProbe probe;
  probe.identity = kDisk;
  probe.why_not_blank = "byte 0x53 at offset 1080 (start of the device)";
  return probe;
}
DeviceProbe Filesystem(const std::string& type, const std::string& uuid) {
  DeviceProbe probe;
  probe.identity = kDisk;
  probe.identity.uuid = uuid;
  probe.fs_type = type;
  probe.usage = "filesystem";
  probe.why_not_blank = type + " signature";
  return probe;
}
FormatIntent Unfinished() { return {kDisk, "ext4", "ours", false, true}; }
FormatIntent Finished() { return {kDisk, "ext4", "ours", true, true}; }
FormatQuestion Question() { return {"/dev/sdb", "ext4"}; }

FormatDecision Decide(const DeviceProbe& probe, std::optional<FormatIntent> intent = std::nullopt,
                      FormatQuestion question = Question()) {
  return DecideFormat(question, probe, intent);
}
void ExpectRefused(const FormatDecision& decision, MountErrorType type, const std::string& text) {
  EXPECT_EQ(decision.action, FormatAction::kRefuse);
  EXPECT_EQ(decision.error_type, type) << decision.reason;
  EXPECT_THAT(decision.reason, HasSubstr(text));
}

TEST(DecideFormat, OnlyWhatIsBlankIsFormatted) {
  EXPECT_EQ(Decide(Blank()).action, FormatAction::kFormat);
  ExpectRefused(Decide(Data()), MountErrorType::kFormatFailed,
                "disk /dev/sdb has unknown data and is not formatted: byte 0x53 at offset 1080");
  DeviceProbe table = Data();
  table.partition_table = "gpt";
  ExpectRefused(Decide(table), MountErrorType::kFilesystemMismatch,
                "unknown data, probably partitions (gpt partition table)");
  ExpectRefused(Decide(Filesystem("LVM2_member", "x")), MountErrorType::kFilesystemMismatch,
                "already formatted with \"LVM2_member\", where \"ext4\" is wanted");
  ExpectRefused(Decide(Filesystem("ambivalent", "")), MountErrorType::kFilesystemMismatch,
                "disk /dev/sdb has ambivalent signature");
}

TEST(DecideFormat, PoliciesAndReadOnlyForbidIt) {
  FormatQuestion question = Question();
  question.format_policy = FormatPolicy::kNever;
  ExpectRefused(Decide(Blank(), {}, question), MountErrorType::kFormatFailed,
                "its formatPolicy is never");
  question = Question();
  question.read_only = true;
  ExpectRefused(Decide(Blank(), {}, question), MountErrorType::kUnformattedReadOnly,
                "cannot mount unformatted disk /dev/sdb as we are manipulating it in read-only");
  DeviceProbe read_only = Blank();
  read_only.read_only = true;
  ExpectRefused(Decide(read_only), MountErrorType::kUnformattedReadOnly, "device is read-only");
  // Nor is an unfinished one repeated.
  question.read_only = true;
  EXPECT_EQ(Decide(Data(), Unfinished(), question).action, FormatAction::kRefuse);
  question = Question();
  question.format_policy = FormatPolicy::kNever;
  EXPECT_EQ(Decide(Data(), Unfinished(), question).action, FormatAction::kRefuse);
}

TEST(DecideFormat, AFullScanComesBeforeTheFormat) {
  FormatQuestion question = Question();
  question.format_policy = FormatPolicy::kFullScan;
  EXPECT_EQ(Decide(Blank(), {}, question).action, FormatAction::kFullScan);
  DeviceProbe whole = Blank();
  whole.read_whole = true;
  EXPECT_EQ(Decide(whole, {}, question).action, FormatAction::kFormat);
}

TEST(DecideFormat, AVolumeThatHadAFilesystemIsNeverFormattedAgain) {
  ExpectRefused(Decide(Blank(), Finished()), MountErrorType::kFormatFailed,
                "is blank, but this volume had a filesystem before (ext4, UUID ours)");
  ExpectRefused(Decide(Data(), Finished()), MountErrorType::kFormatFailed, "unknown data");
  EXPECT_EQ(Decide(Filesystem("ext4", "ours"), Finished()).action, FormatAction::kMount);
}

TEST(DecideFormat, OurOwnUnfinishedFormatIsRepeatedOnTheSameDiskOnly) {
  EXPECT_EQ(Decide(Blank(), Unfinished()).action, FormatAction::kFormat);
  EXPECT_EQ(Decide(Data(), Unfinished()).action, FormatAction::kRepeatFormat);
  EXPECT_EQ(Decide(Filesystem("ext4", "ours"), Unfinished()).action, FormatAction::kRepeatFormat);
  // After a reboot, too, where the disk says who it is.
  FormatIntent older = Unfinished();
  older.in_this_boot = false;
  DeviceProbe attached_again = Data();
  attached_again.identity.disk_sequence = 99;
  attached_again.identity.device_minor = 99;
  EXPECT_EQ(Decide(attached_again, older).action, FormatAction::kRepeatFormat);
  // Another disk, one that cannot be told, one that was mounted, another's filesystem.
  DeviceProbe other = Data();
  other.identity.stable_id = "wwid:b";
  EXPECT_EQ(Decide(other, Unfinished()).action, FormatAction::kRefuse);
  DeviceProbe nameless = Data();
  nameless.identity.stable_id.clear();
  older.device.stable_id.clear();
  EXPECT_EQ(Decide(nameless, older).action, FormatAction::kRefuse);
  DeviceProbe mounted = Filesystem("ext4", "ours");
  mounted.was_mounted = true;
  EXPECT_EQ(Decide(mounted, Unfinished()).action, FormatAction::kMount);
  EXPECT_EQ(Decide(Filesystem("ext4", "another's"), Unfinished()).action, FormatAction::kMount);
  EXPECT_EQ(Decide(Filesystem("xfs", "another's"), Unfinished()).action, FormatAction::kRefuse);
  DeviceProbe table = Data();
  table.partition_table = "dos";
  EXPECT_EQ(Decide(table, Unfinished()).action, FormatAction::kRefuse);
}

TEST(DecideFormat, TheCheckFollowsThePolicyAndNeverWritesToWhatIsMountedReadOnly) {
  FormatQuestion question = Question();
  EXPECT_EQ(Decide(Filesystem("ext4", "x"), {}, question).check, CheckMode::kPreen);
  question.read_only = true;
  EXPECT_EQ(Decide(Filesystem("ext4", "x"), {}, question).check, std::nullopt);
  question.fsck_policy = FsckPolicy::kReport;
  EXPECT_EQ(Decide(Filesystem("ext4", "x"), {}, question).check, CheckMode::kReport);
  question.fsck_policy = FsckPolicy::kNever;
  EXPECT_EQ(Decide(Filesystem("ext4", "x"), {}, question).check, std::nullopt);
}

TEST(DecideFormat, ABtrfsCopyOfAMountedOneIsRefused) {
  FormatQuestion question = Question();
  question.fs_type = "btrfs";
  DeviceProbe copy = Filesystem("btrfs", "x");
  copy.duplicate = "/dev/sdc";
  ExpectRefused(Decide(copy, {}, question), MountErrorType::kUnknownMountError, "(/dev/sdc)");
}

TEST(Policies, AreParsed) {
  EXPECT_EQ(*ParseFormatPolicy("never"), FormatPolicy::kNever);
  EXPECT_EQ(*ParseFormatPolicy("blank"), FormatPolicy::kBlank);
  EXPECT_EQ(*ParseFormatPolicy("full-scan"), FormatPolicy::kFullScan);
  EXPECT_EQ(ParseFormatPolicy("").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(*ParseFsckPolicy("never"), FsckPolicy::kNever);
  EXPECT_EQ(*ParseFsckPolicy("preen"), FsckPolicy::kPreen);
  EXPECT_EQ(*ParseFsckPolicy("report"), FsckPolicy::kReport);
  EXPECT_EQ(ParseFsckPolicy("Preen").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
