// A plain directory becomes a volume of a pool by being moved: what is refused, what is found
// again, and that nothing of it is ever deleted before the volume is ready.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/pool/pool_import_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kClaimed = kPoolPath + "/local-path/pvc-1";

void AddClaimed(FakeKernel& node) {
  node.AddFile(kClaimed + "/a/f", "of the pod");
  node.AddFile(kClaimed + "/g", "too");
}

std::string DataOfMoved(const std::string& id) { return kPoolPath + "/volumes/" + id + "/data"; }

class PoolImportMoveTest : public PoolImportTest {
 protected:
  explicit PoolImportMoveTest(const std::string& fs_type = "ext4") : PoolImportTest(fs_type) {
    AddClaimed(world_.kernel);
    before_ = world_.kernel.DumpTree(kClaimed);
  }
  std::string RefusedMove(const std::string& source = kClaimed) {
    return Refused(source, "fast", 2 * kMiB);
  }
  // Where it was, or where it is now, with all that was in it.
  bool IsAt(const std::string& path) {
    return world_.kernel.Exists(path + "/g") && world_.kernel.Find(path + "/g").content == "too" &&
           world_.kernel.Find(path + "/a/f").content == "of the pod";
  }

  std::string before_;
};

TEST_F(PoolImportMoveTest, ADirectoryBecomesAVolumeByAMoveAndNothingOfItIsCopied) {
  const uint64_t inode = world_.Look(kClaimed).inode;
  const ImportPlan plan = Must(Look(kClaimed, "fast", 2 * kMiB));
  EXPECT_EQ(world_.kernel.DumpTree(kClaimed), before_);
  EXPECT_THAT(plan.deed, HasSubstr("by being moved"));
  EXPECT_THAT(NotesOf(plan), HasSubstr("project quota"));
  EXPECT_FALSE(ParsePoolId(HandleOf(plan)).has_value());
  const ImportPlan done = Must(DoImport(Parts(), plan, {}));
  const PoolVolumeRecord made = Must(volumes().Find(done.volume));
  EXPECT_EQ(made.backend, PoolBackendKind::kDirectory);
  EXPECT_EQ(made.state, PoolVolumeState::kReady);
  EXPECT_TRUE(made.used) << "its content is somebody's";
  EXPECT_FALSE(world_.kernel.Exists(kClaimed));
  EXPECT_TRUE(IsAt(DataOfMoved(made.id)));
  EXPECT_EQ(world_.Look(DataOfMoved(made.id)).inode, inode);
  EXPECT_EQ(HandleOf(done), made.id);
  EXPECT_EQ(Must(volumes().Open(made.id, false, {})).directory.Display(), DataOfMoved(made.id));
}

TEST_F(PoolImportMoveTest, ADirectoryThatWasMovedIsFoundAgainByThePathThatItHad) {
  const PoolVolumeRecord made = Imported(kClaimed, "fast", 2 * kMiB);
  StartAgent();
  const ImportPlan again = Must(Look(kClaimed, "fast", 2 * kMiB));
  EXPECT_FALSE(again.wish.has_value());
  EXPECT_EQ(again.volume, made.id);
  EXPECT_EQ(Must(Look(kClaimed)).volume, made.id);
  EXPECT_THAT(Refused(kClaimed, "slow", kMiB), HasSubstr("was imported into pool fast"));
  // Another one at that path is another one.
  AddClaimed(world_.kernel);
  EXPECT_NE(Imported(kClaimed, "fast", 2 * kMiB).id, made.id);
}

TEST_F(PoolImportMoveTest, AVolumeThatWasReadyIsDeletedAsAnyOther) {
  const PoolVolumeRecord made = Imported(kClaimed, "fast", 2 * kMiB);
  const Status deleted = volumes().Delete(made.id, false, {});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_THAT(world_.Directories(), IsEmpty());
  EXPECT_FALSE(world_.kernel.Exists(kClaimed));
}

TEST_F(PoolImportMoveTest, ADirectoryThatSomebodyHasAPartOfIsRefused) {
  world_.kernel.AddDirectory("/pod/sub");
  world_.Aside(BindMount{.source = {kClaimed, "a"}, .target = {"/pod/sub", ""}});
  EXPECT_THAT(RefusedMove(), HasSubstr("is mounted at /pod/sub"));
  // Between the look and the move, too.
  world_.kernel.UnmountBelow("/pod/sub");
  const ImportPlan plan = Must(Look(kClaimed, "fast", 2 * kMiB));
  world_.Aside(BindMount{.source = {kClaimed, "a"}, .target = {"/pod/sub", ""}});
  const Error late = FailureOfImport(DoImport(Parts(), plan, {}));
  EXPECT_THAT(late.message(), HasSubstr("is mounted at /pod/sub"));
  EXPECT_FALSE(late.maybe_applied()) << late.ToString();
  EXPECT_THAT(world_.Rows(), IsEmpty());
  EXPECT_THAT(world_.Directories(), IsEmpty());
  EXPECT_EQ(world_.kernel.DumpTree(kClaimed), before_);
  world_.kernel.UnmountBelow("/pod/sub");
  world_.kernel.AddMount("tmpfs", "tmpfs", kClaimed + "/a");
  EXPECT_THAT(RefusedMove(), HasSubstr("something is mounted in"));
}

TEST_F(PoolImportMoveTest, ADirectoryThatIsSeenByAnotherMountThanThePoolIsRefused) {
  world_.kernel.AddDirectory("/opt/claims");
  world_.Aside(BindMount{.source = {kPoolPath, "local-path"}, .target = {"/opt/claims", ""}});
  EXPECT_THAT(RefusedMove("/opt/claims/pvc-1"), HasSubstr("name it as the pool's mount shows it"));
  EXPECT_THAT(RefusedMove("/opt/claims"), HasSubstr("is seen by the mount at /opt/claims"));
}

TEST_F(PoolImportMoveTest, WhatIsALinkOrAtTheTopOrTheAgentsOwnIsNotMoved) {
  world_.kernel.AddSymlink(kPoolPath + "/link", kClaimed);
  EXPECT_THAT(RefusedMove(kPoolPath + "/link"), HasSubstr("which leads to " + kClaimed));
  world_.kernel.AddDirectory("/opt/claims");
  EXPECT_THAT(RefusedMove("/opt/claims"), HasSubstr("does not lie on the filesystem of pool"));
  EXPECT_THAT(RefusedMove(kPoolPath), HasSubstr("pool fast"));
  EXPECT_THAT(RefusedMove(kPoolPath + "/volumes"), HasSubstr("is in pool fast already"));
  ImportParts parts = Parts();
  parts.own_directories = {kClaimed + "/a"};
  const auto plan = PlanImport(
      parts, {.source = kClaimed, .pool = "fast", .pv_name = "", .size_bytes = kMiB}, {});
  EXPECT_THAT(FailureOfImport(plan).message(), HasSubstr("the agent's own directory"));
}

// The move is made, and the agent ends before the volume is ready.
class HalfMovedTest : public PoolImportMoveTest {
 protected:
  HalfMovedTest() {
    const ImportPlan plan = Must(Look(kClaimed, "fast", 2 * kMiB));
    world_.kernel.FailNext("MoveDirectory",
                           Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), 1,
                           /*apply=*/true);
    EXPECT_FALSE(DoImport(Parts(), plan, {}).ok());
    EXPECT_THAT(world_.Rows(), SizeIs(1));
    if (world_.Rows().size() == 1) id_ = world_.Rows().front().id;
    EXPECT_FALSE(world_.kernel.Exists(kClaimed));
    StartAgent();
  }
  std::string id_;
};

TEST_F(HalfMovedTest, TheNextImportGoesOn) {
  EXPECT_EQ(Must(volumes().Find(id_)).state, PoolVolumeState::kMaking);
  const ImportPlan plan = Must(Look(kClaimed, "fast", 2 * kMiB));
  EXPECT_THAT(NotesOf(plan), HasSubstr("goes on"));
  EXPECT_EQ(Must(DoImport(Parts(), plan, {})).volume, id_);
  EXPECT_EQ(Must(volumes().Find(id_)).state, PoolVolumeState::kReady);
  EXPECT_TRUE(IsAt(DataOfMoved(id_)));
}

TEST_F(HalfMovedTest, AnImportOfAnotherSizeBeginsAnewWithAllOfIt) {
  const PoolVolumeRecord made = Imported(kClaimed, "fast", 4 * kMiB);
  EXPECT_EQ(made.capacity_bytes, 4 * kMiB);
  EXPECT_NE(made.id, id_);
  EXPECT_TRUE(IsAt(DataOfMoved(made.id)));
  EXPECT_THAT(world_.Rows(), SizeIs(1));
  EXPECT_THAT(world_.Directories(), SizeIs(1));
}

TEST_F(HalfMovedTest, ADeletionGivesItBackAndDeletesNothing) {
  const Status deleted = volumes().Delete(id_, false, {});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_EQ(world_.kernel.DumpTree(kClaimed), before_);
  EXPECT_THAT(world_.Rows(), IsEmpty());
  EXPECT_THAT(world_.Directories(), IsEmpty());
}

TEST_F(HalfMovedTest, WhatIsAtItsOldPlaceMeanwhileIsNotReplaced) {
  world_.kernel.AddFile(kClaimed + "/other", "of somebody else");
  const Status deleted = volumes().Delete(id_, false, {});
  ASSERT_FALSE(deleted.ok());
  EXPECT_THAT(deleted.error().message(), HasSubstr("cannot be given back"));
  EXPECT_TRUE(IsAt(DataOfMoved(id_)));
  // Nor by the deletion that a start goes on with.
  agent_.reset();
  agent_ = std::make_unique<PoolAgent>(world_);
  EXPECT_FALSE(agent_->Recover().ok());
  EXPECT_TRUE(IsAt(DataOfMoved(id_)));
  world_.kernel.Remove(kClaimed + "/other");
  world_.Aside(RemoveDirectory{{kClaimed, ""}});
  StartAgent();
  EXPECT_EQ(world_.kernel.DumpTree(kClaimed), before_);
  EXPECT_THAT(world_.Rows(), IsEmpty());
}

class PoolImportMoveQuotaTest : public PoolImportMoveTest {
 protected:
  PoolImportMoveQuotaTest() : PoolImportMoveTest("xfs") {
    world_.kernel.CountProjects(kPoolPath, true);
  }
  TreeQuota QuotaOf(const std::string& id) {
    return world_.Aside(ReadTreeQuota{{DataOfMoved(id), ""}});
  }
};

TEST_F(PoolImportMoveQuotaTest, OnlyAnEmptyDirectoryGetsAProject) {
  const PoolVolumeRecord full = Imported(kClaimed, "fast", 2 * kMiB);
  EXPECT_EQ(QuotaOf(full.id).kind, TreeQuotaKind::kNone);
  // Nor when it grows: what it has would not be counted.
  EXPECT_EQ(Must(volumes().Expand(full.id, 4 * kMiB, {})), 4 * kMiB);
  EXPECT_EQ(QuotaOf(full.id).kind, TreeQuotaKind::kNone);
  const Status tuned = volumes().Modify(full.id, {{"quotaBytes", std::to_string(kMiB)}}, {});
  ASSERT_FALSE(tuned.ok());
  EXPECT_THAT(tuned.error().message(), HasSubstr("counts only what is made later"));
  world_.Aside(MakeDirectory{.path = {kPoolPath, "local-path/pvc-2"}});
  const PoolVolumeRecord empty = Imported(kPoolPath + "/local-path/pvc-2", "fast", 2 * kMiB);
  EXPECT_EQ(QuotaOf(empty.id).limit_bytes, 2 * kMiB);
}

TEST_F(PoolImportMoveQuotaTest, AProjectOfSomebodyElseStays) {
  world_.Aside(MakeDirectory{.path = {kPoolPath, "local-path/pvc-3"}});
  SetTreeQuota of_provisioner{{kPoolPath, "local-path/pvc-3"}};
  of_provisioner.project_id = 7;
  of_provisioner.bytes = kMiB;
  world_.Aside(of_provisioner);
  const PoolVolumeRecord made = Imported(kPoolPath + "/local-path/pvc-3", "fast", 2 * kMiB);
  EXPECT_EQ(QuotaOf(made.id).id, 7u);
  EXPECT_EQ(QuotaOf(made.id).limit_bytes, kMiB);
}

class PoolImportMoveBtrfsTest : public PoolImportMoveTest {
 protected:
  PoolImportMoveBtrfsTest() : PoolImportMoveTest("btrfs") {}
};

TEST_F(PoolImportMoveBtrfsTest, ADirectoryOfAnotherSubvolumeIsNotMoved) {
  world_.Aside(MakeSubvolume{.path = {kPoolPath, "sub"}});
  world_.kernel.AddFile(kPoolPath + "/sub/pvc-4/f", "x");
  const Result<ImportPlan> plan = Look(kPoolPath + "/sub/pvc-4", "fast", kMiB);
  // The fake has one number for all subvolumes of a filesystem, so that only the effect refuses.
  const Error refused = FailureOfImport(DoImport(Parts(), Must(plan), {}));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("could only be copied"));
  EXPECT_TRUE(world_.kernel.Exists(kPoolPath + "/sub/pvc-4/f"));
  EXPECT_THAT(world_.Directories(), IsEmpty());
  EXPECT_EQ(Imported(kClaimed, "fast", 2 * kMiB).backend, PoolBackendKind::kDirectory);
}

// ---- an end of the agent at each effect and write -----------------------------------------------

// False: the agent has ended.
bool ImportClaimed(PoolImportWorld& world) {
  try {
    PoolAgent agent(world);
    const Status recovered = agent.Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().ToString();
    const ImportParts parts = PartsOfImport(agent, world.kernel);
    const ImportRequest request{
        .source = kClaimed, .pool = "fast", .pv_name = "", .size_bytes = 2 * kMiB};
    const ImportPlan done = Must(DoImport(parts, Must(PlanImport(parts, request, {})), {}));
    EXPECT_EQ(Must(agent.volumes->Find(done.volume)).state, PoolVolumeState::kReady);
    return true;
  } catch (const SimulatedCrash&) {
    world.kernel.Die();
    world.store.Die();
    return false;
  }
}

// An import whose worker was given up after the move.
void BeginImport(PoolImportWorld& world) {
  PoolAgent agent(world);
  EXPECT_TRUE(agent.Recover().ok());
  const ImportParts parts = PartsOfImport(agent, world.kernel);
  const ImportRequest request{
      .source = kClaimed, .pool = "fast", .pv_name = "", .size_bytes = 2 * kMiB};
  const ImportPlan plan = Must(PlanImport(parts, request, {}));
  world.kernel.FailNext("MoveDirectory", Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"),
                        1,
                        /*apply=*/true);
  EXPECT_FALSE(DoImport(parts, plan, {}).ok());
  EXPECT_FALSE(world.kernel.Exists(kClaimed));
}

// Takes back what was begun. False: the agent has ended.
bool DeleteWhatIsBegun(PoolImportWorld& world) {
  try {
    PoolAgent agent(world);
    const Status recovered = agent.Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().ToString();
    for (const PoolVolumeRecord& row : world.Rows()) {
      const Status deleted = agent.volumes->Delete(row.id, false, {});
      EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
    }
    return true;
  } catch (const SimulatedCrash&) {
    world.kernel.Die();
    world.store.Die();
    return false;
  }
}

// It is at one of its two places at every moment, whole.
void ExpectAllOfItSomewhere(PoolImportWorld& world) {
  std::vector<std::string> places = {kClaimed};
  for (const std::string& id : world.Directories()) places.push_back(DataOfMoved(id));
  int found = 0;
  for (const std::string& place : places) {
    if (!world.kernel.Exists(place)) continue;
    ++found;
    EXPECT_EQ(world.kernel.Find(place + "/a/f").content, "of the pod") << place;
    EXPECT_EQ(world.kernel.Find(place + "/g").content, "too") << place;
  }
  EXPECT_EQ(found, 1);
}

void CrashAt(PoolImportWorld& world, uint64_t number, bool in_kernel, bool before) {
  world.kernel.Revive();
  world.store.Revive();
  if (in_kernel) {
    world.kernel.CrashAtCall(
        number, before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
  } else {
    world.store.CrashAtCall(number, before ? MemoryRecordStore::CrashPoint::kBefore
                                           : MemoryRecordStore::CrashPoint::kAfter);
  }
}

// Calls `walk` with every end until it says that there is no such end; how many there were.
template <typename Walk>
int WalkEnds(const Walk& walk) {
  int ends = 0;
  for (const bool in_kernel : {true, false}) {
    for (const bool before : {true, false}) {
      for (uint64_t number = 1;; ++number) {
        SCOPED_TRACE(std::string(in_kernel ? "effect " : "write ") + std::to_string(number) +
                     (before ? " before" : " after"));
        if (!walk(number, in_kernel, before)) break;
        ++ends;
        if (::testing::Test::HasFailure()) return ends;
      }
    }
  }
  return ends;
}

TEST(PoolImportMoveWalk, AtEveryEffectAndWriteTheNextAgentGoesOnWithTheMove) {
  const int ends = WalkEnds([](uint64_t number, bool in_kernel, bool before) {
    PoolImportWorld world("ext4");
    AddClaimed(world.kernel);
    CrashAt(world, number, in_kernel, before);
    const bool lived = ImportClaimed(world);
    world.kernel.Revive();
    world.store.Revive();
    ExpectAllOfItSomewhere(world);
    if (!lived) {
      world.Reboot();
      EXPECT_TRUE(ImportClaimed(world));
    }
    ExpectAllOfItSomewhere(world);
    EXPECT_EQ(world.Rows().size(), 1u);
    EXPECT_EQ(world.Directories().size(), 1u);
    EXPECT_FALSE(world.kernel.Exists(kClaimed));
    return !lived;
  });
  EXPECT_GT(ends, 40);
}

TEST(PoolImportMoveWalk, AtEveryEffectAndWriteADeletionOfWhatWasBegunGivesItBack) {
  const int ends = WalkEnds([](uint64_t number, bool in_kernel, bool before) {
    PoolImportWorld world("ext4");
    AddClaimed(world.kernel);
    BeginImport(world);
    CrashAt(world, number, in_kernel, before);
    const bool lived = DeleteWhatIsBegun(world);
    world.kernel.Revive();
    world.store.Revive();
    ExpectAllOfItSomewhere(world);
    if (!lived) {
      EXPECT_TRUE(DeleteWhatIsBegun(world));
    }
    EXPECT_TRUE(world.kernel.Exists(kClaimed + "/g"));
    EXPECT_TRUE(world.Rows().empty());
    EXPECT_TRUE(world.Directories().empty());
    return !lived;
  });
  EXPECT_GT(ends, 30);
}

TEST(PoolImportMoveWalk, EveryEffectOfAMoveMayFailInDoubt) {
  int faults = 0;
  for (const bool apply : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      SCOPED_TRACE("effect " + std::to_string(number) + (apply ? ", made" : ", not made"));
      PoolImportWorld world("ext4");
      AddClaimed(world.kernel);
      PoolAgent agent(world);
      ASSERT_TRUE(agent.Recover().ok());
      const ImportParts parts = PartsOfImport(agent, world.kernel);
      const ImportRequest request{
          .source = kClaimed, .pool = "fast", .pv_name = "", .size_bytes = 2 * kMiB};
      world.kernel.Revive();
      world.kernel.FailAt(number, Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), apply);
      const auto import = [&]() -> Status {
        ASSIGN_OR_RETURN(ImportPlan plan, PlanImport(parts, request, {}));
        RETURN_IF_ERROR(DoImport(parts, std::move(plan), {}));
        return OkStatus();
      };
      const bool is_done = import().ok() || import().ok();
      EXPECT_TRUE(is_done);
      ExpectAllOfItSomewhere(world);
      EXPECT_FALSE(world.kernel.Exists(kClaimed));
      if (world.kernel.call_count() < number) break;
      ++faults;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(faults, 30);
}

}  // namespace
}  // namespace volumed
