#include "volume/storage_growth.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

Quantity Gib(int64_t count) { return Quantity::FromBytes(count << 30); }

// A volume of 1Gi whose claim asks for 2Gi, which its class allows.
StorageGrowthQuestion Asks() {
  StorageGrowthQuestion question;
  question.volume_capacity = Gib(1);
  question.claim_request = Gib(2);
  question.class_allows = true;
  return question;
}

StorageGrowthAction GrowthAction(const StorageGrowthQuestion& question) {
  return DecideStorageGrowth(question).action;
}

TEST(StorageGrowth, AClaimThatAsksForMoreIsIntendedFirst) {
  const StorageGrowth growth = DecideStorageGrowth(Asks());
  EXPECT_EQ(growth.action, StorageGrowthAction::kIntend);
  EXPECT_EQ(growth.size, Gib(2));
}

TEST(StorageGrowth, AClaimThatAsksForNoMoreHasNothing) {
  StorageGrowthQuestion question = Asks();
  question.claim_request = Gib(1);
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kNothing);
}

TEST(StorageGrowth, WhatIsOnRecordGoesOnWhateverTheClaimSaysByNow) {
  for (const int64_t request : {1, 2, 3}) {
    StorageGrowthQuestion question = Asks();
    question.resize_status = kControllerResizeInProgress;
    question.allocated = Gib(2);
    question.claim_request = Gib(request);
    question.class_allows = false;
    const StorageGrowth growth = DecideStorageGrowth(question);
    EXPECT_EQ(growth.action, StorageGrowthAction::kExpand);
    EXPECT_EQ(growth.size, Gib(2));
  }
}

TEST(StorageGrowth, AnInfeasibleSizeWaitsForAnotherWish) {
  StorageGrowthQuestion question = Asks();
  question.resize_status = kControllerResizeInfeasible;
  question.allocated = Gib(2);
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kNothing);
  question.claim_request = Gib(3);
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kIntend);
  question.claim_request = Gib(1);
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kTakeBack);
}

TEST(StorageGrowth, TheNodeMakesTheVolumeAsLargeAsItsStorageFirst) {
  StorageGrowthQuestion question = Asks();
  for (const std::string_view status :
       {kNodeResizePending, kNodeResizeInProgress, kNodeResizeInfeasible}) {
    question.resize_status = status;
    question.is_on_node = true;
    EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kWait);
  }
  question.resize_status = kNodeResizePending;
  question.is_on_node = false;
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kIntend) << "no node is at it";
}

TEST(StorageGrowth, WhatGrowsOnlyUnusedWaitsBeforeAndAfterTheIntent) {
  StorageGrowthQuestion question = Asks();
  question.only_unused = true;
  question.is_on_node = true;
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kWait);
  EXPECT_NE(DecideStorageGrowth(question).waits_for, "");
  EXPECT_TRUE(DecideStorageGrowth(question).for_users);
  question.resize_status = kControllerResizeInProgress;
  question.allocated = Gib(2);
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kWait);
  question.is_on_node = false;
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kExpand);
}

TEST(StorageGrowth, AClassThatDoesNotAllowItIsNamed) {
  StorageGrowthQuestion question = Asks();
  question.class_allows = false;
  EXPECT_EQ(GrowthAction(question), StorageGrowthAction::kWait);
  EXPECT_NE(DecideStorageGrowth(question).waits_for.find("class"), std::string::npos);
}

TEST(StorageGrowth, OnlyWhatIsCertainlyImpossibleIsInfeasible) {
  for (int number = 1; number <= 16; ++number) {
    const Code code = static_cast<Code>(number);
    const bool impossible =
        code == Code::kInvalidArgument || code == Code::kNotFound || code == Code::kOutOfRange;
    EXPECT_EQ(IsInfeasibleGrowth(Error::NotApplied(code, "no")), impossible) << number;
    EXPECT_FALSE(IsInfeasibleGrowth(Error::MaybeApplied(code, "no"))) << number;
  }
}

}  // namespace
}  // namespace volumed
