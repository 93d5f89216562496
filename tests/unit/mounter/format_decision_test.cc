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
// mkfs of it did not end.
DeviceProbe Marked(const std::string& type, const std::string& uuid) {
  DeviceProbe probe = Filesystem(type, uuid);
  probe.unfinished = true;
  return probe;
}
FormatIntent Unfinished(const std::string& type = "ext4") { return {kDisk, type, "ours", false}; }
FormatIntent Finished() { return {kDisk, "ext4", "ours", true}; }
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
  question.fs_type = "xfs";
  question.read_only = true;
  EXPECT_EQ(Decide(Marked("xfs", "ours"), Unfinished("xfs"), question).action,
            FormatAction::kRefuse);
  question.read_only = false;
  question.format_policy = FormatPolicy::kNever;
  EXPECT_EQ(Decide(Marked("xfs", "ours"), Unfinished("xfs"), question).action,
            FormatAction::kRefuse);
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

TEST(DecideFormat, OnlyTheMarkOfAMkfsThatDidNotEndOnOurUuidIsFormattedOver) {
  for (const char* type : {"xfs", "btrfs"}) {
    const FormatQuestion question{"/dev/sdb", type};
    const FormatIntent intent = Unfinished(type);
    const auto action = [&](const DeviceProbe& probe) {
      return Decide(probe, intent, question).action;
    };
    EXPECT_EQ(action(Blank()), FormatAction::kFormat);
    EXPECT_EQ(action(Marked(type, "ours")), FormatAction::kRepeatFormat);
    ExpectRefused(Decide(Marked(type, "another's"), intent, question),
                  MountErrorType::kFormatFailed, "has an unfinished " + std::string(type));
    EXPECT_EQ(Decide(Marked(type, "ours"), std::nullopt, question).action, FormatAction::kRefuse);
    FormatIntent finished = intent;
    finished.finished = true;
    EXPECT_EQ(Decide(Marked(type, "ours"), finished, question).action, FormatAction::kRefuse);
    // Wanted is another type now, or the disk is another one.
    EXPECT_EQ(Decide(Marked(type, "ours"), intent).action, FormatAction::kRefuse);
    EXPECT_EQ(Decide(Marked(type, "ours"), Unfinished(), question).action, FormatAction::kRefuse);
    DeviceProbe larger = Marked(type, "ours");
    larger.identity.size_bytes *= 2;
    EXPECT_EQ(action(larger), FormatAction::kRefuse);
    DeviceProbe table = Marked(type, "ours");
    table.partition_table = "dos";
    EXPECT_EQ(action(table), FormatAction::kRefuse);
  }
}

// What looked like nothing, on the disk of an unfinished format, was formatted: a database without
// a signature, or a filesystem that had lost its superblock since.
TEST(DecideFormat, DataWithoutASignatureIsNeverTakenForWhatAMkfsLeft) {
  ExpectRefused(Decide(Data(), Unfinished()), MountErrorType::kFormatFailed,
                "byte 0x53 at offset 1080 (start of the device); a format of this volume was begun "
                "(ext4, UUID ours) and did not end");
}

// A filesystem that was complete was made again, as its end was not on record.
TEST(DecideFormat, WhatBearsOurUuidAndNoMarkIsToBeProvenComplete) {
  EXPECT_EQ(Decide(Filesystem("ext4", "ours"), Unfinished()).action, FormatAction::kProveFinished);
  FormatQuestion question = Question();
  question.read_only = true;
  EXPECT_EQ(Decide(Filesystem("ext4", "ours"), Unfinished(), question).action,
            FormatAction::kProveFinished);
  DeviceProbe mounted = Filesystem("ext4", "ours");
  mounted.was_mounted = true;
  EXPECT_EQ(Decide(mounted, Unfinished()).action, FormatAction::kMount);
  EXPECT_EQ(Decide(Filesystem("ext4", "another's"), Unfinished()).action, FormatAction::kMount);
  EXPECT_EQ(Decide(Filesystem("xfs", "ours"), Unfinished()).action, FormatAction::kRefuse);
  EXPECT_EQ(Decide(Filesystem("xfs", "another's"), Unfinished()).action, FormatAction::kRefuse);
  DeviceProbe table = Filesystem("ext4", "ours");
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
