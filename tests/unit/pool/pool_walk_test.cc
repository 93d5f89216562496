// The agent ends at every effect and every record write of a volume's life, with the node or
// without it. The next one goes on, or takes back, and nothing is left that no row knows.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/pool/pool_fixture.h"

namespace volumed {
namespace {

// Where an agent ends.
struct End {
  bool in_kernel = true;
  bool before = true;
  uint64_t number = 0;
  bool reboots = false;  // and the node with it
  std::string ToString() const {
    return std::string(in_kernel ? "effect " : "write ") + std::to_string(number) +
           (before ? " before" : " after") + (reboots ? ", reboot" : "");
  }
};

// Whoever wants the volumes, and knows what he was told: a step is made again until it is done.
class Caller {
 public:
  explicit Caller(PoolWorld& world) : world_(world) {}

  // Goes on with what is to be done. False: the agent has ended.
  bool GoOn() {
    return Live([this](PoolVolumes& volumes) {
      const std::vector<std::function<void(PoolVolumes&)>> steps = Steps();
      for (; step_ < steps.size(); ++step_) steps[step_](volumes);
    });
  }
  // Gives up: whatever there is goes.
  bool TakeBack() {
    used_.clear();
    return Live([this](PoolVolumes& volumes) {
      for (const PoolVolumeRecord& row : world_.Rows()) {
        Expect(volumes.Delete(row.id, /*only_unused=*/!row.used, {}), "take back");
      }
    });
  }
  void Reboot() {
    used_.clear();
    world_.kernel.Reboot();
    world_.store.PowerLoss();
  }

 private:
  bool Live(const std::function<void(PoolVolumes&)>& life) {
    try {
      PoolAgent agent(world_);
      Expect(agent.Recover(used_), "recover");
      ExpectNobodysDeviceIsOpen();
      life(*agent.volumes);
      return true;
    } catch (const SimulatedCrash&) {
      world_.kernel.Die();
      world_.store.Die();
      return false;
    }
  }
  void ExpectNobodysDeviceIsOpen() {
    std::set<std::string> files;
    for (const std::string& id : used_) files.insert(PoolWorld::ImageOf(id));
    for (const LoopEntry& loop : world_.Loops()) {
      EXPECT_TRUE(files.contains(loop.file)) << loop.file;
    }
    for (const PoolVolumeRecord& row : world_.Rows()) {
      EXPECT_NE(row.state, PoolVolumeState::kDeleting);
    }
  }
  static void Expect(const Status& status, const std::string& what) {
    if (!status.ok()) ADD_FAILURE() << what << ": " << status.error().ToString();
  }

  std::vector<std::function<void(PoolVolumes&)>> Steps() {
    return {[this](PoolVolumes& volumes) { first_ = Make(volumes, Wish("pvc-1")); },
            [this](PoolVolumes& volumes) {
              used_.insert(first_);
              Must(volumes.Open(first_, false, {}));
            },
            [this](PoolVolumes& volumes) {
              Expect(volumes.NoteFilesystem(first_, {"ext4", "uuid-1"}), "note");
            },
            [this](PoolVolumes& volumes) { Grow(volumes); },
            [this](PoolVolumes& volumes) {
              Expect(volumes.Close(first_, {}), "close");
              used_.erase(first_);
            },
            [this](PoolVolumes& volumes) {
              PoolVolumeWish thick = Wish("pvc-2");
              thick.parameters = {{"allocation", "thick"}};
              second_ = Make(volumes, thick);
            },
            [this](PoolVolumes& volumes) { Expect(volumes.Delete(first_, false, {}), "delete"); },
            [this](PoolVolumes& volumes) { Expect(volumes.Delete(second_, true, {}), "undo"); }};
  }
  std::string Make(PoolVolumes& volumes, const PoolVolumeWish& wish) {
    const PoolVolumeRecord made = Must(volumes.Create(wish, {}));
    EXPECT_EQ(made.state, PoolVolumeState::kReady);
    EXPECT_EQ(world_.Look(PoolWorld::ImageOf(made.id)).size_bytes, 16 * kMiB);
    EXPECT_NE(made.object.inode, 0u);
    return made.id;
  }
  void Grow(PoolVolumes& volumes) {
    EXPECT_EQ(Must(volumes.Expand(first_, 32 * kMiB, {})), 32 * kMiB);
    EXPECT_EQ(world_.Look(PoolWorld::ImageOf(first_)).size_bytes, 32 * kMiB);
    for (const LoopEntry& loop : world_.Loops()) EXPECT_EQ(loop.size_bytes, 32 * kMiB);
  }

  PoolWorld& world_;
  size_t step_ = 0;
  std::string first_;
  std::string second_;
  std::set<std::string> used_;
};

void ExpectARowForEachDirectory(PoolWorld& world) {
  std::set<std::string> rows;
  for (const PoolVolumeRecord& row : world.Rows()) rows.insert(row.id);
  for (const std::string& name : world.Directories()) {
    EXPECT_TRUE(rows.contains(name)) << name << " has no row";
  }
}

void ExpectNothingIsLeft(PoolWorld& world) {
  EXPECT_TRUE(world.Rows().empty());
  EXPECT_TRUE(world.Directories().empty());
  EXPECT_TRUE(world.Loops().empty());
  EXPECT_EQ(world.store.All().size(), 1u) << "the pool's own row";
}

// False: there is no such end, as the agent lived longer than that.
bool WalkOne(const End& end, bool gives_up) {
  PoolWorld world;
  Caller caller(world);
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
    if (end.reboots) caller.Reboot();
    ExpectARowForEachDirectory(world);
    EXPECT_TRUE(gives_up ? caller.TakeBack() : caller.GoOn());
  }
  ExpectNothingIsLeft(world);
  return !lived;
}

TEST(PoolWalk, AtEveryEffectAndWriteTheNextAgentGoesOnOrTakesBack) {
  int ends = 0;
  for (const bool gives_up : {false, true}) {
    for (const bool reboots : {false, true}) {
      for (const bool in_kernel : {true, false}) {
        for (const bool before : {true, false}) {
          for (uint64_t number = 1;; ++number) {
            const End end{in_kernel, before, number, reboots};
            SCOPED_TRACE(end.ToString() + (gives_up ? ", gives up" : ""));
            if (!WalkOne(end, gives_up)) break;
            ++ends;
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(ends, 300);
}

// The call that hangs, the worker that dies: each effect once fails in doubt, made or not made.
TEST(PoolWalk, EveryEffectMayFailInDoubt) {
  int faults = 0;
  for (const bool apply : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      SCOPED_TRACE("effect " + std::to_string(number) + (apply ? ", made" : ", not made"));
      PoolWorld world;
      PoolAgent agent(world);
      world.kernel.FailAt(number, Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), apply);
      PoolVolumes& volumes = *agent.volumes;
      const auto again = [&](const auto& call) {
        const bool is_done = call().ok() || call().ok();
        EXPECT_TRUE(is_done);
      };
      again([&] { return agent.Recover(); });
      again([&] { return volumes.Create(Wish("pvc-1"), {}); });
      const std::optional<PoolVolumeRecord> made = volumes.FindByName("pvc-1");
      ASSERT_TRUE(made.has_value());
      const std::string id = made->id;
      again([&] { return volumes.Open(id, false, {}); });
      again([&] { return volumes.Expand(id, 32 * kMiB, {}); });
      EXPECT_EQ(world.Loops().at(0).size_bytes, 32 * kMiB);
      again([&] { return volumes.Close(id, {}); });
      again([&] { return volumes.Delete(id, false, {}); });
      ExpectNothingIsLeft(world);
      if (world.kernel.call_count() < number) break;
      ++faults;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(faults, 50);
}

}  // namespace
}  // namespace volumed
