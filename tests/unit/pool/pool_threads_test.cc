// PoolVolumes is called by many threads at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/pool/pool_fixture.h"

namespace volumed {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 60;

// FakeIrreversibleSteps remembers what it was asked, and is for one thread.
class AdmitsAll final : public IrreversibleSteps {
 public:
  Status Admit(IrreversibleStep /*step*/, const std::string& /*volume*/) override {
    return OkStatus();
  }
  bool InDoubt() const override { return false; }
};

// What a call may answer while others are at the same few volumes: somebody else has it, it was
// deleted meanwhile, or the others have the pool.
template <typename T>
bool IsFine(const Result<T>& result) {
  if (result.ok()) return true;
  const Code code = result.error().code();
  const bool is_known =
      code == Code::kAborted || code == Code::kNotFound || code == Code::kResourceExhausted;
  return is_known && !result.error().maybe_applied();
}

void UseVolumes(PoolVolumes& volumes, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < kRounds; ++round) {
    const std::string name = "pvc-" + std::to_string(random() % 3);
    const std::optional<PoolVolumeRecord> there = volumes.FindByName(name);
    const std::string id = there ? there->id : "v-none";
    switch (random() % 6) {
      case 0:
      case 1:
        EXPECT_TRUE(IsFine(volumes.Create(Wish(name, 0), {})));
        break;
      case 2:
        EXPECT_TRUE(IsFine(volumes.Delete(id, false, {})));
        break;
      case 3:
        EXPECT_TRUE(IsFine(volumes.Open(id, false, {})));
        EXPECT_TRUE(IsFine(volumes.Close(id, {})));
        break;
      case 4:
        EXPECT_TRUE(IsFine(volumes.Capacity({}, {})));
        EXPECT_LE(volumes.List("", 10).volumes.size(), 3u);
        break;
      default:
        if (seed != 1) break;  // it is for one thread at a time
        EXPECT_TRUE(volumes.Recover([](const std::string&) { return true; }, {}).ok());
    }
  }
}

TEST(PoolThreads, NoVolumeIsMadeTwiceOrLostByCallsAtOnce) {
  PoolWorld world;
  PoolSettings settings = TestPool();
  // Two volumes of the usual size.
  settings.limits = {.capacity_bytes = 2048 * kMiB, .reserve_percent = 0};
  world.kernel.LimitFilesystem("/", 4096 * kMiB);
  ManualClock clock;
  Logger log({.target = LogOptions::Target::kCallback, .callback = {}}, clock);
  AdmitsAll irreversible;
  std::vector<std::unique_ptr<Pool>> pools;
  pools.push_back(std::make_unique<Pool>(settings, world.kernel, world.store, clock, log));
  PoolVolumes volumes({world.store, world.kernel, clock, log, irreversible}, std::move(pools));
  ASSERT_TRUE(volumes.Recover([](const std::string&) { return false; }, {}).ok());
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= kThreads; ++seed) {
    threads.emplace_back([&volumes, seed] { UseVolumes(volumes, seed); });
  }
  for (std::thread& thread : threads) thread.join();

  std::set<std::string> names;
  std::set<std::string> ids;
  int64_t promised = 0;
  for (const PoolVolumeRecord& row : world.Rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " was made twice";
    ids.insert(row.id);
    promised += row.capacity_bytes;
    EXPECT_EQ(row.state, PoolVolumeState::kReady);
    EXPECT_EQ(Must(volumes.Find(row.id)), row);
  }
  EXPECT_LE(promised, 2048 * kMiB);
  const std::vector<std::string> directories = world.Directories();
  EXPECT_EQ(std::set<std::string>(directories.begin(), directories.end()), ids);
}

}  // namespace
}  // namespace volumed
