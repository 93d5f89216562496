// The agent ends at every effect and every record write of an import. The next one imports the
// same, and there is one volume, and the source as it was.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fakes/simulated_crash.h"
#include "unit/pool/pool_import_fixture.h"

namespace volumed {
namespace {

// False: the agent has ended.
bool ImportOldImage(PoolImportWorld& world) {
  try {
    PoolAgent agent(world);
    const Status recovered = agent.Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().ToString();
    const ImportParts parts = PartsOfImport(agent, world.kernel);
    ImportRequest request;
    request.source = kOldImage;
    const ImportPlan done = Must(DoImport(parts, Must(PlanImport(parts, request, {})), {}));
    EXPECT_EQ(Must(agent.volumes->Find(done.volume)).state, PoolVolumeState::kReady);
    return true;
  } catch (const SimulatedCrash&) {
    world.kernel.Die();
    world.store.Die();
    return false;
  }
}

void ExpectOneVolumeAndTheSourceAsItWas(PoolImportWorld& world, const std::string& source) {
  const std::vector<PoolVolumeRecord> rows = world.Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.front().state, PoolVolumeState::kReady);
  EXPECT_EQ(world.Directories(), std::vector<std::string>{rows.front().id});
  EXPECT_EQ(world.kernel.Image(PoolWorld::ImageOf(rows.front().id)).identity.uuid, "uuid-of-old");
  EXPECT_EQ(world.kernel.DumpTree(kOldDirectory), source);
  // That of a look that was cut off stays: it may be somebody's.
  for (const LoopEntry& loop : world.LoopsOf(kOldImage)) EXPECT_TRUE(loop.read_only);
  EXPECT_TRUE(world.Loops().empty()) << "the volume is not open";
}

// False: there is no such end, as the agent lived longer than that.
bool WalkImport(uint64_t number, bool in_kernel, bool before, bool reboots) {
  PoolImportWorld world;
  world.AddImage(kOldImage, "ext4");
  const std::string source = world.kernel.DumpTree(kOldDirectory);
  world.kernel.Revive();
  world.store.Revive();
  if (in_kernel) {
    world.kernel.CrashAtCall(
        number, before ? FakeKernel::CrashPoint::kBefore : FakeKernel::CrashPoint::kAfter);
  } else {
    world.store.CrashAtCall(number, before ? MemoryRecordStore::CrashPoint::kBefore
                                           : MemoryRecordStore::CrashPoint::kAfter);
  }
  const bool lived = ImportOldImage(world);
  world.kernel.Revive();
  world.store.Revive();
  if (!lived) {
    EXPECT_EQ(world.kernel.DumpTree(kOldDirectory), source);
    if (reboots) world.Reboot();
    EXPECT_TRUE(ImportOldImage(world));
  }
  ExpectOneVolumeAndTheSourceAsItWas(world, source);
  return !lived;
}

TEST(PoolImportWalk, AtEveryEffectAndWriteTheNextAgentImportsTheSame) {
  int ends = 0;
  for (const bool reboots : {false, true}) {
    for (const bool in_kernel : {true, false}) {
      for (const bool before : {true, false}) {
        for (uint64_t number = 1;; ++number) {
          SCOPED_TRACE(std::string(in_kernel ? "effect " : "write ") + std::to_string(number) +
                       (before ? " before" : " after") + (reboots ? ", reboot" : ""));
          if (!WalkImport(number, in_kernel, before, reboots)) break;
          ++ends;
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(ends, 80);
}

// The call that hangs, the worker that dies: each effect once fails in doubt, made or not made.
TEST(PoolImportWalk, EveryEffectOfAnImportMayFailInDoubt) {
  int faults = 0;
  for (const bool apply : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      SCOPED_TRACE("effect " + std::to_string(number) + (apply ? ", made" : ", not made"));
      PoolImportWorld world;
      world.AddImage(kOldImage, "ext4");
      const std::string source = world.kernel.DumpTree(kOldDirectory);
      PoolAgent agent(world);
      ASSERT_TRUE(agent.Recover().ok());
      const ImportParts parts = PartsOfImport(agent, world.kernel);
      ImportRequest request;
      request.source = kOldImage;
      world.kernel.Revive();
      world.kernel.FailAt(number, Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), apply);
      const auto import = [&]() -> Status {
        ASSIGN_OR_RETURN(ImportPlan plan, PlanImport(parts, request, {}));
        RETURN_IF_ERROR(DoImport(parts, std::move(plan), {}));
        return OkStatus();
      };
      const bool is_done = import().ok() || import().ok();
      EXPECT_TRUE(is_done);
      ExpectOneVolumeAndTheSourceAsItWas(world, source);
      if (world.kernel.call_count() < number) break;
      ++faults;
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(faults, 30);
}

}  // namespace
}  // namespace volumed
