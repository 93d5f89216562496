#include "operation/step_runner.h"

#include <gtest/gtest.h>

#include "fakes/memory_record_store.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/usual_errors.h"

namespace volumed {
namespace {

class StepRunnerTest : public ::testing::Test {
 protected:
  // A step that notes its name and what the store says while it runs.
  Step MakeStep(const std::string& name, Status status = OkStatus(), bool changes_volume = true) {
    return {.name = name,
            .timeout = std::chrono::seconds(5),
            .changes_volume = changes_volume,
            .run = [this, name, status](const CallOptions& call) {
              const auto row = store_.Find(kPodVolumeRecordKind, RecordKey(key_));
              trace_.push_back(
                  name + ":" +
                  std::string(row ? VolumeStateName(DecodePodVolumeRecord(*row)->state) : "none"));
              deadlines_.push_back(call.deadline.Remaining(clock_));
              return status;
            }};
  }
  std::optional<OperationFailure> Run(VolumeEvent event, std::vector<Step> steps) {
    StateCall call{.operation = "volume_mount", .event = event, .facts = {}, .steps = {}};
    call.facts.key = key_;
    call.steps = std::move(steps);
    StepRunner runner(keeper_, clock_, progress_, CallOptions());
    return runner.Run(call);
  }
  std::string State() const {
    const auto record = keeper_.Find(key_);
    if (!record) return "none";
    return std::string(VolumeStateName(record->state)) + (record->uncertain ? "*" : "");
  }

  const PodVolumeKey key_ = Key("uid-1", "data");
  ManualClock clock_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  RecordingObserver observer_;
  MemoryRecordStore store_;
  VolumeRecordKeeper keeper_{store_, clock_, logger_, observer_, BootId("boot-a")};
  OperationProgress progress_{clock_};
  std::vector<std::string> trace_;
  std::vector<Duration> deadlines_;
};

TEST_F(StepRunnerTest, TheIntentIsWrittenBeforeTheFirstStepAndTheOutcomeAfterTheLast) {
  EXPECT_FALSE(Run(VolumeEvent::kSetUp, {MakeStep("A"), MakeStep("B")}));
  EXPECT_EQ(trace_, (std::vector<std::string>{"A:SettingUp", "B:SettingUp"}));
  EXPECT_EQ(State(), "SetUp");
  EXPECT_EQ(store_.calls(), 2u);
  EXPECT_EQ(deadlines_.front(), std::chrono::seconds(5));
}

TEST_F(StepRunnerTest, StopsAtTheFirstFailureAndNamesTheStep) {
  const auto failure = Run(VolumeEvent::kSetUp, {MakeStep("A", kRefusal), MakeStep("B")});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "A");
  EXPECT_EQ(failure->error, kRefusal);
  EXPECT_EQ(trace_.size(), 1u);
  EXPECT_EQ(State(), "none");
}

TEST_F(StepRunnerTest, MaybeAppliedStaysInCallUncertain) {
  EXPECT_TRUE(Run(VolumeEvent::kSetUp, {MakeStep("A", kTimedOut)}));
  EXPECT_EQ(State(), "SettingUp*");
  EXPECT_FALSE(Run(VolumeEvent::kTearDown, {MakeStep("B")}));
  EXPECT_EQ(State(), "none");
}

TEST_F(StepRunnerTest, ARefusalAfterAStepThatChangedTheVolumeIsMaybeApplied) {
  const auto failure = Run(VolumeEvent::kSetUp, {MakeStep("A"), MakeStep("B", kRefusal)});
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->error.maybe_applied());
  EXPECT_EQ(failure->step_outcome, Outcome::kNotApplied);
  EXPECT_EQ(State(), "SettingUp*");
}

TEST_F(StepRunnerTest, ARefusalAfterAStepBesideTheVolumeIsNotApplied) {
  const auto failure =
      Run(VolumeEvent::kSetUp, {MakeStep("A", OkStatus(), false), MakeStep("B", kRefusal)});
  ASSERT_TRUE(failure);
  EXPECT_FALSE(failure->error.maybe_applied());
  EXPECT_EQ(State(), "none");
}

TEST_F(StepRunnerTest, WithoutAnIntentNoStepRuns) {
  store_.FailNext(kDiskFull);
  const auto failure = Run(VolumeEvent::kSetUp, {MakeStep("A")});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "RecordIntent");
  EXPECT_FALSE(failure->error.maybe_applied());
  EXPECT_TRUE(trace_.empty());
}

TEST_F(StepRunnerTest, AnOutcomeThatCannotBeRecordedIsMaybeApplied) {
  Step step = MakeStep("A");
  step.run = [this](const CallOptions&) {
    store_.FailNext(Error::NotApplied(Code::kUnavailable, "store is down"));
    return OkStatus();
  };
  const auto failure = Run(VolumeEvent::kSetUp, {step});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "RecordOutcome");
  EXPECT_TRUE(failure->error.maybe_applied());
  EXPECT_EQ(State(), "SettingUp*");
}

TEST_F(StepRunnerTest, AStepsFailureIsToldEvenIfItCannotBeRecorded) {
  Step step = MakeStep("A");
  step.run = [this](const CallOptions&) -> Status {
    store_.FailNext(Error::NotApplied(Code::kUnavailable, "store is down"));
    return kRefusal.About("Secret default/db");
  };
  const auto failure = Run(VolumeEvent::kSetUp, {step});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->step, "A");
  EXPECT_EQ(failure->error.code(), Code::kInvalidArgument);
  EXPECT_TRUE(failure->error.maybe_applied());
  EXPECT_TRUE(failure->error.IsAbout("Secret default/db"));
  EXPECT_NE(failure->error.message().find("refused; recording it failed too: "), std::string::npos);
}

TEST_F(StepRunnerTest, ProgressNamesTheStepThatRuns) {
  Step step = MakeStep("A");
  std::string seen;
  step.run = [&](const CallOptions&) {
    seen = progress_.step();
    return OkStatus();
  };
  EXPECT_FALSE(Run(VolumeEvent::kSetUp, {step}));
  EXPECT_EQ(seen, "A");
}

}  // namespace
}  // namespace volumed
