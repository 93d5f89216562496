// Which node has a volume: what is given, what is refused, and what outlives the agent.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit/pool/pool_fixture.h"

namespace volumed {
namespace {

constexpr int32_t kSingleNodeWriter = 1;
constexpr int32_t kManyReaders = 3;
constexpr int32_t kManyWriters = 5;

PoolLease Lease(const std::string& node, int32_t mode = kSingleNodeWriter, bool read_only = false) {
  return {node, read_only, mode, /*by_stage=*/false};
}
PoolLease Staged(const std::string& node, int32_t mode = kSingleNodeWriter) {
  return {node, false, mode, /*by_stage=*/true};
}

PoolLease AlsoStaged(PoolLease lease) {
  lease.is_staged = true;
  return lease;
}

class PoolLeasesTest : public ::testing::Test {
 protected:
  PoolLeasesTest() { StartAgent(); }
  void StartAgent() {
    agent_.reset();
    agent_ = std::make_unique<PoolAgent>(world_);
    const Status recovered = agent_->Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().ToString();
  }
  PoolVolumes& volumes() { return *agent_->volumes; }
  std::string Make(const std::string& name) { return Must(volumes().Create(Wish(name), {})).id; }
  std::vector<PoolLease> LeasesOf(const std::string& id) { return Must(volumes().Find(id)).leases; }
  static Code CodeOf(const Status& status) {
    EXPECT_TRUE(status.ok() || !status.error().maybe_applied());
    return status.ok() ? Code::kUnknown : status.error().code();
  }

  PoolWorld world_;
  std::unique_ptr<PoolAgent> agent_;
};

TEST_F(PoolLeasesTest, ALeaseIsOnRecordAndOutlivesAPowerLoss) {
  const std::string id = Make("a");
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1"), 0).ok());
  world_.store.PowerLoss();
  StartAgent();
  EXPECT_EQ(LeasesOf(id), std::vector{Lease("n1")});
  EXPECT_TRUE(volumes().TakeLease(id, Lease("n1"), 0).ok()) << "the same call again";
  ASSERT_TRUE(volumes().EndLease(id, "n1", false).ok());
  EXPECT_TRUE(volumes().EndLease(id, "n1", false).ok()) << "the same call again";
  world_.store.PowerLoss();
  StartAgent();
  EXPECT_TRUE(LeasesOf(id).empty());
}

// Nothing is staged after a power loss; and whoever was told that he has unstaged a volume does not
// ask again.
TEST_F(PoolLeasesTest, APowerLossMayTakeTheLeaseOfAStageAndNeverBringsItBack) {
  const std::string id = Make("a");
  ASSERT_TRUE(volumes().TakeLease(id, Staged("n1"), 0).ok());
  world_.store.PowerLoss();
  StartAgent();
  EXPECT_TRUE(LeasesOf(id).empty());
  ASSERT_TRUE(volumes().TakeLease(id, Staged("n1"), 0).ok());
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1"), 0).ok());
  ASSERT_TRUE(volumes().EndLease(id, "n1", false).ok());
  ASSERT_TRUE(volumes().EndLease(id, "n1", true).ok());
  world_.store.PowerLoss();
  StartAgent();
  EXPECT_TRUE(LeasesOf(id).empty());
  EXPECT_TRUE(volumes().TakeLease(id, Lease("n2"), 0).ok());
}

TEST_F(PoolLeasesTest, AnotherNodeIsRefusedByName) {
  const std::string id = Make("a");
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1"), 0).ok());
  const Status second = volumes().TakeLease(id, Lease("n2"), 0);
  EXPECT_EQ(CodeOf(second), Code::kFailedPrecondition);
  EXPECT_NE(second.error().message().find("\"n1\""), std::string::npos)
      << second.error().ToString();
  EXPECT_EQ(CodeOf(volumes().TakeLease(id, Staged("n2"), 0)), Code::kFailedPrecondition);
  EXPECT_EQ(LeasesOf(id), std::vector{Lease("n1")});
}

TEST_F(PoolLeasesTest, ModesOfSeveralNodesAreGivenToSeveral) {
  const std::string id = Make("a");
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1", kManyWriters), 0).ok());
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n2", kManyReaders), 0).ok());
  EXPECT_EQ(LeasesOf(id).size(), 2u);
  ASSERT_TRUE(volumes().EndLease(id, "n1", false).ok());
  EXPECT_EQ(LeasesOf(id), std::vector{Lease("n2", kManyReaders)});
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1", kManyWriters), 0).ok());
  ASSERT_TRUE(volumes().EndLease(id, "", false).ok());
  EXPECT_TRUE(LeasesOf(id).empty()) << "of all nodes";
}

TEST_F(PoolLeasesTest, AnotherModeOrReadonlyOnTheSameNodeAlreadyExists) {
  const std::string id = Make("a");
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1", kManyWriters), 0).ok());
  EXPECT_EQ(CodeOf(volumes().TakeLease(id, Lease("n1", kManyWriters, true), 0)),
            Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(volumes().TakeLease(id, Lease("n1", kManyReaders), 0)), Code::kAlreadyExists);
  EXPECT_EQ(LeasesOf(id), std::vector{Lease("n1", kManyWriters)});
}

TEST_F(PoolLeasesTest, AStageTakesALeaseOnlyIfTheNodeHasNone) {
  const std::string published = Make("a");
  ASSERT_TRUE(volumes().TakeLease(published, Lease("n1"), 0).ok());
  ASSERT_TRUE(volumes().TakeLease(published, Staged("n1"), 0).ok());
  EXPECT_EQ(LeasesOf(published), std::vector{AlsoStaged(Lease("n1"))});
  ASSERT_TRUE(volumes().EndLease(published, "n1", true).ok());
  EXPECT_EQ(LeasesOf(published), std::vector{Lease("n1")}) << "it was not the stage's";

  const std::string staged = Make("b");
  ASSERT_TRUE(volumes().TakeLease(staged, Staged("n1"), 0).ok());
  ASSERT_TRUE(volumes().EndLease(staged, "n1", false).ok());
  EXPECT_EQ(LeasesOf(staged), std::vector{Staged("n1")}) << "it goes with the stage";
  ASSERT_TRUE(volumes().EndLease(staged, "n1", true).ok());
  EXPECT_TRUE(LeasesOf(staged).empty());
}

// The controller took the lease of a volume that was staged, and gave it to another node.
TEST_F(PoolLeasesTest, WhatIsStagedStaysTheNodesWhateverTheControllerTakesBack) {
  const std::string id = Make("a");
  for (const bool is_published_first : {true, false}) {
    const PoolLease first = is_published_first ? Lease("n1") : Staged("n1");
    const PoolLease second = is_published_first ? Staged("n1") : Lease("n1");
    ASSERT_TRUE(volumes().TakeLease(id, first, 0).ok());
    ASSERT_TRUE(volumes().TakeLease(id, second, 0).ok());
    ASSERT_TRUE(volumes().EndLease(id, "n1", /*by_stage=*/false).ok());
    EXPECT_EQ(LeasesOf(id), std::vector{Staged("n1")});
    EXPECT_EQ(CodeOf(volumes().TakeLease(id, Lease("n2"), 0)), Code::kFailedPrecondition);
    ASSERT_TRUE(volumes().EndLease(id, "n1", /*by_stage=*/true).ok());
    EXPECT_TRUE(LeasesOf(id).empty());
  }
}

TEST_F(PoolLeasesTest, WhatIsStagedMayBePublishedInTheSameMode) {
  const std::string id = Make("a");
  ASSERT_TRUE(volumes().TakeLease(id, Staged("n1"), 0).ok());
  EXPECT_EQ(CodeOf(volumes().TakeLease(id, Lease("n1", kManyWriters), 0)), Code::kAlreadyExists);
  ASSERT_TRUE(volumes().TakeLease(id, Lease("n1"), 0).ok());
  EXPECT_EQ(LeasesOf(id), std::vector{AlsoStaged(Lease("n1"))});
}

TEST_F(PoolLeasesTest, ANodeGetsNoMoreVolumesThanItsLimit) {
  const std::vector<std::string> ids = {Make("a"), Make("b"), Make("c")};
  ASSERT_TRUE(volumes().TakeLease(ids[0], Lease("n1"), 2).ok());
  ASSERT_TRUE(volumes().TakeLease(ids[1], Lease("n1"), 2).ok());
  EXPECT_EQ(CodeOf(volumes().TakeLease(ids[2], Lease("n1"), 2)), Code::kResourceExhausted);
  EXPECT_TRUE(volumes().TakeLease(ids[1], Lease("n1"), 2).ok()) << "which it has already";
  EXPECT_TRUE(volumes().TakeLease(ids[2], Lease("n1/x"), 2).ok()) << "another node";
  ASSERT_TRUE(volumes().EndLease(ids[2], "", false).ok());
  ASSERT_TRUE(volumes().EndLease(ids[0], "n1", false).ok());
  EXPECT_TRUE(volumes().TakeLease(ids[2], Lease("n1"), 2).ok());
}

TEST_F(PoolLeasesTest, ANodeThatGetsNoMoreWasNotToldWhichSettingItIs) {
  ASSERT_TRUE(volumes().TakeLease(Make("a"), Lease("n1"), 1).ok());
  const Status refused = volumes().TakeLease(Make("b"), Lease("n1"), 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "the node has 1 volumes, and gets no more: csi-max-volumes is 1");
}

TEST_F(PoolLeasesTest, AVolumeWithALeaseIsNotDeleted) {
  const std::string id = Make("a");
  for (const bool by_stage : {false, true}) {
    ASSERT_TRUE(volumes().TakeLease(id, by_stage ? Staged("n1") : Lease("n1"), 0).ok());
    EXPECT_EQ(CodeOf(volumes().Delete(id, false, {})), Code::kFailedPrecondition);
    EXPECT_EQ(Must(volumes().Find(id)).state, PoolVolumeState::kReady);
    ASSERT_TRUE(volumes().EndLease(id, "n1", by_stage).ok());
  }
  EXPECT_TRUE(volumes().Delete(id, false, {}).ok());
}

TEST_F(PoolLeasesTest, AnIdThatThereIsNotHasNoLease) {
  const std::string unknown = NewPoolId(PoolObject::kVolume, agent_->pool().tag()).ToString();
  for (const std::string& id : {unknown, std::string("no-id"), std::string()}) {
    EXPECT_EQ(CodeOf(volumes().TakeLease(id, Lease("n1"), 0)), Code::kNotFound) << id;
    EXPECT_TRUE(volumes().EndLease(id, "n1", false).ok()) << id;
  }
  const std::string elsewhere = "v-00000000-0123456789abcdef01234567";
  EXPECT_EQ(CodeOf(volumes().TakeLease(elsewhere, Lease("n1"), 0)), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(volumes().EndLease(elsewhere, "n1", false)), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace volumed
