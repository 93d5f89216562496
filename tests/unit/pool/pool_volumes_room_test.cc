// How much of a pool its volumes are promised, and what is said of a pool that is full.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "unit/pool/pool_volumes_fixture.h"

namespace volumed {
namespace {

TEST_F(PoolVolumesTest, AFullPoolPromisesNothing) {
  const int64_t free = Must(volumes().Capacity({}, {})).free_bytes;
  ASSERT_GT(free, 64 * kMiB);
  const std::string before = world_.kernel.DumpTree(kPoolPath);
  const Error refused = Failure(volumes().Create(Wish("pvc-1", free + 4096), {}));
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused.ToString();
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_EQ(world_.kernel.DumpTree(kPoolPath), before);
  EXPECT_TRUE(world_.Rows().empty());

  Make(Wish("pvc-1", free / 4096 * 4096 - 16 * kMiB));
  EXPECT_EQ(CodeOf(volumes().Create(Wish("pvc-2", 32 * kMiB), {})), Code::kResourceExhausted);
  PoolVolumeWish more = Wish("pvc-2", 32 * kMiB);
  more.parameters = {{"overcommit", "true"}};
  EXPECT_EQ(Make(more).capacity_bytes, 32 * kMiB);
}

// `volumectl get pools` had no answer when one was needed.
TEST_F(PoolVolumesTest, OfAPoolThatDoesNotAnswerIsToldWhatWasLastKnown) {
  Make(Wish("pvc-1", 64 * kMiB));
  const PoolGlance before = volumes().Glance("fast");
  ASSERT_TRUE(before.state.ok()) << before.state.error().ToString();
  ASSERT_TRUE(before.account.has_value());
  EXPECT_EQ(before.account->promised_bytes, 64 * kMiB);
  world_.kernel.Hang(kPoolPath);
  const PoolGlance hung = volumes().Glance("fast");
  ASSERT_FALSE(hung.state.ok());
  EXPECT_NE(hung.state.error().message().find("not known since "), std::string::npos)
      << hung.state.error().ToString();
  ASSERT_TRUE(hung.account.has_value());
  EXPECT_EQ(hung.account->promised_bytes, 64 * kMiB);
  EXPECT_EQ(hung.account->free_bytes, before.account->free_bytes);
  world_.kernel.Unhang(kPoolPath);
  EXPECT_TRUE(volumes().Glance("fast").state.ok());
  EXPECT_FALSE(volumes().Glance("slow").state.ok()) << "there is no such pool";
}

TEST_F(PoolVolumesTest, AThickVolumeOwesThePoolNothing) {
  PoolVolumeWish wish = Wish("pvc-1", 64 * kMiB);
  Make(wish);
  EXPECT_EQ(Must(volumes().Capacity({}, {})).outstanding_bytes, 64 * kMiB);
  wish.name = "pvc-2";
  wish.parameters = {{"allocation", "thick"}};
  const PoolVolumeRecord thick = Make(wish);
  EXPECT_GE(world_.Look(PoolWorld::ImageOf(thick.id)).allocated_bytes, 64 * kMiB);
  const PoolAccount account = Must(volumes().Capacity({}, {}));
  EXPECT_EQ(account.promised_bytes, 128 * kMiB);
  EXPECT_EQ(account.outstanding_bytes, 64 * kMiB);
}

TEST_F(PoolVolumesTest, AVolumeDoesNotGrowBeyondThePool) {
  const PoolVolumeRecord made = Make(Wish("pvc-1"));
  const int64_t free = Must(volumes().Capacity({}, {})).free_bytes;
  const Error refused = Failure(volumes().Expand(made.id, made.capacity_bytes + free + 4096, {}));
  EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused.ToString();
  EXPECT_FALSE(refused.maybe_applied());
  EXPECT_EQ(Must(volumes().Find(made.id)), made);
}

// Each volume that was made measured all that there were, so that a pool of thousands got slow.
TEST_F(PoolVolumesTest, ACreationMeasuresNoOtherVolumeWhileAllThatIsPromisedFitsOnceMore) {
  world_.kernel.LimitFilesystem(kPoolPath, 100 * kMiB);
  int measured = 0;
  world_.kernel.SetCallHook([&measured](const AnyRequest& request) {
    measured += std::holds_alternative<Stat>(request) ? 1 : 0;
  });
  for (const char* name : {"pvc-1", "pvc-2", "pvc-3"}) Make(Wish(name));
  EXPECT_EQ(measured, 0);
  // How much of it is written already has to be found out now.
  world_.kernel.LimitFilesystem(kPoolPath, 60 * kMiB);
  EXPECT_EQ(CodeOf(volumes().Create(Wish("pvc-4"), {})), Code::kResourceExhausted);
  EXPECT_EQ(measured, 3);
}

// Each of two pools on one filesystem promised all of it.
TEST_F(PoolVolumesTest, TwoPoolsOnOneFilesystemPromiseItOnce) {
  agent_.reset();
  for (const char* path : {"/srv/one", "/srv/two"}) world_.kernel.AddDirectory(path);
  world_.kernel.LimitFilesystem("/", 100 * kMiB);
  PoolAgent agent(world_, {TestPool("one", "/srv/one"), TestPool("two", "/srv/two")});
  ASSERT_TRUE(agent.Recover().ok());
  const auto wish = [](const char* name, const char* pool) {
    PoolVolumeWish made = Wish(name, 32 * kMiB);
    made.parameters["pool"] = pool;
    return made;
  };
  Must(agent.volumes->Create(wish("pvc-1", "one"), {}));
  Must(agent.volumes->Create(wish("pvc-2", "two"), {}));
  EXPECT_EQ(CodeOf(agent.volumes->Create(wish("pvc-3", "one"), {})), Code::kResourceExhausted);
  const PoolAccount account = Must(agent.volumes->Capacity({{"pool", "two"}}, {}));
  EXPECT_EQ(account.promised_bytes, 32 * kMiB) << "of the pool alone";
  EXPECT_EQ(account.outstanding_bytes, 64 * kMiB);
  EXPECT_LT(account.free_bytes, 32 * kMiB);
}

// Writes of its volumes would have failed, and the pool said that all was well.
TEST_F(PoolVolumesTest, APoolWhoseFilesystemIsFullIsShortForOvercommittedVolumes) {
  PoolVolumeWish promised = Wish("pvc-1", 4096 * kMiB);
  promised.parameters = {{"overcommit", "true"}};
  const PoolVolumeRecord volume = Make(promised);
  EXPECT_FALSE(Must(volumes().Capacity({}, {})).is_short);
  world_.kernel.LimitFilesystem(kPoolPath, 4096);
  EXPECT_TRUE(Must(volumes().Capacity({}, {})).is_short);
  ASSERT_TRUE(volumes().Delete(volume.id, false, {}).ok());
  EXPECT_FALSE(Must(volumes().Capacity({}, {})).is_short) << "nobody may write more";
}

}  // namespace
}  // namespace volumed
