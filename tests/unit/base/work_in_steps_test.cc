#include "base/work_in_steps.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

class WorkInStepsTest : public testing::Test {
 protected:
  // One that is over at once.
  WorkInSteps::Step Note(char name) {
    return [this, name](TaskLimit&) {
      order_ += name;
      return true;
    };
  }
  void RunAll() { scheduler_.RunFor(Duration::zero()); }

  SimulatedScheduler scheduler_{1};
  std::unique_ptr<WorkInSteps> work_ = std::make_unique<WorkInSteps>(scheduler_);
  std::string order_;
};

TEST_F(WorkInStepsTest, LittleWorkIsDoneBeforeStartReturns) {
  work_->Start({Note('a'), Note('b')});
  EXPECT_EQ(order_, "ab");
  EXPECT_FALSE(work_->IsUnderWay());
}

TEST_F(WorkInStepsTest, AStepThatIsNotOverIsCalledAgainInAnotherTask) {
  int left = 3;
  work_->Start({[&](TaskLimit&) {
                  order_ += 'a';
                  return --left == 0;
                },
                Note('b')});
  EXPECT_EQ(order_, "a");
  EXPECT_TRUE(work_->IsUnderWay());
  scheduler_.Post([this] { order_ += '-'; });
  RunAll();
  EXPECT_EQ(order_, "aa-ab") << "somebody else has his turn";
  EXPECT_FALSE(work_->IsUnderWay());
}

TEST_F(WorkInStepsTest, WhatTakesLongLeavesTheRestToAnotherTask) {
  work_->Start({[this](TaskLimit& limit) {
                  order_ += limit.TakeOne() ? 'a' : '?';
                  scheduler_.manual_clock().Advance(TaskLimit::kLongest);
                  return true;
                },
                Note('b')});
  EXPECT_EQ(order_, "a");
  RunAll();
  EXPECT_EQ(order_, "ab");
}

TEST_F(WorkInStepsTest, WorkThatIsStartedAnewGivesUpWhatWasUnderWay) {
  work_->Start({[](TaskLimit&) { return false; }, Note('a')});
  work_->Start({Note('b')});
  RunAll();
  EXPECT_EQ(order_, "b");
}

TEST_F(WorkInStepsTest, AStepThatStartsOtherWorkIsFollowedByThatAlone) {
  work_->Start({[this](TaskLimit&) {
                  work_->Start({Note('b'), Note('c')});
                  return true;
                },
                Note('a')});
  RunAll();
  EXPECT_EQ(order_, "bc");
}

TEST_F(WorkInStepsTest, AStepThatEndsItsOwnerIsTheLast) {
  work_->Start({[this](TaskLimit&) {
                  work_.reset();
                  return true;
                },
                Note('a')});
  RunAll();
  EXPECT_EQ(order_, "");
}

TEST_F(WorkInStepsTest, WhatIsNotDoneWhenItsOwnerGoesIsNotDone) {
  work_->Start({[this](TaskLimit&) {
    order_ += 'a';
    return false;
  }});
  work_.reset();
  RunAll();
  EXPECT_EQ(order_, "a");
}

}  // namespace
}  // namespace volumed
