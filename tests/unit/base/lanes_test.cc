#include "base/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LaneLimits kLimits{.places = 8, .per_lane = 2, .own_lane = 1};

class LanesTest : public ::testing::Test {
 protected:
  // Whether somebody who comes now may begin at once; who may not does not wait.
  bool Enter(const std::string& lane) {
    const Lanes::Ticket ticket = lanes_.Wait(lane);
    if (!lanes_.Admit().empty()) return true;
    lanes_.GiveUp(lane, ticket);
    return false;
  }
  void EnterAndAnswer(const std::string& lane) {
    ASSERT_TRUE(Enter(lane));
    lanes_.Answered(lane);
    lanes_.Leave(lane);
  }
  // As it is with a worker that is killed at its deadline and does not die.
  bool EnterAndBeLost(const std::string& lane) {
    if (!Enter(lane)) return false;
    lanes_.Lose(lane);
    lanes_.NotAnswered(lane, TimePoint(Duration(1)));
    lanes_.Leave(lane);
    return true;
  }

  Lanes lanes_{kLimits};
};

TEST_F(LanesTest, ALaneHasSoManyPlacesAndOthersAreNotConcerned) {
  EXPECT_TRUE(Enter("a"));
  EXPECT_TRUE(Enter("a"));
  EXPECT_FALSE(Enter("a"));
  EXPECT_TRUE(lanes_.IsFull("a"));
  EXPECT_TRUE(Enter("b"));
  lanes_.Leave("a");
  EXPECT_TRUE(Enter("a"));
}

TEST_F(LanesTest, ThoseWhoWaitForOneLaneAreAdmittedInTheOrderInWhichTheyCame) {
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("a"));
  const Lanes::Ticket first = lanes_.Wait("a");
  const Lanes::Ticket second = lanes_.Wait("a");
  EXPECT_THAT(lanes_.Admit(), IsEmpty());
  EXPECT_EQ(lanes_.waiting(), 2);
  EXPECT_THAT(lanes_.WaitedFor(), ElementsAre("a"));
  lanes_.Leave("a");
  EXPECT_THAT(lanes_.Admit(), ElementsAre(first));
  lanes_.Leave("a");
  EXPECT_THAT(lanes_.Admit(), ElementsAre(second));
  EXPECT_THAT(lanes_.WaitedFor(), IsEmpty());
}

TEST_F(LanesTest, BetweenLanesTheOneWithTheFewestAtWorkGoesFirst) {
  lanes_.SetLimits({.places = 3, .per_lane = 3, .own_lane = 1});
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("b"));
  const Lanes::Ticket of_a = lanes_.Wait("a");
  const Lanes::Ticket of_c = lanes_.Wait("c");
  lanes_.Leave("b");
  EXPECT_THAT(lanes_.Admit(), ElementsAre(of_c)) << "though the other one came first";
  lanes_.Leave("c");
  EXPECT_THAT(lanes_.Admit(), ElementsAre(of_a));
}

TEST_F(LanesTest, WhoGivesUpIsNotAdmitted) {
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("a"));
  const Lanes::Ticket gone = lanes_.Wait("a");
  const Lanes::Ticket stays = lanes_.Wait("a");
  lanes_.GiveUp("a", gone);
  EXPECT_EQ(lanes_.waiting(), 1);
  lanes_.Leave("a");
  EXPECT_THAT(lanes_.Admit(), ElementsAre(stays));
}

// Many dead paths took 1,300 workers: the lost ones were not counted.
TEST_F(LanesTest, LostPlacesCountForTheirLaneUntilTheyAreFound) {
  EXPECT_TRUE(EnterAndBeLost("dead"));
  EXPECT_TRUE(EnterAndBeLost("dead"));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(Enter("dead"));
  EXPECT_EQ(lanes_.Health("dead").lost, 2);
  lanes_.Found("dead");
  EXPECT_TRUE(Enter("dead"));
}

TEST_F(LanesTest, LostPlacesCountForAllLanesTogetherAndLeaveTheReserveToThoseThatAnswer) {
  EnterAndAnswer("healthy");
  int lost = 0;
  for (int lane = 0; lane < 100; ++lane) {
    for (int i = 0; i < 10; ++i) {
      if (EnterAndBeLost("dead " + std::to_string(lane))) ++lost;
    }
  }
  EXPECT_EQ(lost, 7) << "six of eight, and one try of a lane that nobody knew";
  for (int i = 0; i < 10; ++i) EnterAndAnswer("healthy");
}

TEST_F(LanesTest, ALaneThatAnsweredLastTimeHasRoomHoweverManyOthersHang) {
  EnterAndAnswer("healthy");
  for (int lane = 0; lane < 100; ++lane) {
    while (EnterAndBeLost("dead " + std::to_string(lane))) {
    }
  }
  EXPECT_TRUE(Enter("healthy"));
  EXPECT_FALSE(Enter("nobody knows it"));
}

TEST_F(LanesTest, ASilentLaneGetsOnePlaceAtATimeUntilItAnswers) {
  ASSERT_TRUE(Enter("a"));
  lanes_.NotAnswered("a", TimePoint(Duration(7)));
  EXPECT_EQ(lanes_.Health("a").silent_since, TimePoint(Duration(7)));
  lanes_.NotAnswered("a", TimePoint(Duration(9)));
  EXPECT_EQ(lanes_.Health("a").silent_since, TimePoint(Duration(7))) << "since the first time";
  EXPECT_FALSE(Enter("a"));
  lanes_.Leave("a");
  EXPECT_TRUE(Enter("a"));
  EXPECT_FALSE(Enter("a"));
  lanes_.Answered("a");
  EXPECT_TRUE(Enter("a"));
}

TEST_F(LanesTest, SilentLanesDoNotUseUpWhatOthersNeedEvenIfTheirWorkersCanBeKilled) {
  EnterAndAnswer("healthy");
  int at_work = 0;
  for (int lane = 0; lane < 100; ++lane) {
    const std::string name = "hung " + std::to_string(lane);
    lanes_.NotAnswered(name, TimePoint(Duration(1)));
    if (Enter(name)) ++at_work;
  }
  EXPECT_EQ(at_work, 6);
  EXPECT_TRUE(Enter("healthy"));
  EXPECT_TRUE(Enter("healthy"));
}

TEST_F(LanesTest, TheOwnLaneIsBoundedForItselfAndALostPlaceDoesNotStopIt) {
  ASSERT_TRUE(Enter(""));
  EXPECT_FALSE(Enter(""));
  lanes_.Lose("");
  lanes_.NotAnswered("", TimePoint(Duration(1)));
  lanes_.Leave("");
  EXPECT_TRUE(Enter(""));
  for (int lane = 0; lane < 4; ++lane) {
    const std::string name = std::to_string(lane);
    EnterAndAnswer(name);
    EXPECT_TRUE(Enter(name));
    EXPECT_TRUE(Enter(name)) << "the own lane takes no place of others";
  }
}

// Each pod of a burst has volumes on the agent's own filesystem and one elsewhere: the first pods
// were ready only once all of the burst had what lies on the own one.
TEST_F(LanesTest, TheOwnLanesGiveWayToThoseWhoWaitForLanesThatAnswer) {
  lanes_.SetLimits({.places = 8, .per_lane = 2, .own_lane = 4});
  EnterAndAnswer("disk");
  for (int place = 0; place < 2; ++place) ASSERT_TRUE(Enter("disk"));
  for (int place = 0; place < 4; ++place) ASSERT_TRUE(Enter("")) << place;
  std::vector<Lanes::Ticket> waiting;
  for (int number = 0; number < 9; ++number) waiting.push_back(lanes_.Wait("disk"));
  ASSERT_THAT(lanes_.Admit(), IsEmpty());
  for (int place = 0; place < 2; ++place) {
    lanes_.Leave("");
    EXPECT_FALSE(Enter("")) << "two of the four are given up";
  }
  lanes_.Leave("");
  EXPECT_TRUE(Enter("")) << "however many wait, as many are left as a lane has";
  for (int number = 0; number < 8; ++number) lanes_.GiveUp("disk", waiting[number]);
  EXPECT_TRUE(Enter("")) << "one waits still, and so the own lanes have three";
  EXPECT_FALSE(Enter(""));
  lanes_.NotAnswered("disk", TimePoint(Duration(1)));
  EXPECT_TRUE(Enter("")) << "nobody waits for what hangs";
}

TEST_F(LanesTest, HealthThatIsToldCountsAsHealthThatWasSeen) {
  lanes_.SetHealth("a", {.lost = 2, .silent_since = TimePoint(Duration(1))});
  EXPECT_FALSE(Enter("a"));
  lanes_.SetHealth("a", {.lost = 1, .silent_since = TimePoint(Duration(1))});
  EXPECT_TRUE(Enter("a"));
  lanes_.Leave("a");
  lanes_.SetHealth("a", {.lost = 0, .silent_since = std::nullopt, .has_answered = true});
  EXPECT_TRUE(Enter("a"));
  EXPECT_TRUE(Enter("a"));
}

TEST_F(LanesTest, LanesThatNobodyUsesAreNotKeptForEver) {
  lanes_.SetLimits({.places = 8, .per_lane = 2, .own_lane = 1});
  for (int lane = 0; lane < 3000; ++lane) EnterAndAnswer("device " + std::to_string(lane));
  ASSERT_TRUE(Enter("device 2999"));
  EXPECT_TRUE(lanes_.Health("device 3").has_answered);
  EXPECT_FALSE(lanes_.Health("device 2000").has_answered) << "forgotten";
}

}  // namespace
}  // namespace volumed
