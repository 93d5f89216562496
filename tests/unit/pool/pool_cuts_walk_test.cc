// The agent ends at every effect and every record write while a volume is cut, restored, cloned and
// seen for the first time, with the node or without it, on a pool that shares blocks and on one
// that copies. The next one goes on, or takes back; nothing is left that no row knows, and no copy
// is ever open under the UUID of its source.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/pool/pool_cuts_fixture.h"

namespace volumed {
namespace {

constexpr char kUuidOfSource[] = "uuid-of-the-source";

struct CutsEnd {
  bool in_kernel = true;
  FakeKernel::CrashPoint point = FakeKernel::CrashPoint::kBefore;
  uint64_t number = 0;
  bool reboots = false;
  std::string ToString() const {
    const char* const where = point == FakeKernel::CrashPoint::kBefore  ? " before"
                              : point == FakeKernel::CrashPoint::kAfter ? " after"
                                                                        : " inside";
    return std::string(in_kernel ? "effect " : "write ") + std::to_string(number) + where +
           (reboots ? ", reboot" : "");
  }
};

// Whoever keeps the snapshots, and knows what he was told: a step is made again until it is done.
class CutsCaller {
 public:
  explicit CutsCaller(PoolCutsWorld& world) : world_(world) {}

  bool GoOn() {
    return Live([this](PoolVolumes& volumes) {
      const std::vector<std::function<void(PoolVolumes&)>> steps = Steps();
      for (; step_ < steps.size(); ++step_) steps[step_](volumes);
    });
  }
  bool TakeBack() {
    return Live([this](PoolVolumes& volumes) { RemoveAll(volumes); });
  }

 private:
  bool Live(const std::function<void(PoolVolumes&)>& life) {
    try {
      PoolAgent agent(world_);
      TestContents contents(world_, *agent.volumes);
      agent.volumes->SetContentHolder(&contents);
      Expect(agent.Recover(), "recover");
      for (const PoolCutRecord& row : world_.CutRows()) EXPECT_EQ(row.state, PoolCutState::kCut);
      life(*agent.volumes);
      return true;
    } catch (const SimulatedCrash&) {
      world_.kernel.Die();
      world_.store.Die();
      return false;
    }
  }
  static void Expect(const Status& status, const std::string& what) {
    if (!status.ok()) ADD_FAILURE() << what << ": " << status.error().ToString();
  }

  std::vector<std::function<void(PoolVolumes&)>> Steps() {
    return {[this](PoolVolumes& volumes) { source_ = Must(volumes.Create(Wish("pvc-1"), {})).id; },
            [this](PoolVolumes& volumes) { Use(volumes); },
            [this](PoolVolumes& volumes) { CutIt(volumes); },
            [this](PoolVolumes& volumes) { Expect(volumes.CopyCut(cut_, 0, {}), "copy"); },
            [this](PoolVolumes& volumes) {
              restored_ = Make(volumes, WishOf("pvc-2", SnapshotContent(cut_), 32 * kMiB));
            },
            [this](PoolVolumes& volumes) { OpenFirst(volumes, restored_); },
            [this](PoolVolumes& volumes) {
              clone_ = Make(volumes, WishOf("pvc-3", CloneContent(source_), 32 * kMiB));
            },
            [this](PoolVolumes& volumes) { OpenFirst(volumes, clone_); },
            [this](PoolVolumes& volumes) { RemoveAll(volumes); }};
  }
  // It gets a filesystem, as a mount would make it.
  void Use(PoolVolumes& volumes) {
    const OpenedVolume opened = Must(volumes.Open(source_, false, {}));
    if (world_.kernel.Device(opened.device).fs_type.empty()) {
      world_.Aside(FormatDevice{opened.device, opened.identity, "ext4", kUuidOfSource, {}});
    }
    Expect(volumes.NoteFilesystem(source_, {"ext4", kUuidOfSource}), "note");
    Expect(volumes.Close(source_, {}), "close");
  }
  // What an agent has left amid a cut counts for nothing, and its id is not used again.
  void CutIt(PoolVolumes& volumes) {
    if (!cut_.empty() && volumes.FindCut(cut_).ok()) return;
    cut_ = volumes.NewCutId(source_);
    Must(volumes.Cut({{source_, cut_, std::nullopt}}, {}, {}));
    // The row of his own, with which that of the cut is synced.
    Expect(world_.store.Put({.kind = "kept", .key = cut_, .bytes = ""}, Durability::kPowerLoss),
           "keep");
  }
  std::string Make(PoolVolumes& volumes, const PoolVolumeWish& wish) {
    const PoolVolumeRecord made = Must(volumes.Create(wish, {}));
    EXPECT_EQ(made.state, PoolVolumeState::kReady);
    EXPECT_EQ(world_.Look(PoolWorld::ImageOf(made.id)).size_bytes, 32 * kMiB);
    EXPECT_EQ(made.filesystem.uuid, kUuidOfSource);
    EXPECT_NE(made.filesystem.new_uuid, "");
    return made.id;
  }
  void OpenFirst(PoolVolumes& volumes, const std::string& id) {
    const OpenedVolume opened = Must(volumes.Open(id, false, {}));
    const FakeDevice device = world_.kernel.Device(opened.device);
    const PoolFilesystem noted = Must(volumes.Find(id)).filesystem;
    EXPECT_EQ(noted, (PoolFilesystem{"ext4", device.identity.uuid, ""}));
    EXPECT_NE(noted.uuid, kUuidOfSource);
    EXPECT_FALSE(device.unmountable);
    EXPECT_EQ(device.formats, world_.kernel.Image(PoolWorld::ImageOf(source_)).formats);
    Expect(volumes.Close(id, {}), "close");
  }
  void RemoveAll(PoolVolumes& volumes) {
    for (const std::string& id : volumes.Cuts()) Expect(volumes.Discard(id, {}), "discard");
    for (const PoolVolumeRecord& row : world_.Rows()) {
      Expect(volumes.Delete(row.id, false, {}), "delete");
    }
  }

  PoolCutsWorld& world_;
  size_t step_ = 0;
  std::string source_;
  std::string cut_;
  std::string restored_;
  std::string clone_;
};

void ExpectARowForEachCut(PoolCutsWorld& world) {
  std::set<std::string> rows;
  for (const PoolCutRecord& row : world.CutRows()) rows.insert(row.id);
  for (const PoolVolumeRecord& row : world.Rows()) rows.insert(row.id);
  for (const std::vector<std::string>& names : {world.CutDirectories(), world.Directories()}) {
    for (const std::string& name : names) EXPECT_TRUE(rows.contains(name)) << name;
  }
}

void ExpectNoCutsAreLeft(PoolCutsWorld& world) {
  EXPECT_TRUE(world.Rows().empty());
  EXPECT_TRUE(world.CutRows().empty());
  EXPECT_TRUE(world.Directories().empty());
  EXPECT_TRUE(world.CutDirectories().empty());
  EXPECT_TRUE(world.Loops().empty());
}

// False: there is no such end, as the agent lived longer than that.
bool WalkOneOfCuts(const CutsEnd& end, bool shares, bool gives_up) {
  PoolCutsWorld world(shares);
  CutsCaller caller(world);
  if (end.in_kernel) {
    world.kernel.CrashAtCall(end.number, end.point);
  } else {
    world.store.CrashAtCall(end.number, end.point == FakeKernel::CrashPoint::kBefore
                                            ? MemoryRecordStore::CrashPoint::kBefore
                                            : MemoryRecordStore::CrashPoint::kAfter);
  }
  const bool lived = caller.GoOn();
  world.kernel.Revive();
  world.store.Revive();
  if (!lived) {
    if (end.reboots) world.Reboot();
    ExpectARowForEachCut(world);
    EXPECT_TRUE(gives_up ? caller.TakeBack() : caller.GoOn());
  }
  ExpectNoCutsAreLeft(world);
  return !lived;
}

int WalkCuts(bool shares, bool gives_up) {
  using Point = FakeKernel::CrashPoint;
  int ends = 0;
  for (const bool reboots : {false, true}) {
    for (const bool in_kernel : {true, false}) {
      for (const Point point : {Point::kBefore, Point::kAfter, Point::kInside}) {
        if (!in_kernel && point == Point::kInside) continue;
        for (uint64_t number = 1;; ++number) {
          const CutsEnd end{in_kernel, point, number, reboots};
          SCOPED_TRACE(end.ToString() + (shares ? ", shares" : ", copies") +
                       (gives_up ? ", gives up" : ""));
          if (!WalkOneOfCuts(end, shares, gives_up)) break;
          ++ends;
          if (::testing::Test::HasFailure()) return ends;
        }
      }
    }
  }
  return ends;
}

TEST(PoolCutsWalk, AtEveryEffectAndWriteTheNextAgentGoesOnWhereBlocksAreShared) {
  EXPECT_GT(WalkCuts(true, false), 300);
}

TEST(PoolCutsWalk, AtEveryEffectAndWriteTheNextAgentGoesOnWhereTheyAreCopied) {
  EXPECT_GT(WalkCuts(false, false), 300);
}

TEST(PoolCutsWalk, AtEveryEffectAndWriteTheNextAgentTakesBack) {
  EXPECT_GT(WalkCuts(true, true), 300);
  EXPECT_GT(WalkCuts(false, true), 300);
}

// The call that hangs, the worker that dies: each effect of a cut once fails in doubt.
TEST(PoolCutsWalk, EveryEffectOfACutMayFailInDoubt) {
  int faults = 0;
  for (const bool apply : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      SCOPED_TRACE("effect " + std::to_string(number) + (apply ? ", made" : ", not made"));
      PoolCutsWorld world;
      PoolAgent agent(world);
      PoolVolumes& volumes = *agent.volumes;
      TestContents contents(world, volumes);
      volumes.SetContentHolder(&contents);
      world.kernel.FailAt(number, Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), apply);
      const auto again = [&](const auto& call) {
        const bool is_done = call().ok() || call().ok();
        EXPECT_TRUE(is_done);
      };
      again([&] { return agent.Recover(); });
      again([&] { return volumes.Create(Wish("pvc-1"), {}); });
      const std::string source = volumes.FindByName("pvc-1").value().id;
      again([&] {
        return volumes.Cut({{source, volumes.NewCutId(source), std::nullopt}}, {}, {});
      });
      again([&] { return agent.Recover(); });
      ASSERT_EQ(volumes.Cuts().size(), 1u);
      const std::string cut = volumes.Cuts().front();
      again([&] { return volumes.Create(WishOf("pvc-2", SnapshotContent(cut)), {}); });
      const std::string restored = volumes.FindByName("pvc-2").value().id;
      again([&] { return volumes.Open(restored, false, {}); });
      again([&] { return volumes.Close(restored, {}); });
      again([&] { return volumes.Discard(cut, {}); });
      again([&] { return volumes.Delete(restored, false, {}); });
      again([&] { return volumes.Delete(source, false, {}); });
      ExpectNoCutsAreLeft(world);
      if (world.kernel.call_count() < number) break;
      ++faults;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(faults, 50);
}

}  // namespace
}  // namespace volumed
