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

TEST_F(LanesTest, WhoFinishesWhatWasBegunGoesBeforeThoseWhoBegin) {
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("a"));
  const Lanes::Ticket begins = lanes_.Wait("a");
  const Lanes::Ticket finishes = lanes_.Wait("a", /*finishes=*/true);
  const Lanes::Ticket given_up = lanes_.Wait("a", /*finishes=*/true);
  const Lanes::Ticket later = lanes_.Wait("a", /*finishes=*/true);
  lanes_.GiveUp("a", given_up);
  EXPECT_EQ(lanes_.waiting(), 3);
  for (const Lanes::Ticket next : {finishes, later, begins}) {
    lanes_.Leave("a");
    EXPECT_THAT(lanes_.Admit(), ElementsAre(next));
  }
  EXPECT_EQ(lanes_.waiting(), 0);
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

// ---- lanes that are closed, and lanes with a width of their own ---------------------------------

TEST_F(LanesTest, AClosedLaneAdmitsNobodyUntilItIsOpenAgainAndThenInOrder) {
  lanes_.SetHealth("driver", {.has_answered = true, .width = 4, .closed = true});
  std::vector<Lanes::Ticket> tickets;
  for (int number = 0; number < 3; ++number) tickets.push_back(lanes_.Wait("driver"));
  EXPECT_THAT(lanes_.Admit(), IsEmpty());
  EXPECT_TRUE(Enter("other")) << "nobody else is concerned";
  lanes_.SetHealth("driver", {.has_answered = true, .width = 4});
  EXPECT_EQ(lanes_.Admit(), tickets);
}

// The own lanes would give way for days, for nothing.
TEST_F(LanesTest, TheOwnLanesGiveNoWayToThoseWhoWaitForAClosedLane) {
  lanes_.SetLimits({.places = 8, .per_lane = 1, .own_lane = 3});
  lanes_.SetHealth("driver", {.has_answered = true, .width = 4, .closed = true});
  for (int number = 0; number < 9; ++number) lanes_.Wait("driver");
  for (int place = 0; place < 3; ++place) EXPECT_TRUE(Enter("")) << place;
  EXPECT_FALSE(Enter(""));
}

TEST_F(LanesTest, ALaneIsAsWideAsItIsToldAndMayGrowAndShrink) {
  lanes_.SetHealth("driver", {.has_answered = true, .width = 3});
  for (int place = 0; place < 3; ++place) EXPECT_TRUE(Enter("driver")) << place;
  EXPECT_FALSE(Enter("driver"));
  EXPECT_TRUE(lanes_.IsFull("driver"));
  lanes_.SetHealth("driver", {.has_answered = true, .width = 5});
  EXPECT_FALSE(lanes_.IsFull("driver"));
  EXPECT_TRUE(Enter("driver"));
  EXPECT_TRUE(Enter("driver"));
  EXPECT_FALSE(Enter("driver"));
  lanes_.SetHealth("driver", {.has_answered = true, .width = 1});
  EXPECT_EQ(lanes_.busy("driver"), 5) << "nothing that runs is ended";
  for (int place = 0; place < 4; ++place) {
    lanes_.Leave("driver");
    EXPECT_FALSE(Enter("driver")) << "four are to leave, and one to stay";
  }
  lanes_.Leave("driver");
  EXPECT_TRUE(Enter("driver"));
}

TEST_F(LanesTest, LanesWithAWidthTakeNoPlacesOfOthersAndOthersNoneOfTheirs) {
  lanes_.SetLimits({.places = 8, .per_lane = 2, .own_lane = 1, .driver_places = 4});
  for (int lane = 0; lane < 4; ++lane) {
    EnterAndAnswer(std::to_string(lane));
    EXPECT_TRUE(Enter(std::to_string(lane)));
    EXPECT_TRUE(Enter(std::to_string(lane)));
  }
  EXPECT_FALSE(Enter("one more"));
  lanes_.SetHealth("driver", {.has_answered = true, .width = 3});
  lanes_.SetHealth("second", {.has_answered = true, .width = 3});
  for (int place = 0; place < 3; ++place) EXPECT_TRUE(Enter("driver")) << place;
  EXPECT_TRUE(Enter("second")) << "the fourth of their places";
  EXPECT_FALSE(Enter("second"));
  lanes_.Leave("driver");
  EXPECT_FALSE(Enter("one more"));
  EXPECT_TRUE(Enter("second"));
}

// The places are counted in the pool of the lane as it was, and given back to the same.
TEST_F(LanesTest, ALaneThatGetsAWidthWhileItIsUsedTakesItsPlacesAlong) {
  lanes_.SetLimits({.places = 2, .per_lane = 4, .own_lane = 1, .driver_places = 4});
  EnterAndAnswer("a");
  EnterAndAnswer("b");
  ASSERT_TRUE(Enter("a"));
  ASSERT_TRUE(Enter("a"));
  EXPECT_FALSE(Enter("b"));
  lanes_.SetHealth("a", {.has_answered = true, .width = 2});
  EXPECT_TRUE(Enter("b"));
  EXPECT_TRUE(Enter("b"));
  lanes_.SetHealth("c", {.has_answered = true, .width = 4});
  EXPECT_TRUE(Enter("c"));
  EXPECT_TRUE(Enter("c"));
  EXPECT_FALSE(Enter("c")) << "two of the four are taken by the first lane";
  lanes_.Leave("a");
  EXPECT_TRUE(Enter("c"));
}

class DriverLanesTest : public LanesTest {
 protected:
  DriverLanesTest() { lanes_.SetLimits({.places = 256, .per_lane = 4, .own_lane = 12}); }
  // How many more of this driver may begin.
  int Fill(const std::string& driver) {
    int begun = 0;
    while (Enter(driver)) ++begun;
    return begun;
  }
  static std::string Driver(int number) { return "csi:" + std::to_string(number); }
};

TEST_F(DriverLanesTest, SixtyFourDriversThatHangTakeFourPlacesEachAndLeaveRoomForHealthyOnes) {
  int begun = 0;
  for (int driver = 0; driver < 64; ++driver) {
    lanes_.SetHealth(Driver(driver), {.width = 4});
    begun += Fill(Driver(driver));
  }
  EXPECT_EQ(begun, 64 * 4);
  lanes_.SetHealth("csi:healthy", {.has_answered = true, .width = 64});
  EXPECT_EQ(Fill("csi:healthy"), 32) << "all that no reserve is kept from";
  lanes_.SetHealth("csi:second", {.has_answered = true, .width = 64});
  EXPECT_EQ(Fill("csi:second"), 4);
  lanes_.SetHealth("csi:new", {.width = 4});
  EXPECT_EQ(Fill("csi:new"), 1) << "a driver that nobody knows gets a try";
}

TEST_F(DriverLanesTest, SixtyFourSilentDriversAreTriedByOneAtATimeEach) {
  for (int driver = 0; driver < 64; ++driver) {
    lanes_.SetHealth(Driver(driver), {.silent_since = TimePoint(Duration(1)), .width = 1});
    EXPECT_EQ(Fill(Driver(driver)), 1);
  }
  lanes_.SetHealth("csi:healthy", {.has_answered = true, .width = 64});
  EXPECT_EQ(Fill("csi:healthy"), 64);
}

// A few of them have all places while they answer, and hold them all once they hang.
TEST_F(DriverLanesTest, WideLanesLeaveTheReserveToThoseThatHaveFewAtWork) {
  for (int driver = 0; driver < 8; ++driver) {
    lanes_.SetHealth(Driver(driver), {.has_answered = true, .width = 64});
  }
  int begun = 0;
  for (int driver = 0; driver < 7; ++driver) begun += Fill(Driver(driver));
  EXPECT_EQ(begun, 288 + 2 * 4) << "three quarters, and four for each of those that came later";
  EXPECT_EQ(Fill(Driver(7)), 4);
}

TEST_F(DriverLanesTest, OfTwoDriversTheOneWithFewerAtWorkGoesFirst) {
  lanes_.SetHealth("csi:a", {.has_answered = true, .width = 3});
  lanes_.SetHealth("csi:b", {.has_answered = true, .width = 3});
  ASSERT_TRUE(Enter("csi:a"));
  const Lanes::Ticket of_a = lanes_.Wait("csi:a");
  const Lanes::Ticket of_b = lanes_.Wait("csi:b");
  EXPECT_THAT(lanes_.Admit(), ElementsAre(of_b, of_a));
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
