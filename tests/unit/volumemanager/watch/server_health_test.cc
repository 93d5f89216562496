// ServerHealth, on a node whose servers stop to answer.
#include "volumemanager/watch/server_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ServerHealthTest : public ::testing::Test {
 protected:
  ServerHealthTest() {
    hooks_.changed = [this](const ServerState& domain, const std::set<PodVolumeKey>& volumes) {
      told_.push_back(domain.name + (domain.silent ? " silent " : " answers ") +
                      std::to_string(volumes.size()));
    };
    // A hang lasts until its deadline.
    kernel_.SetHangHook([this](const AnyRequest&, Deadline deadline) {
      clock_.Advance(deadline.Remaining(clock_));
    });
    kernel_.SetCallHook([this](const AnyRequest& request) {
      if (const auto* look = std::get_if<StatFs>(&request)) looks_.push_back(look->path.Display());
    });
  }
  ServerHealth& Health() {
    if (!health_) {
      health_ = std::make_unique<ServerHealth>(scheduler_, kernel_, log_, settings_, hooks_);
    }
    return *health_;
  }
  static PodVolumeKey Key(const std::string& name) { return {PodUid("u"), SpecName(name)}; }
  // A volume of `server`, mounted at /m/NAME.
  void Track(const std::string& name, const std::string& server) {
    kernel_.AddMount("nfs4", server + ":/" + name, "/m/" + name);
    Health().Track(Key(name), "nfs:" + server, "NFS server " + server, {"/m", name});
  }
  bool IsSilent(const std::string& name) { return Health().FindSilent(Key(name)) != nullptr; }
  // How long until `name` is silent, or not.
  Duration Until(const std::string& name, bool silent) {
    const TimePoint from = clock_.Now();
    while (IsSilent(name) != silent && clock_.Now() - from < minutes(2)) {
      scheduler_.RunFor(milliseconds(100));
    }
    return clock_.Now() - from;
  }

  ManualClock clock_;
  SimulatedScheduler scheduler_{5, clock_};
  Logger log_{LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [](LogLevel, std::string_view) {}},
              clock_};
  FakeKernel kernel_;
  ServerHealthSettings settings_;
  ServerHealth::Hooks hooks_;
  std::vector<std::string> told_;
  std::vector<std::string> looks_;
  std::unique_ptr<ServerHealth> health_;  // last: it goes first
};

TEST_F(ServerHealthTest, AServerThatAnswersCostsOneLookAPeriodHoweverManyVolumesItHas) {
  for (int i = 0; i < 50; ++i) Track("v" + std::to_string(i), "nas");
  scheduler_.RunFor(seconds(100));
  EXPECT_GE(looks_.size(), 9u);
  EXPECT_LE(looks_.size(), 10u);
  EXPECT_EQ(std::set<std::string>(looks_.begin(), looks_.end()).size(), looks_.size())
      << "another volume each time";
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(Health().Answering(), ElementsAre(Pair("nfs:nas", true)));
}

TEST_F(ServerHealthTest, ANewPeriodCountsWithoutARestart) {
  settings_.period = minutes(10);
  Track("v", "nas");
  scheduler_.RunFor(seconds(60));
  EXPECT_THAT(looks_, IsEmpty());
  Health().SetPeriod(seconds(10));
  scheduler_.RunFor(seconds(60));
  EXPECT_GE(looks_.size(), 5u);
  Health().SetPeriod(minutes(10));
  scheduler_.RunFor(seconds(15));
  const size_t looks = looks_.size();
  scheduler_.RunFor(seconds(60));
  EXPECT_EQ(looks_.size(), looks);
}

TEST_F(ServerHealthTest, LooksCanBeEndedAndBegunAgain) {
  Track("v", "nas");
  kernel_.Hang("/m/v");
  Until("v", true);
  Health().SetPeriod(Duration::zero());
  EXPECT_FALSE(IsSilent("v")) << "nobody knows any more";
  EXPECT_THAT(Health().Answering(), IsEmpty());
  Track("w", "other");
  scheduler_.RunFor(minutes(1));
  const size_t looks = looks_.size();
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(looks_.size(), looks);
  EXPECT_FALSE(IsSilent("v"));
  Health().SetPeriod(seconds(10));
  EXPECT_LE(Until("v", true), seconds(21));
  EXPECT_THAT(Health().Answering(), ElementsAre(Pair("nfs:nas", false), Pair("nfs:other", true)));
}

TEST_F(ServerHealthTest, ADeadServerIsSilentWithAllItsVolumesWithinThirtySeconds) {
  for (int i = 0; i < 8; ++i) Track("v" + std::to_string(i), "nas");
  Track("w", "other");
  scheduler_.RunFor(seconds(60));
  for (int i = 0; i < 8; ++i) kernel_.Hang("/m/v" + std::to_string(i));
  EXPECT_LE(Until("v3", true), seconds(21));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(IsSilent("v" + std::to_string(i)));
  EXPECT_FALSE(IsSilent("w"));
  EXPECT_THAT(told_, ElementsAre("NFS server nas silent 8"));
  EXPECT_THAT(Health().Answering(), ElementsAre(Pair("nfs:nas", false), Pair("nfs:other", true)));
}

TEST_F(ServerHealthTest, SaysSinceWhenAsOfTheFirstLookWithoutAnAnswer) {
  Track("v", "nas");
  kernel_.Hang("/m/v");
  Until("v", true);
  const ServerState* state = Health().FindSilent(Key("v"));
  ASSERT_NE(state, nullptr);
  const int64_t age_ms = clock_.WallUnixMillis() - state->since_unix_ms;
  EXPECT_GE(age_ms, 10000);
  EXPECT_LE(age_ms, 10200);
  EXPECT_EQ(state->Text(),
            "NFS server nas does not answer since " + WallTimeText(state->since_unix_ms));
}

TEST_F(ServerHealthTest, AServerThatReturnsIsSeenWithinSeconds) {
  Track("v", "nas");
  kernel_.Hang("/m/v");
  Until("v", true);
  scheduler_.RunFor(minutes(10));
  EXPECT_THAT(told_, ElementsAre("NFS server nas silent 1")) << "told once";
  kernel_.Unhang("/m/v");
  EXPECT_LE(Until("v", false), seconds(8));
  EXPECT_THAT(told_, ElementsAre("NFS server nas silent 1", "NFS server nas answers 1"));
}

TEST_F(ServerHealthTest, OneLookWithoutAnAnswerIsNoDeath) {
  Track("v", "nas");
  kernel_.FailNext("StatFs", Error::MaybeApplied(Code::kDeadlineExceeded, "no answer in time"));
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(ServerHealthTest, AnErrorOfTheServerIsAnAnswerAndThatOfASoftMountIsNone) {
  Track("v", "nas");
  kernel_.FailNextBelow("StatFs", "/m/v", Error::FromErrno(ESTALE, "statfs", Outcome::kNotApplied),
                        100);
  scheduler_.RunFor(minutes(1));
  EXPECT_THAT(told_, IsEmpty());
  Track("w", "soft");
  kernel_.FailNextBelow("StatFs", "/m/w", Error::FromErrno(EIO, "statfs", Outcome::kNotApplied), 2);
  scheduler_.RunFor(minutes(1));
  EXPECT_THAT(told_, ElementsAre("NFS server soft silent 1", "NFS server soft answers 1"));
}

TEST_F(ServerHealthTest, NothingFollowsFromAWorkerThatIsNotFree) {
  Track("v", "nas");
  kernel_.FailNext("StatFs",
                   Error::NotApplied(Code::kDeadlineExceeded, "no worker became free in time"), 5);
  scheduler_.RunFor(minutes(1));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(ServerHealthTest, TheDirectoryThatAnUnmountLeftSaysNothingOfTheServer) {
  Track("v", "nas");
  Track("w", "nas");
  kernel_.Hang("/m/v");
  kernel_.Hang("/m/w");
  Until("v", true);
  kernel_.Unhang("/m/v");
  kernel_.UnmountBelow("/m/v");
  scheduler_.RunFor(minutes(2));
  EXPECT_TRUE(IsSilent("w")) << "the node's own disk answered for /m/v";
}

TEST_F(ServerHealthTest, AServerWithoutVolumesIsNotLookedAt) {
  Track("v", "nas");
  kernel_.Hang("/m/v");
  Until("v", true);
  Health().Forget(Key("v"));
  EXPECT_FALSE(IsSilent("v"));
  EXPECT_THAT(Health().Answering(), IsEmpty());
  const size_t before = looks_.size();
  scheduler_.RunFor(minutes(5));
  EXPECT_LE(looks_.size(), before + 1);
}

TEST_F(ServerHealthTest, DeadServersDoNotUseUpTheLooksOfOthers) {
  settings_.max_running = 4;
  settings_.max_running_silent = 2;
  for (int i = 0; i < 5; ++i) {
    Track("dead" + std::to_string(i), "dead" + std::to_string(i));
    kernel_.Hang("/m/dead" + std::to_string(i));
  }
  for (int i = 0; i < 5; ++i) Until("dead" + std::to_string(i), true);
  Track("v", "nas");
  scheduler_.RunFor(minutes(5));
  kernel_.Hang("/m/v");
  EXPECT_LT(Until("v", true), minutes(2));
}

TEST_F(ServerHealthTest, WithoutAPeriodNothingIsLookedAt) {
  settings_.period = Duration::zero();
  Track("v", "nas");
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(looks_, IsEmpty());
}

}  // namespace
}  // namespace volumed
