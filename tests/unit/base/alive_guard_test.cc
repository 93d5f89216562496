#include "base/alive_guard.h"

#include <functional>
#include <memory>

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(AliveGuardTest, AFunctionThatOutlivesItsOwnerDoesNothing) {
  int calls = 0;
  auto guard = std::make_unique<AliveGuard>();
  const std::function<void(int)> task = guard->Guarded([&calls](int by) { calls += by; });
  task(2);
  EXPECT_EQ(calls, 2);
  guard.reset();
  task(2);
  EXPECT_EQ(calls, 2);
}

TEST(AliveGuardTest, AnOwnerThatBeginsAnewEndsWhatItHadBegunAlone) {
  AliveGuard guard;
  const AliveGuard::Watch before = guard.watch();
  guard.Renew();
  EXPECT_FALSE(before.alive());
  EXPECT_TRUE(guard.watch().alive());
}

TEST(AliveGuardTest, AnOwnerThatGoesWhileItsFunctionRunsIsSeenGone) {
  auto guard = std::make_unique<AliveGuard>();
  bool seen_alive = true;
  const std::function<void()> task = guard->Guarded([&] {
    const AliveGuard::Watch watch = guard->watch();
    guard.reset();
    seen_alive = watch.alive();
  });
  task();
  EXPECT_FALSE(seen_alive);
}

}  // namespace
}  // namespace volumed
