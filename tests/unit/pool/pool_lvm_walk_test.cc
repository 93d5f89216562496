// The agent ends at every effect and every record write of the life of thin logical volumes: made,
// used, cut, restored, cloned, grown and deleted, with the node or without it. The next one goes
// on, or takes back; nothing is left that no row knows, nothing is suspended or active that nobody
// has, and no copy is ever open under the UUID of its source.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/pool/pool_lvm_fixture.h"

namespace volumed {
namespace {

constexpr char kUuidOfLvmSource[] = "uuid-of-the-source";

struct LvmEnd {
  bool in_kernel = true;
  bool before = true;
  uint64_t number = 0;
  bool reboots = false;
  std::string ToString() const {
    return std::string(in_kernel ? "effect " : "write ") + std::to_string(number) +
           (before ? " before" : " after") + (reboots ? ", reboot" : "");
  }
};

// Whoever keeps the volumes and their snapshots, and knows what he was told: a step is made again
// until it is done.
class LvmCaller {
 public:
  explicit LvmCaller(LvmWorld& world) : world_(world) {}

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
      PoolAgent agent(world_, {LvmTestPool()});
      TestContents contents(world_, *agent.volumes);
      agent.volumes->SetContentHolder(&contents);
      Expect(agent.Recover(), "recover");
      EXPECT_TRUE(world_.lvm.ActiveNames().empty());
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
    return {
        [this](PoolVolumes& volumes) { source_ = Must(volumes.Create(LvmWish("pvc-1"), {})).id; },
        [this](PoolVolumes& volumes) { Use(volumes); },
        [this](PoolVolumes& volumes) {
          EXPECT_EQ(Must(volumes.Expand(source_, 24 * kMiB, {})), 24 * kMiB);
        },
        [this](PoolVolumes& volumes) { CutIt(volumes); },
        [this](PoolVolumes& volumes) {
          restored_ = MakeOf(volumes, LvmWishOf("pvc-2", SnapshotContent(cut_), 32 * kMiB));
        },
        [this](PoolVolumes& volumes) { OpenFirst(volumes, restored_); },
        [this](PoolVolumes& volumes) {
          clone_ = MakeOf(volumes, LvmWishOf("pvc-3", CloneContent(source_), 32 * kMiB));
        },
        [this](PoolVolumes& volumes) { OpenFirst(volumes, clone_); },
        [this](PoolVolumes& volumes) { RemoveAll(volumes); }};
  }
  // It gets a filesystem, as a mount would make it.
  void Use(PoolVolumes& volumes) {
    const OpenedVolume opened = Must(volumes.Open(source_, false, {}));
    if (world_.kernel.Device(opened.device).fs_type.empty()) {
      world_.Aside(FormatDevice{opened.device, opened.identity, "ext4", kUuidOfLvmSource, {}});
    }
    Expect(volumes.NoteFilesystem(source_, {"ext4", kUuidOfLvmSource}), "note");
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
  std::string MakeOf(PoolVolumes& volumes, const PoolVolumeWish& wish) {
    const PoolVolumeRecord made = Must(volumes.Create(wish, {}));
    EXPECT_EQ(made.state, PoolVolumeState::kReady);
    EXPECT_EQ(world_.lvm.at(made.id).size_bytes, 32 * kMiB);
    EXPECT_EQ(made.filesystem.uuid, kUuidOfLvmSource);
    EXPECT_NE(made.filesystem.new_uuid, "");
    return made.id;
  }
  void OpenFirst(PoolVolumes& volumes, const std::string& id) {
    const OpenedVolume opened = Must(volumes.Open(id, false, {}));
    const FakeDevice device = world_.kernel.Device(opened.device);
    const PoolFilesystem noted = Must(volumes.Find(id)).filesystem;
    EXPECT_EQ(noted, (PoolFilesystem{"ext4", device.identity.uuid, ""}));
    EXPECT_NE(noted.uuid, kUuidOfLvmSource);
    EXPECT_EQ(world_.lvm.Content(source_).identity.uuid, kUuidOfLvmSource);
    Expect(volumes.Close(id, {}), "close");
  }
  void RemoveAll(PoolVolumes& volumes) {
    for (const std::string& id : volumes.Cuts()) Expect(volumes.Discard(id, {}), "discard");
    for (const PoolVolumeRecord& row : world_.Rows()) {
      Expect(volumes.Delete(row.id, false, {}), "delete");
    }
  }

  LvmWorld& world_;
  size_t step_ = 0;
  std::string source_;
  std::string cut_;
  std::string restored_;
  std::string clone_;
};

void ExpectARowForEachLogicalVolume(const LvmWorld& world) {
  std::set<std::string> rows;
  for (const PoolCutRecord& row : world.CutRows()) rows.insert(row.id);
  for (const PoolVolumeRecord& row : world.Rows()) rows.insert(row.id);
  for (const std::string& name : world.lvm.Names()) EXPECT_TRUE(rows.contains(name)) << name;
}

void ExpectNoLogicalVolumeIsLeft(LvmWorld& world) {
  EXPECT_TRUE(world.lvm.Names().empty());
  EXPECT_TRUE(world.Rows().empty());
  EXPECT_TRUE(world.CutRows().empty());
  EXPECT_TRUE(world.Directories().empty());
  EXPECT_TRUE(world.CutDirectories().empty());
}

// False: there is no such end, as the agent lived longer than that.
bool WalkOneOfLvm(const LvmEnd& end, bool gives_up) {
  LvmWorld world;
  LvmCaller caller(world);
  if (end.in_kernel) {
    world.kernel.CrashAtCall(
        end.number, end.before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
  } else {
    world.store.CrashAtCall(end.number, end.before ? MemoryRecordStore::CrashPoint::kBefore
                                                   : MemoryRecordStore::CrashPoint::kAfter);
  }
  const bool lived = caller.GoOn();
  world.kernel.Revive();
  world.store.Revive();
  if (!lived) {
    if (end.reboots) world.Reboot();
    ExpectARowForEachLogicalVolume(world);
    EXPECT_TRUE(gives_up ? caller.TakeBack() : caller.GoOn());
  }
  ExpectNoLogicalVolumeIsLeft(world);
  return !lived;
}

TEST(PoolLvmWalk, AtEveryEffectAndWriteTheNextAgentGoesOnOrTakesBack) {
  int ends = 0;
  for (const bool gives_up : {false, true}) {
    for (const bool reboots : {false, true}) {
      for (const bool in_kernel : {true, false}) {
        for (const bool before : {true, false}) {
          for (uint64_t number = 1;; ++number) {
            const LvmEnd end{in_kernel, before, number, reboots};
            SCOPED_TRACE(end.ToString() + (gives_up ? ", gives up" : ""));
            if (!WalkOneOfLvm(end, gives_up)) break;
            ++ends;
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(ends, 500);
}

// The call that hangs, the worker that dies: each effect once fails in doubt, made or not made.
TEST(PoolLvmWalk, EveryEffectMayFailInDoubt) {
  int faults = 0;
  for (const bool apply : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      SCOPED_TRACE("effect " + std::to_string(number) + (apply ? ", made" : ", not made"));
      LvmWorld world;
      PoolAgent agent(world, {LvmTestPool()});
      PoolVolumes& volumes = *agent.volumes;
      TestContents contents(world, volumes);
      volumes.SetContentHolder(&contents);
      world.kernel.FailAt(number, Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), apply);
      const auto again = [&](const auto& call) {
        const bool is_done = call().ok() || call().ok();
        EXPECT_TRUE(is_done);
      };
      again([&] { return agent.Recover(); });
      again([&] { return volumes.Create(LvmWish("pvc-1"), {}); });
      const std::string source = volumes.FindByName("pvc-1").value().id;
      again([&] { return volumes.Open(source, false, {}); });
      again([&] { return volumes.Expand(source, 24 * kMiB, {}); });
      again([&] { return volumes.Close(source, {}); });
      EXPECT_TRUE(volumes.NoteFilesystem(source, {"ext4", kUuidOfLvmSource}).ok());
      again([&] {
        return volumes.Cut({{source, volumes.NewCutId(source), std::nullopt}}, {}, {});
      });
      again([&] { return agent.Recover(); });
      ASSERT_EQ(volumes.Cuts().size(), 1u);
      const std::string cut = volumes.Cuts().front();
      again(
          [&] { return volumes.Create(LvmWishOf("pvc-2", SnapshotContent(cut), 24 * kMiB), {}); });
      const std::string restored = volumes.FindByName("pvc-2").value().id;
      again([&] { return volumes.Discard(cut, {}); });
      again([&] { return volumes.Delete(restored, false, {}); });
      again([&] { return volumes.Delete(source, false, {}); });
      ExpectNoLogicalVolumeIsLeft(world);
      if (world.kernel.call_count() < number) break;
      ++faults;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(faults, 50);
}

}  // namespace
}  // namespace volumed
