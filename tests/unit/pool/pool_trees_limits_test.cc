// What volumes that are directories and subvolumes may have at most, over FakeKernel: what sets the
// limit, what takes it away, and what the owner of a directory can do with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fakes/must.h"
#include "unit/pool/pool_trees_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(TreeBackendTest, ANewVolumeTookAQuotaAboveItsSize) {
  PoolVolumeWish wish = TreeWish(Backend());
  wish.mutable_parameters = {{"quotaBytes", std::to_string(kTreeBytes + 1)}};
  ExpectRefused(volumes().Create(wish, {}), Code::kInvalidArgument, "more than the size");
  EXPECT_THAT(node_.Rows(), IsEmpty());
  EXPECT_THAT(node_.Directories(), IsEmpty());
  wish.mutable_parameters = {{"quotaBytes", std::to_string(kTreeBytes)}};
  EXPECT_EQ(QuotaOf(Must(volumes().Create(wish, {})).id).limit_bytes, kTreeBytes);
}

TEST_P(TreeBackendTest, AccountsThatWereSwitchedOffLeftVolumesWithoutTheirLimits) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  ASSERT_EQ(Write(DataOf(made.id) + "/f", kMiB), 0);
  ASSERT_TRUE(volumes().Modify(made.id, {{"quotaBytes", std::to_string(kMiB)}}, {}).ok());
  node_.kernel.ForgetTreeLimits(kPoolPath);
  if (Backend() == "directory") {
    ExpectRefused(volumes().Open(made.id, false, {}), Code::kFailedPrecondition, "best-effort");
    node_.kernel.CountProjects(kPoolPath, true);
  }
  Must(volumes().Open(made.id, false, {}));
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, kMiB);
  EXPECT_EQ(Write(DataOf(made.id) + "/g", kTreeBytes), Beyond());
}

TEST_P(TreeBackendTest, ALimitThatIsThereIsNotSetAgainWheneverItIsOpened) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  node_.kernel.FailNext("SetTreeQuota", Error::NotApplied(Code::kInternal, "it was set"), 1);
  EXPECT_TRUE(volumes().Open(made.id, false, {}).ok());
}

TEST_P(TreeBackendTest, AVolumeWithLessThanItsSizeAsItsLimitIsNotToldAsLost) {
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish(Backend()), {}));
  ASSERT_TRUE(volumes().Modify(made.id, {{"quotaBytes", std::to_string(kMiB)}}, {}).ok());
  EXPECT_THAT(volumes().Look("fast", {}).lost, IsEmpty());
  EXPECT_THAT(volumes().Look("fast", {}).unbounded, IsEmpty());
}

// What the owner of a directory, a user of its pod, can do with it.
class ForeignProjectTest : public TreePoolTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Start("xfs"));
    mine_ = Must(volumes().Create(TreeWish("directory", "mine"), {}));
    PoolVolumeWish wish = TreeWish("directory", "easy");
    wish.parameters["quota"] = "best-effort";
    easy_ = Must(volumes().Create(wish, {}));
    victim_ = Must(volumes().Create(TreeWish("directory", "victim"), {}));
    for (const PoolVolumeRecord* made : {&mine_, &easy_, &victim_}) {
      ASSERT_EQ(Write(DataOf(made->id) + "/f", 4096), 0);
      ASSERT_NE(made->project_id, 0u);
      EXPECT_EQ(made->project_id, QuotaOf(made->id).id);
    }
    ASSERT_EQ(Write(DataOf(victim_.id) + "/g", kMiB), 0);
  }
  void GiveAway(const PoolVolumeRecord& volume, uint64_t project) {
    node_.kernel.GiveToProject(DataOf(volume.id), project);
  }

  PoolVolumeRecord mine_;
  PoolVolumeRecord easy_;
  PoolVolumeRecord victim_;
};

TEST_F(ForeignProjectTest, TheLimitOfAnotherVolumeWasSetInPlaceOfItsOwn) {
  for (const PoolVolumeRecord* given : {&mine_, &easy_}) {
    GiveAway(*given, victim_.project_id);
    const Status tuned = volumes().Modify(given->id, {{"quotaBytes", "4096"}}, {});
    ASSERT_FALSE(tuned.ok());
    EXPECT_EQ(tuned.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(tuned.error().maybe_applied());
    EXPECT_THAT(tuned.error().message(),
                HasSubstr("chattr -R -p " + std::to_string(given->project_id)));
    EXPECT_FALSE(volumes().Expand(given->id, 8 * kTreeBytes, {}).ok());
    EXPECT_EQ(QuotaOf(victim_.id).limit_bytes, kTreeBytes);
  }
}

TEST_F(ForeignProjectTest, ADeletionTookTheLimitOfAnotherVolumeAway) {
  for (const PoolVolumeRecord* given : {&mine_, &easy_}) {
    GiveAway(*given, victim_.project_id);
    const Status deleted = volumes().Delete(given->id, false, {});
    ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
    EXPECT_EQ(QuotaOf(victim_.id).limit_bytes, kTreeBytes);
  }
  EXPECT_EQ(node_.kernel.TreeLimits(kPoolPath), 1u) << "their own went with them";
}

TEST_F(ForeignProjectTest, ADirectoryOfAnotherProjectIsToldAndOpenedOnlyIfItsClassIsContent) {
  GiveAway(mine_, victim_.project_id);
  GiveAway(easy_, 0);
  ExpectRefused(volumes().Open(mine_.id, false, {}), Code::kFailedPrecondition,
                "project " + std::to_string(mine_.project_id) + " is on record");
  EXPECT_TRUE(volumes().Open(easy_.id, false, {}).ok());
  EXPECT_TRUE(volumes().Open(victim_.id, false, {}).ok());
  const PoolHealth health = volumes().Look("fast", {});
  EXPECT_THAT(health.lost, IsEmpty());
  ASSERT_THAT(health.unbounded, SizeIs(2));
  EXPECT_THAT(health.unbounded.at(mine_.id),
              HasSubstr("it is of project " + std::to_string(victim_.project_id)));
  EXPECT_THAT(health.unbounded.at(easy_.id), HasSubstr("it is of no project"));
  // Given back, all is well.
  GiveAway(mine_, mine_.project_id);
  EXPECT_TRUE(volumes().Open(mine_.id, false, {}).ok());
  EXPECT_EQ(QuotaOf(mine_.id).limit_bytes, kTreeBytes);
}

TEST_F(ForeignProjectTest, WhatAnotherVolumeHasWasCountedAsItsOwn) {
  const int64_t before = Must(volumes().Capacity({}, {})).outstanding_bytes;
  GiveAway(mine_, victim_.project_id);
  EXPECT_EQ(Must(volumes().Capacity({}, {})).outstanding_bytes, before + 4096);
}

// The rows of an earlier program have no project.
TEST_F(ForeignProjectTest, WithoutANumberOnRecordOnlyOneThatIsChosenForItIsTaken) {
  for (PoolVolumeRecord row : {mine_, easy_}) {
    row.project_id = 0;
    ASSERT_TRUE(node_.store.Put(EncodeRecord(row), Durability::kPowerLoss).ok());
  }
  GiveAway(mine_, victim_.project_id);
  agent_.reset();
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  EXPECT_FALSE(volumes().Open(mine_.id, false, {}).ok());
  EXPECT_FALSE(volumes().Modify(mine_.id, {{"quotaBytes", "4096"}}, {}).ok());
  EXPECT_TRUE(volumes().Delete(mine_.id, false, {}).ok());
  EXPECT_EQ(QuotaOf(victim_.id).limit_bytes, kTreeBytes);
  Must(volumes().Open(easy_.id, false, {}));
  EXPECT_EQ(volumes().Find(easy_.id)->project_id, easy_.project_id);
}

TEST_F(TreePoolTest, AQuotaThatWasAskedForByItsNumberWasNotThere) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs", /*counts_projects=*/false));
  PoolVolumeWish wish = TreeWish("directory");
  wish.parameters["quota"] = "best-effort";
  wish.mutable_parameters = {{"quotaBytes", std::to_string(kMiB)}};
  ExpectRefused(volumes().Create(wish, {}), Code::kInvalidArgument, "quotaBytes cannot be set");
  EXPECT_THAT(node_.Rows(), IsEmpty());
  EXPECT_THAT(node_.Directories(), IsEmpty());
}

TEST_F(TreePoolTest, WithoutProjectQuotaADirectoryIsRefusedUnlessItsClassIsContentWithLess) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs", /*counts_projects=*/false));
  ExpectRefused(volumes().Create(TreeWish("directory"), {}), Code::kFailedPrecondition,
                "best-effort");
  EXPECT_THAT(node_.Rows(), IsEmpty());
  EXPECT_THAT(node_.Directories(), IsEmpty());
  PoolVolumeWish wish = TreeWish("directory");
  wish.parameters["quota"] = "best-effort";
  const PoolVolumeRecord made = Must(volumes().Create(wish, {}));
  EXPECT_EQ(Write(DataOf(made.id) + "/f", 2 * kTreeBytes), 0);
  EXPECT_EQ(Must(volumes().Expand(made.id, 2 * kTreeBytes, {})), 2 * kTreeBytes);
  EXPECT_TRUE(volumes().Delete(made.id, false, {}).ok());
}

TEST_F(TreePoolTest, AProjectThatSomebodyElseHasIsPassedOver) {
  ASSERT_NO_FATAL_FAILURE(Start("xfs"));
  node_.kernel.FailNext("SetTreeQuota", Error::NotApplied(Code::kAlreadyExists, "it has files"), 3);
  const PoolVolumeRecord one = Must(volumes().Create(TreeWish("directory", "one"), {}));
  const PoolVolumeRecord two = Must(volumes().Create(TreeWish("directory", "two"), {}));
  EXPECT_NE(QuotaOf(one.id).id, 0u);
  EXPECT_NE(QuotaOf(one.id).id, QuotaOf(two.id).id);
}

TEST_F(TreePoolTest, TheProjectOfADeletedDirectoryKeptItsLimitForEver) {
  ASSERT_NO_FATAL_FAILURE(Start("ext4"));
  const PoolVolumeRecord made = Must(volumes().Create(TreeWish("directory"), {}));
  ASSERT_EQ(Write(DataOf(made.id) + "/f", kMiB), 0);
  EXPECT_EQ(node_.kernel.TreeLimits(kPoolPath), 1u);
  // The agent that took the limit away may have ended before it removed the files.
  node_.kernel.FailNext("RemoveTree", Error::NotApplied(Code::kUnavailable, "it died"), 1);
  EXPECT_FALSE(volumes().Delete(made.id, false, {}).ok());
  EXPECT_EQ(node_.kernel.TreeLimits(kPoolPath), 0u);
  const Status deleted = volumes().Delete(made.id, false, {});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_THAT(node_.Directories(), IsEmpty());
  EXPECT_EQ(node_.kernel.TreeLimits(kPoolPath), 0u);
}

TEST_F(TreePoolTest, ADirectoryWhosePoolIsOfAProjectTookThatProjectsLimit) {
  MountDisk("ext4");
  SetTreeQuota of_pool{{kPoolPath, ""}};
  of_pool.project_id = 7;
  of_pool.bytes = 64 * kMiB;
  node_.Aside(of_pool);
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ExpectRefused(volumes().Create(TreeWish("directory"), {}), Code::kFailedPrecondition,
                "of another project");
  EXPECT_THAT(node_.Rows(), IsEmpty());
  EXPECT_THAT(node_.Directories(), IsEmpty());
  EXPECT_EQ(node_.Aside(ReadTreeQuota{{kPoolPath, ""}}).limit_bytes, 64 * kMiB);
}

}  // namespace
}  // namespace volumed
