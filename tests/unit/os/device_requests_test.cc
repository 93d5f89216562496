#include "os/device_requests.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>
#include <variant>

#include "os/kernel_requests.h"

namespace volumed {
namespace {

const DeviceIdentity kDisk{1 << 30, 8, 16, 5, "wwid:a", "u-1"};

TEST(DeviceIdentity, EveryDifferenceIsNamed) {
  EXPECT_EQ(IdentityDifference(kDisk, kDisk), "");
  DeviceIdentity other = kDisk;
  other.device_minor = 32;
  EXPECT_EQ(IdentityDifference(kDisk, other), "its number is 8:32, not 8:16");
  other = kDisk;
  other.disk_sequence = 6;
  EXPECT_EQ(IdentityDifference(kDisk, other), "its disk sequence is 6, not 5");
  other = kDisk;
  other.stable_id.clear();
  EXPECT_EQ(IdentityDifference(kDisk, other), "its own identity is none, not wwid:a");
  other.stable_id = "serial:\xff";
  EXPECT_EQ(IdentityDifference(kDisk, other), "its own identity is serial:\\xff, not wwid:a");
  other = kDisk;
  other.size_bytes = 7;
  EXPECT_EQ(IdentityDifference(kDisk, other), "its size is 7, not 1073741824");
  other.device_major = 9;
  EXPECT_EQ(IdentityDifference(kDisk, other),
            "its number is 9:16, not 8:16; its size is 7, not 1073741824");
  other = kDisk;
  other.uuid = "u-2";
  EXPECT_EQ(IdentityDifference(kDisk, other), "its filesystem's UUID is u-2, not u-1");
  // Where none is expected, any will do.
  DeviceIdentity any = kDisk;
  any.uuid.clear();
  EXPECT_EQ(IdentityDifference(any, other), "");
}

TEST(ClassifyCheck, FollowsTheExitCodesOfEachTool) {
  for (const char* ext : {"ext2", "ext3", "ext4"}) {
    EXPECT_EQ(ClassifyCheck(ext, 0), CheckResult::kClean);
    EXPECT_EQ(ClassifyCheck(ext, 1), CheckResult::kFixed);
    EXPECT_EQ(ClassifyCheck(ext, 2), CheckResult::kFixed);
    EXPECT_EQ(ClassifyCheck(ext, 3), CheckResult::kFixed);
    EXPECT_EQ(ClassifyCheck(ext, 4), CheckResult::kUncorrected);
    EXPECT_EQ(ClassifyCheck(ext, 5), CheckResult::kUncorrected);
    EXPECT_EQ(ClassifyCheck(ext, 8), CheckResult::kOperationalError);
    EXPECT_EQ(ClassifyCheck(ext, 12), CheckResult::kUncorrected);
    EXPECT_EQ(ClassifyCheck(ext, 16), CheckResult::kOperationalError);
    EXPECT_EQ(ClassifyCheck(ext, 32), CheckResult::kOperationalError);
    EXPECT_EQ(ClassifyCheck(ext, 128), CheckResult::kOperationalError);
    EXPECT_EQ(ClassifyCheck(ext, -1), CheckResult::kOperationalError);
  }
  for (const char* other : {"xfs", "btrfs"}) {
    EXPECT_EQ(ClassifyCheck(other, 0), CheckResult::kClean);
    EXPECT_EQ(ClassifyCheck(other, 1), CheckResult::kUncorrected);
    EXPECT_EQ(ClassifyCheck(other, 2), CheckResult::kOperationalError);
  }
}

template <typename... Requests>
std::set<std::string> ThatMustFinish(std::type_identity<std::variant<Requests...>>) {
  std::set<std::string> names;
  (..., (MustFinish(AnyRequest(Requests{})) ? (void)names.insert(Requests::kName) : (void)0));
  return names;
}

// A growth was no part of this list, and no test noticed when it could be killed half way.
TEST(DeviceRequests, WhatRuinsDataHalfDoneMustFinishAndNothingElse) {
  EXPECT_EQ(ThatMustFinish(std::type_identity<AnyRequest>()),
            (std::set<std::string>{"ChangeFilesystemUuid", "CheckFilesystem", "FormatDevice",
                                   "GrowFilesystem"}));
  GrowFilesystem mounted;
  mounted.mounted_at = SafePath{"/mnt", ""};
  EXPECT_TRUE(MustFinish(AnyRequest(mounted)));
  CheckFilesystem report;
  report.mode = CheckMode::kReport;
  EXPECT_FALSE(MustFinish(AnyRequest(report)));
  GrowFilesystem measure;
  measure.only_measure = true;
  EXPECT_FALSE(MustFinish(AnyRequest(measure)));
  EXPECT_EQ(RequestPath(AnyRequest(ProbeDevice{"/dev/sdb"})), "/dev/sdb");
}

}  // namespace
}  // namespace volumed
