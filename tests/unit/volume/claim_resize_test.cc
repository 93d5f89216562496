#include "volume/claim_resize.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

Quantity Gibibytes(int64_t count) { return Quantity::FromBytes(count << 30); }

PersistentVolumeClaim FromCluster(int64_t capacity, const std::string& status = "") {
  PersistentVolumeClaim claim;
  claim.status.phase = PersistentVolumeClaimPhase::kBound;
  claim.status.capacity["storage"] = Gibibytes(capacity);
  if (!status.empty()) claim.status.allocated_resource_statuses["storage"] = status;
  return claim;
}

std::string Conditions(const ClaimResize& resize) {
  std::string text;
  for (const ClaimCondition& condition : resize.conditions) text += condition.type + " ";
  return text;
}

TEST(ClaimResize, AClaimWithoutAStatusHasTheSizeOfItsVolume) {
  const PersistentVolumeClaim claim;
  const ClaimResize resize = FollowClaim(std::nullopt, &claim, Gibibytes(1));
  EXPECT_EQ(resize.capacity, Gibibytes(1));
  EXPECT_FALSE(resize.allocated);
  EXPECT_TRUE(IsKeptByAgent(resize));
  EXPECT_EQ(FollowClaim(resize, &claim, Gibibytes(5)), resize);
  EXPECT_EQ(FollowClaim(resize, nullptr, Gibibytes(5)), resize);
}

// The claim got the size of its volume, and nothing was left to do.
TEST(ClaimResize, AGrowthThatAClusterHadBegunWasForgotten) {
  PersistentVolumeClaim claim = FromCluster(1, "NodeResizePending");
  claim.status.phase.reset();
  ClaimResize resize = FollowClaim(std::nullopt, &claim, Gibibytes(2));
  EXPECT_EQ(resize.capacity, Gibibytes(1));
  EXPECT_TRUE(IsKeptByAgent(resize));
  FollowVolume(Gibibytes(2), 10, resize);
  EXPECT_EQ(resize.status, kNodeResizePending);
  EXPECT_EQ(resize.allocated, Gibibytes(2));
  MarkNodeResizeFinished(Gibibytes(2), resize);
  EXPECT_EQ(FollowClaim(resize, &claim, Gibibytes(2)), resize) << "the manifest says it for ever";
  claim.status = {};
  EXPECT_EQ(FollowClaim(resize, &claim, Gibibytes(2)), resize);
}

TEST(ClaimResize, NoManifestSaysThatAClaimHasMoreThanItsVolumeOrNothing) {
  for (const int64_t said : {0, 5}) {
    PersistentVolumeClaim claim = FromCluster(said, "NodeResizePending");
    claim.status.phase.reset();
    EXPECT_EQ(FollowClaim(std::nullopt, &claim, Gibibytes(2)).capacity, Gibibytes(2)) << said;
  }
}

TEST(ClaimResize, AGrownVolumeIsPendingOnceAndAWishTakenBackIsForgotten) {
  ClaimResize resize = FollowClaim(std::nullopt, nullptr, Gibibytes(1));
  FollowVolume(Gibibytes(2), 10, resize);
  EXPECT_EQ(resize.status, kNodeResizePending);
  EXPECT_EQ(resize.allocated, Gibibytes(2));
  EXPECT_EQ(Conditions(resize), "FileSystemResizePending ");
  MarkNodeResizeInProgress(20, resize);
  const ClaimResize begun = resize;
  FollowVolume(Gibibytes(2), 30, resize);
  EXPECT_EQ(resize, begun);
  MarkNodeResizeFailed(true, "no", 40, resize);
  EXPECT_EQ(resize.status, kNodeResizeInfeasible);
  EXPECT_EQ(Conditions(resize), "FileSystemResizePending NodeResizeError ");
  FollowVolume(Gibibytes(2), 50, resize);
  EXPECT_EQ(resize.status, kNodeResizeInfeasible);
  ClaimResize larger = resize;
  FollowVolume(Gibibytes(3), 50, larger);
  EXPECT_EQ(larger.status, kNodeResizePending);
  EXPECT_EQ(larger.allocated, Gibibytes(3));
  FollowVolume(Gibibytes(1), 50, resize);
  EXPECT_EQ(resize.status, "");
  EXPECT_EQ(resize.allocated, Gibibytes(1));
  EXPECT_EQ(Conditions(resize), "");
}

TEST(ClaimResize, AFinishedResizeLeavesItsSizeAndNothingElse) {
  ClaimResize resize = FollowClaim(std::nullopt, nullptr, Gibibytes(1));
  FollowVolume(Gibibytes(2), 10, resize);
  MarkNodeResizeInProgress(20, resize);
  resize.conditions.push_back({"Strange", "True", "", "", std::nullopt});
  MarkNodeResizeFinished(Gibibytes(2), resize);
  EXPECT_EQ(resize.capacity, Gibibytes(2));
  EXPECT_EQ(resize.status, "");
  EXPECT_EQ(Conditions(resize), "Strange ");
  MarkNodeResizeFinished(Gibibytes(1), resize);
  EXPECT_EQ(resize.capacity, Gibibytes(2));
}

TEST(ClaimResize, AClaimOfAClusterFollowsItsController) {
  PersistentVolumeClaim claim = FromCluster(1);
  ClaimResize resize = FollowClaim(std::nullopt, &claim, Gibibytes(2));
  EXPECT_EQ(resize.capacity, Gibibytes(1));
  EXPECT_FALSE(IsKeptByAgent(resize));
  FollowVolume(Gibibytes(2), 10, resize);
  EXPECT_EQ(resize.status, "");
  MarkNodeResizeFinished(Gibibytes(2), resize);
  // The manifest is as old as before: what was proven stays.
  EXPECT_EQ(FollowClaim(resize, &claim, Gibibytes(2)).capacity, Gibibytes(2));
  claim = FromCluster(1, "NodeResizePending");
  claim.status.allocated_resources["storage"] = Gibibytes(4);
  resize = FollowClaim(resize, &claim, Gibibytes(4));
  EXPECT_EQ(resize.status, kNodeResizePending);
  EXPECT_EQ(resize.allocated, Gibibytes(4));
  EXPECT_EQ(resize.capacity, Gibibytes(2));
}

TEST(ClaimResize, AConditionKeepsTheTimeAtWhichItBecameTrue) {
  ClaimResize resize;
  MarkNodeResizeFailed(false, "first", 10, resize);
  MarkNodeResizeFailed(false, "second", 20, resize);
  ASSERT_EQ(resize.conditions.size(), 1u);
  EXPECT_EQ(resize.conditions[0].message, "second");
  EXPECT_EQ(resize.conditions[0].last_transition_unix_millis, 10);
}

TEST(ClaimResize, IsShownInPlaceOfTheObjectsOwn) {
  PersistentVolumeClaimStatus status = FromCluster(1, "NodeResizePending").status;
  ClaimResize resize;
  resize.capacity = Gibibytes(3);
  resize.allocated = Gibibytes(3);
  ShowIn(resize, status);
  EXPECT_EQ(status.capacity["storage"], Gibibytes(3));
  EXPECT_EQ(status.allocated_resources["storage"], Gibibytes(3));
  EXPECT_TRUE(status.allocated_resource_statuses.empty());
}

TEST(ClaimResize, AGrowthOfTheStorageStandsUntilItsEndWhateverTheVolumesObjectSays) {
  ClaimResize resize = FollowClaim(std::nullopt, nullptr, Gibibytes(1));
  MarkStorageGrows(Gibibytes(2), 10, resize);
  EXPECT_EQ(resize.status, kControllerResizeInProgress);
  EXPECT_EQ(resize.allocated, Gibibytes(2));
  EXPECT_EQ(Conditions(resize), "Resizing ");
  const ClaimResize begun = resize;
  FollowVolume(Gibibytes(1), 20, resize);
  EXPECT_EQ(resize, begun);
  MarkStorageGrowthFailed(false, "busy", 30, resize);
  EXPECT_EQ(resize.status, kControllerResizeInProgress);
  EXPECT_EQ(Conditions(resize), "Resizing ControllerResizeError ");
  MarkStorageGrown(Gibibytes(3), true, 40, resize);
  EXPECT_EQ(resize.volume_capacity, Gibibytes(3));
  EXPECT_EQ(resize.status, kNodeResizePending);
  EXPECT_EQ(resize.allocated, Gibibytes(3));
  EXPECT_EQ(Conditions(resize), "FileSystemResizePending ");
  EXPECT_EQ(EffectiveCapacity(Gibibytes(1), resize), Gibibytes(3));
  const ClaimResize grown = resize;
  FollowVolume(Gibibytes(1), 50, resize);
  EXPECT_EQ(resize, grown) << "the manifest's capacity is of the past";
  MarkNodeResizeFinished(Gibibytes(3), resize);
  FollowVolume(Gibibytes(1), 60, resize);
  EXPECT_EQ(resize.capacity, Gibibytes(3));
  EXPECT_EQ(resize.status, "");
}

TEST(ClaimResize, StorageThatNeedsNoNodeIsFinishedInOneStep) {
  ClaimResize resize = FollowClaim(std::nullopt, nullptr, Gibibytes(1));
  MarkStorageGrows(Gibibytes(2), 10, resize);
  MarkStorageGrown(Gibibytes(2), false, 20, resize);
  EXPECT_EQ(resize.capacity, Gibibytes(2));
  EXPECT_EQ(resize.status, "");
  EXPECT_EQ(Conditions(resize), "");
}

TEST(ClaimResize, AVolumeThatSomebodyElseHasMadeSoLargeIsTheNodesTurn) {
  ClaimResize resize = FollowClaim(std::nullopt, nullptr, Gibibytes(1));
  MarkStorageGrows(Gibibytes(2), 10, resize);
  FollowVolume(Gibibytes(2), 20, resize);
  EXPECT_EQ(resize.status, kNodeResizePending);
  EXPECT_EQ(resize.allocated, Gibibytes(2));
}

TEST(ClaimResize, AnInfeasibleGrowthOfTheStorageThatIsTakenBackLeavesNothing) {
  ClaimResize resize = FollowClaim(std::nullopt, nullptr, Gibibytes(1));
  MarkStorageGrows(Gibibytes(2), 10, resize);
  MarkStorageGrowthFailed(true, "never", 20, resize);
  EXPECT_EQ(resize.status, kControllerResizeInfeasible);
  EXPECT_EQ(Conditions(resize), "ControllerResizeError ");
  const ClaimResize failed = resize;
  FollowVolume(Gibibytes(1), 30, resize);
  EXPECT_EQ(resize, failed);
  MarkStorageGrowthTakenBack(resize);
  EXPECT_EQ(resize.status, "");
  EXPECT_EQ(resize.allocated, Gibibytes(1));
  EXPECT_EQ(Conditions(resize), "");
}

}  // namespace
}  // namespace volumed
