#include "csidriver/csi_publish_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace volumed {
namespace {

using Modes = ::csi::v1::VolumeCapability::AccessMode;

CsiPublication At(const std::string& path, CsiAccessMode mode, bool read_only = false) {
  CsiPublication publication;
  publication.target_path = path;
  publication.capability.access_mode = mode;
  publication.read_only = read_only;
  return publication;
}

std::vector<CsiAccessMode> KnownModes() {
  std::vector<CsiAccessMode> modes;
  for (int i = 1; i < Modes::Mode_descriptor()->value_count(); ++i) {
    modes.push_back(static_cast<CsiAccessMode>(Modes::Mode_descriptor()->value(i)->number()));
  }
  return modes;
}

TEST(CsiPublishRulesTest, WhatIsNotPublishedIsPublished) {
  for (const CsiAccessMode mode : KnownModes()) {
    const auto answer = DecideCsiPublish(At("/t/1", mode), {});
    ASSERT_TRUE(answer.ok()) << answer.error().ToString();
    EXPECT_EQ(*answer, CsiPublishAnswer::kPublish);
  }
}

TEST(CsiPublishRulesTest, TheSamePublishIsNoErrorInAnyMode) {
  for (const CsiAccessMode mode : KnownModes()) {
    const auto answer = DecideCsiPublish(At("/t/1", mode), {At("/t/1", mode)});
    ASSERT_TRUE(answer.ok()) << Modes::Mode_Name(mode) << answer.error().ToString();
    EXPECT_EQ(*answer, CsiPublishAnswer::kIsThere);
  }
}

TEST(CsiPublishRulesTest, OtherArgumentsAtTheSameTargetAreRefusedInEveryMode) {
  for (const CsiAccessMode mode : KnownModes()) {
    CsiPublication other_group = At("/t/1", mode);
    other_group.capability.fs_group = 7;
    CsiPublication other_flags = At("/t/1", mode);
    other_flags.capability.mount_flags = {"noatime"};
    for (const CsiPublication& wanted : {At("/t/1", mode, true), other_group, other_flags}) {
      const auto answer = DecideCsiPublish(wanted, {At("/t/1", mode)});
      ASSERT_FALSE(answer.ok()) << Modes::Mode_Name(mode);
      EXPECT_EQ(answer.error().code(), Code::kAlreadyExists);
      EXPECT_FALSE(answer.error().maybe_applied());
    }
  }
}

TEST(CsiPublishRulesTest, AnotherTargetIsForModesThatDoNotSayOnePlace) {
  for (const CsiAccessMode mode : KnownModes()) {
    const bool is_one =
        mode == Modes::SINGLE_NODE_SINGLE_WRITER || mode == Modes::SINGLE_NODE_READER_ONLY;
    const auto answer = DecideCsiPublish(At("/t/2", mode), {At("/t/1", mode)});
    EXPECT_EQ(answer.ok(), !is_one) << Modes::Mode_Name(mode);
    if (!answer.ok()) {
      EXPECT_EQ(answer.error().code(), Code::kFailedPrecondition);
      EXPECT_NE(answer.error().message().find("/t/1"), std::string::npos)
          << answer.error().ToString();
    }
  }
}

TEST(CsiPublishRulesTest, OnePlaceAloneHoldsWhicheverOfTheTwoSaysIt) {
  const CsiAccessMode one = Modes::SINGLE_NODE_SINGLE_WRITER;
  const CsiAccessMode many = Modes::SINGLE_NODE_MULTI_WRITER;
  EXPECT_FALSE(DecideCsiPublish(At("/t/2", many), {At("/t/1", one)}).ok());
  EXPECT_FALSE(DecideCsiPublish(At("/t/2", one), {At("/t/1", many)}).ok());
}

TEST(CsiPublishRulesTest, TheOwnTargetIsLookedAtBeforeTheOthers) {
  const CsiAccessMode one = Modes::SINGLE_NODE_SINGLE_WRITER;
  const auto answer = DecideCsiPublish(At("/t/2", one), {At("/t/1", one), At("/t/2", one)});
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(*answer, CsiPublishAnswer::kIsThere);
}

}  // namespace
}  // namespace volumed
