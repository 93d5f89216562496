#include "plugins/fc_names.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

const FcNames kByPort{{"500a0982991b8dc5", "500a0982891b8dc5"}, 0, {}};
const FcNames kByWwid{{}, std::nullopt, {"3600508b400105e210000900000490000"}};

TEST(FcNamesTest, AVolumeIsCalledAsKubeletCallsIt) {
  EXPECT_EQ(FcVolumeName(kByPort), "[500a0982991b8dc5 500a0982891b8dc5]:0");
  EXPECT_EQ(FcVolumeName(kByWwid), "[3600508b400105e210000900000490000]");
  EXPECT_EQ(FcDirectoryName(kByPort), "500a0982991b8dc5-500a0982891b8dc5-lun-0");
  EXPECT_EQ(FcDirectoryName(kByWwid), "3600508b400105e210000900000490000");
}

TEST(FcNamesTest, ADirectoryIsReadBack) {
  for (const FcNames& names : {kByPort, kByWwid, FcNames{{"500a0982991b8dc5"}, 2147483647, {}},
                               FcNames{{}, std::nullopt, {"3600508b400105e2", "3600508b400105e3"}},
                               FcNames{{}, std::nullopt, {"1ATA_disk-of-mine_17"}}}) {
    EXPECT_EQ(ParseFcDirectoryName(FcDirectoryName(names)), names) << FcDirectoryName(names);
  }
  EXPECT_EQ(ParseFcDirectoryName("-lun-3").wwids.size(), 1u);
  EXPECT_TRUE(ParseFcDirectoryName("a-lun-99999999999").target_wwns.empty());
}

TEST(FcNamesTest, WhatNamesNoDeviceOrLeavesItsDirectoryIsRefused) {
  EXPECT_TRUE(ValidateFcNames(kByPort).ok());
  EXPECT_TRUE(ValidateFcNames(kByWwid).ok());
  for (const FcNames& names :
       {FcNames{}, FcNames{{"500a"}, std::nullopt, {}}, FcNames{{"500a"}, -1, {}},
        FcNames{{"500a"}, 0, {"3600"}}, FcNames{{"../../etc"}, 0, {}}, FcNames{{""}, 0, {}},
        FcNames{{}, std::nullopt, {".."}}, FcNames{{}, std::nullopt, {"volumeDevices"}}}) {
    const Status valid = ValidateFcNames(names);
    ASSERT_FALSE(valid.ok());
    EXPECT_EQ(valid.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace volumed
