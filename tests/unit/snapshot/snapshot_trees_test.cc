// Snapshots of volumes that are subvolumes or directories of the pool, while a pod has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "unit/snapshot/snapshot_engine_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SnapshotsOfSubvolumesTest : public SnapshotEngineTest {
 protected:
  SnapshotsOfSubvolumesTest() : SnapshotEngineTest("btrfs") {
    class_parameters_ = {{"backend", "subvolume"}};
  }
};

TEST_F(SnapshotsOfSubvolumesTest, OneThatAPodHadMountedWasRefusedAsNotCertainlyMounted) {
  const std::string volume = Mounted();
  SnapshotPhase at_cut = SnapshotPhase::kNotKnown;
  Before("MakeSubvolume", [&] { at_cut = Rows().at(0).phase; });
  const SnapshotRecord made = Must(Create("a", volume));
  EXPECT_EQ(made.phase, SnapshotPhase::kReady);
  EXPECT_EQ(at_cut, SnapshotPhase::kCutting) << "nothing is frozen, nor to be thawed";
  EXPECT_THAT(Cuts(), SizeIs(1));
  EXPECT_FALSE(Must(volumes_->FindCut(made.id)).was_frozen);
}

TEST_F(SnapshotsOfSubvolumesTest, SomethingElseAtItsPlaceLeavesItUncertain) {
  const std::string volume = Mounted();
  node_.AddMount("tmpfs", "few", PoolDevicePlace(paths_, volume).Display());
  const Error refused = FailureOf(Create("a", volume));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("not certain"));
  EXPECT_THAT(Cuts(), IsEmpty());
}

class SnapshotsOfDirectoriesTest : public SnapshotEngineTest {
 protected:
  SnapshotsOfDirectoriesTest() {
    class_parameters_ = {{"backend", "directory"}};
    node_.CountProjects(kPoolPath);
  }
};

TEST_F(SnapshotsOfDirectoriesTest, OneThatAPodHasMountedIsRefusedForThatReason) {
  const Error refused = FailureOf(Create("a", Mounted()));
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("mounted for writing"));
  EXPECT_THAT(Cuts(), IsEmpty());
}

// Of which nobody counts what they have.
class SnapshotsOfUncountedDirectoriesTest : public SnapshotEngineTest {
 protected:
  SnapshotsOfUncountedDirectoriesTest() : SnapshotEngineTest("ext4") {
    class_parameters_ = {
        {"backend", "directory"}, {"quota", "best-effort"}, {"consistency", "best-effort"}};
  }
};

TEST_F(SnapshotsOfUncountedDirectoriesTest, OneThatGrewPastItsPromiseWentOnToTheDisksEnd) {
  const std::string volume = Mounted();
  const int64_t promised = Must(volumes_->Capacity({}, {})).promised_bytes;
  Before("CopyTree", [&] {
    node_.AddFile(kPoolPath + "/volumes/" + volume + "/data/refilled",
                  std::string(size_t{40} << 20, 'x'));
  });
  Must(Create("a", volume));  // it is cut by then
  const std::optional<SnapshotRecord> made = engine_->FindByName("a");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->phase, SnapshotPhase::kFailed);
  EXPECT_EQ(made->error_code, static_cast<int32_t>(Code::kResourceExhausted));
  EXPECT_THAT(made->error, HasSubstr("snapshot " + made->id + " was promised"));
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_EQ(Must(volumes_->Capacity({}, {})).promised_bytes, promised);
}

}  // namespace
}  // namespace volumed
