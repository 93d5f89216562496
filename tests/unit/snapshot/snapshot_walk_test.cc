// The agent ends at every effect and every record write while a mounted volume is snapshotted, cut
// together with another one, and cloned, and while all of that is deleted. The next agent goes on:
// nothing stays frozen, no part of a cut counts, a group is whole or not there, and in the end
// nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/snapshot/snapshot_engine_fixture.h"

namespace volumed {
namespace {

using Point = FakeKernel::CrashPoint;

// One node. Its steps are made again until each is done.
class SnapshotWalk : public SnapshotEngineTest {
 public:
  explicit SnapshotWalk(const std::string& pool_type) : SnapshotEngineTest(pool_type) {
    // What is copied is not mounted for writing.
    source_ = pool_type.empty() ? Made("pvc-1").id : Mounted("pvc-1");
    other_ = Made("pvc-2").id;
    node_.Revive();
    store_.Revive();
  }
  void TestBody() override {}

  void EndAt(bool in_kernel, Point point, uint64_t number) {
    if (in_kernel) return node_.CrashAtCall(number, point);
    store_.CrashAtCall(number, point == Point::kBefore ? MemoryRecordStore::CrashPoint::kBefore
                                                       : MemoryRecordStore::CrashPoint::kAfter);
  }
  // False: the agent has ended.
  bool GoOn() {
    try {
      const std::vector<std::function<void()>> steps = Steps();
      for (; step_ < steps.size(); ++step_) steps[step_]();
      return true;
    } catch (const SimulatedCrash&) {
      node_.Die();
      store_.Die();
      Run();  // what its threads still did has no effect
      return false;
    }
  }
  void BeginAnew() {
    node_.Revive();
    store_.Revive();
    RestartAgent();
    CheckAfterRestart();
  }
  void CheckNothingIsLeft() {
    EXPECT_TRUE(Rows().empty());
    EXPECT_TRUE(GroupRows().empty());
    EXPECT_TRUE(Cuts().empty());
    EXPECT_TRUE(volumes_->Cuts().empty());
    EXPECT_TRUE(node_.blocked_writes().empty()) << node_.blocked_writes().front();
    EXPECT_EQ(volumes_->List("", 10).volumes.size(), 2U);
  }

 private:
  std::vector<std::function<void()>> Steps() {
    return {[this] { id_ = Must(Create("a", source_)).id; },
            [this] { EXPECT_EQ(Must(Create("a", source_)).id, id_); },
            [this] {
              group_ = Must(CreateGroup("g", {source_, other_})).group.id;
            },
            [this] { clone_ = MakeClone(); },
            [this] { Expect(volumes_->Delete(clone_, false, {}), "delete the clone"); },
            [this] { Expect(Delete(id_), "delete"); },
            [this] { Expect(DeleteGroup(group_), "delete the group"); },
            [this] { Run(std::chrono::minutes(5)); }};
  }
  static void Expect(const Status& status, const std::string& what) {
    if (!status.ok()) ADD_FAILURE() << what << ": " << status.error().ToString();
  }
  // Where bytes are copied the first call is told to come again.
  std::string MakeClone() {
    Result<PoolVolumeRecord> made = volumes_->Create(CloneOf(source_), {});
    if (CodeOf(made) == Code::kUnavailable) {
      Run();
      made = volumes_->Create(CloneOf(source_), {});
    }
    return Must(made).id;
  }
  void CheckAfterRestart() {
    for (const MountEntry& mount : node_.Mounts()) {
      EXPECT_FALSE(node_.IsFrozen(mount.mount_point)) << mount.mount_point;
    }
    for (const SnapshotRecord& row : Rows()) {
      EXPECT_EQ(row.phase, SnapshotPhase::kReady) << SnapshotPhaseName(row.phase);
      EXPECT_TRUE(IsWhole(Must(volumes_->FindCut(row.id))));
    }
    for (const Record& row : GroupRows()) {
      const SnapshotGroupRecord group = Must(DecodeSnapshotGroupRecord(row));
      EXPECT_TRUE(engine_->FindGroup(group.id, {}).ok());
    }
    EXPECT_EQ(Cuts().size(), Rows().size()) << "each has a row";
  }

  size_t step_ = 0;
  std::string source_, other_, id_, group_, clone_;
};

// False: the agent lived longer than that.
bool WalkOneOfSnapshots(const std::string& pool_type, bool in_kernel, Point point,
                        uint64_t number) {
  SnapshotWalk walk(pool_type);
  walk.EndAt(in_kernel, point, number);
  const bool lived = walk.GoOn();
  if (!lived) {
    walk.BeginAnew();
    EXPECT_TRUE(walk.GoOn());
  }
  walk.CheckNothingIsLeft();
  return !lived;
}

int WalkSnapshots(const std::string& pool_type) {
  int ends = 0;
  for (const bool in_kernel : {true, false}) {
    for (const Point point : {Point::kBefore, Point::kAfter, Point::kInside}) {
      if (!in_kernel && point == Point::kInside) continue;
      for (uint64_t number = 1;; ++number) {
        SCOPED_TRACE(std::string(in_kernel ? "effect " : "write ") + std::to_string(number) +
                     " at point " + std::to_string(static_cast<int>(point)));
        if (!WalkOneOfSnapshots(pool_type, in_kernel, point, number)) break;
        ++ends;
        if (::testing::Test::HasFailure()) return ends;
      }
    }
  }
  return ends;
}

TEST(SnapshotWalkTest, AtEveryEffectAndWriteTheNextAgentGoesOnWhereBlocksAreShared) {
  EXPECT_GT(WalkSnapshots("xfs"), 100);
}

TEST(SnapshotWalkTest, AtEveryEffectAndWriteTheNextAgentGoesOnWhereTheyAreCopied) {
  EXPECT_GT(WalkSnapshots(""), 100);
}

}  // namespace
}  // namespace volumed
