#include "operation/operation_executor.h"

#include <gtest/gtest.h>

#include "base/simulated_scheduler.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/usual_errors.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OperationExecutorTest : public ::testing::Test {
 protected:
  StartResult Start(const PodVolumeKey& key, const std::string& name,
                    std::optional<Error> error = std::nullopt) {
    return executor_->Start(
        {.key = key, .name = name, .plugin_name = "test.io/p", .pod_display_name = "default/web"},
        [this, key, name, error](OperationProgress& progress) -> std::optional<OperationFailure> {
          progress.EnterStep("Step");
          if (in_body_) in_body_();
          trace_.push_back("run " + key.ToString());
          if (error) return OperationFailure{name, "Step", *error};
          return std::nullopt;
        },
        [this, key](const std::optional<OperationFailure>& failure) {
          EXPECT_TRUE(scheduler_.OnControlThread());
          trace_.push_back("done " + key.ToString() + (failure ? " failed" : ""));
        });
  }
  StartResult StartOn(const OperationKey& key, DeviceUse use) { return StartOn(key, use, device_); }
  StartResult StartOn(const OperationKey& key, DeviceUse use, const UniqueVolumeName& device) {
    return executor_->Start(
        {.key = key,
         .name = "any",
         .plugin_name = "test.io/p",
         .pod_display_name = "",
         .device = device,
         .use = use},
        [](OperationProgress&) { return std::optional<OperationFailure>(); },
        [](const std::optional<OperationFailure>&) {});
  }
  // Uses `device_`, if `use` says so, and `more`.
  StartResult StartOnAll(const std::string& key, DeviceUse use, std::set<UniqueVolumeName> more) {
    return executor_->Start(
        {.key = OperationKey(UniqueVolumeName(key)),
         .name = "cut",
         .plugin_name = "test.io/p",
         .pod_display_name = "",
         .device = device_,
         .use = use,
         .more_devices = std::move(more)},
        [](OperationProgress&) { return std::optional<OperationFailure>(); },
        [](const std::optional<OperationFailure>&) {});
  }
  // Starts and runs to the end.
  StartResult Run(const PodVolumeKey& key, const std::string& name,
                  std::optional<Error> error = std::nullopt) {
    const StartResult result = Start(key, name, error);
    scheduler_.RunFor(Duration::zero());
    return result;
  }
  std::optional<Duration> Wait(const PodVolumeKey& key) const {
    const auto next = executor_->NextTry(key);
    if (!next) return std::nullopt;
    return *next - scheduler_.clock().Now();
  }

  const UniqueVolumeName device_{"test.io/p/disk"};
  const PodVolumeKey data_ = Key("uid-1", "data");
  const PodVolumeKey logs_ = Key("uid-1", "logs");
  const PodVolumeKey pod_ = Key("uid-1", "");
  const PodVolumeKey other_ = Key("uid-2", "data");
  SimulatedScheduler scheduler_{1};
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  std::unique_ptr<OperationExecutor> executor_ =
      std::make_unique<OperationExecutor>(scheduler_, logger_, observer_);
  std::function<void()> in_body_;
  std::vector<std::string> trace_;
};

TEST_F(OperationExecutorTest, WhomAStepAwaitsEndsWithTheStep) {
  OperationProgress progress(scheduler_.clock());
  progress.EnterStep("MountDevice");
  EXPECT_EQ(progress.awaited().whom, "");
  progress.SetAwaited("CSI driver x: NodeStageVolume");
  EXPECT_EQ(progress.awaited().whom, "CSI driver x: NodeStageVolume");
  EXPECT_EQ(progress.awaited().since_unix_ms, scheduler_.clock().WallUnixMillis());
  progress.EnterStep("RecordOutcome");
  EXPECT_EQ(progress.awaited().whom, "");
}

TEST_F(OperationExecutorTest, RunsOffTheControlThreadAndReportsOnIt) {
  in_body_ = [this] { EXPECT_FALSE(scheduler_.OnControlThread()); };
  EXPECT_EQ(Start(data_, "volume_mount"), StartResult::kStarted);
  EXPECT_TRUE(trace_.empty());
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(trace_, (std::vector<std::string>{"run uid-1/data", "done uid-1/data"}));
  EXPECT_FALSE(executor_->IsPending(data_));
}

TEST_F(OperationExecutorTest, OneOperationPerVolumeOfAPod) {
  EXPECT_EQ(Start(data_, "volume_mount"), StartResult::kStarted);
  EXPECT_EQ(Start(data_, "volume_mount"), StartResult::kPending);
  EXPECT_EQ(Start(data_, "volume_unmount"), StartResult::kPending);
  EXPECT_EQ(Start(logs_, "volume_mount"), StartResult::kStarted);
  EXPECT_EQ(Start(other_, "volume_mount"), StartResult::kStarted);
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(trace_.size(), 6u);
  EXPECT_EQ(Start(data_, "volume_unmount"), StartResult::kStarted);
}

TEST_F(OperationExecutorTest, NothingRunsBesideTheMountOrUnmountOfItsDevice) {
  EXPECT_EQ(StartOn(OperationKey(device_), DeviceUse::kExclusive), StartResult::kStarted);
  EXPECT_TRUE(executor_->IsPending(OperationKey(device_)));
  EXPECT_EQ(StartOn(OperationKey(device_), DeviceUse::kExclusive), StartResult::kPending);
  EXPECT_EQ(StartOn(data_, DeviceUse::kExclusive), StartResult::kPending);
  EXPECT_EQ(StartOn(data_, DeviceUse::kShared), StartResult::kPending);
  EXPECT_EQ(Start(logs_, "volume_mount"), StartResult::kStarted);  // of another volume
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(StartOn(data_, DeviceUse::kShared), StartResult::kStarted);
  EXPECT_EQ(StartOn(other_, DeviceUse::kShared), StartResult::kStarted);  // two unmounts of pods
  EXPECT_EQ(StartOn(OperationKey(device_), DeviceUse::kExclusive), StartResult::kPending);
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(StartOn(data_, DeviceUse::kExclusive), StartResult::kStarted);
  EXPECT_EQ(StartOn(other_, DeviceUse::kExclusive), StartResult::kPending);  // binds, one by one
}

TEST_F(OperationExecutorTest, WhatGaveUpItsWaitUsesItsDeviceNoMore) {
  executor_->SetLimits({.places = 64, .per_lane = 4, .own_lane = 64, .unbound = 1});
  EXPECT_EQ(StartOn(other_, DeviceUse::kShared, UniqueVolumeName("test.io/p/else")),
            StartResult::kStarted);
  EXPECT_EQ(StartOn(data_, DeviceUse::kExclusive), StartResult::kStarted);  // and waits
  EXPECT_EQ(StartOn(OperationKey(device_), DeviceUse::kExclusive), StartResult::kPending);
  executor_->GiveUpWaiting(data_);
  EXPECT_EQ(StartOn(OperationKey(device_), DeviceUse::kExclusive), StartResult::kStarted);
}

TEST_F(OperationExecutorTest, AnOperationHasAllOfItsDevicesForItself) {
  const UniqueVolumeName second("test.io/p/second");
  EXPECT_EQ(StartOnAll("cut/1", DeviceUse::kExclusive, {device_, second}), StartResult::kStarted);
  EXPECT_EQ(StartOn(data_, DeviceUse::kShared), StartResult::kPending);
  EXPECT_EQ(StartOn(other_, DeviceUse::kShared, second), StartResult::kPending);
  EXPECT_EQ(StartOnAll("cut/2", DeviceUse::kNone, {second}), StartResult::kPending);
  ASSERT_TRUE(executor_->FindOwner(second));
  EXPECT_EQ(executor_->FindOwner(second)->key.ToString(), "cut/1");
  scheduler_.RunFor(Duration::zero());
  EXPECT_FALSE(executor_->FindOwner(second));
  EXPECT_EQ(StartOn(data_, DeviceUse::kShared), StartResult::kStarted);
  EXPECT_EQ(StartOn(other_, DeviceUse::kExclusive, second), StartResult::kStarted);
}

TEST_F(OperationExecutorTest, AnOperationThatCannotHaveAllOfItsDevicesHasNone) {
  const UniqueVolumeName second("test.io/p/second");
  const UniqueVolumeName third("test.io/p/third");
  EXPECT_EQ(StartOn(data_, DeviceUse::kShared, third), StartResult::kStarted);
  EXPECT_EQ(StartOnAll("cut/1", DeviceUse::kExclusive, {second, third}), StartResult::kPending);
  EXPECT_EQ(StartOn(other_, DeviceUse::kExclusive), StartResult::kStarted);
  EXPECT_EQ(StartOn(logs_, DeviceUse::kExclusive, second), StartResult::kStarted);
}

TEST_F(OperationExecutorTest, ADeviceThatAnOperationSharesIsItsAloneIfItIsAmongTheOthers) {
  EXPECT_EQ(StartOnAll("cut/1", DeviceUse::kShared, {device_}), StartResult::kStarted);
  EXPECT_EQ(StartOn(data_, DeviceUse::kShared), StartResult::kPending);
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(StartOn(data_, DeviceUse::kExclusive), StartResult::kStarted);
}

// Each has a device of its own, and all run at once: what one costs must not grow with the others.
TEST_F(OperationExecutorTest, AStartCostsAsMuchWithFourTimesTheOperations) {
  constexpr int kFew = 100;
  double cost[2] = {};
  for (const int count : {kFew, 4 * kFew}) {
    executor_ = std::make_unique<OperationExecutor>(scheduler_, logger_, observer_);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      EXPECT_EQ(StartOn(Key("pod-" + number, "data"), DeviceUse::kExclusive,
                        UniqueVolumeName("test.io/p/" + number)),
                StartResult::kStarted);
    }
    EXPECT_EQ(executor_->Running().size(), static_cast<size_t>(count));
    cost[count == kFew ? 0 : 1] = static_cast<double>(executor_->work().visited());
  }
  EXPECT_GT(cost[0], 0);
  EXPECT_LE(cost[1], 4.2 * cost[0]);
  EXPECT_LE(cost[1], 3 * 4 * kFew) << "one start looks at few";
}

TEST_F(OperationExecutorTest, ThePodExcludesItsVolumesBothWays) {
  EXPECT_EQ(Start(data_, "volume_unmount"), StartResult::kStarted);
  EXPECT_EQ(Start(pod_, "pod_remove"), StartResult::kPending);
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(Start(pod_, "pod_remove"), StartResult::kStarted);
  EXPECT_TRUE(executor_->IsPending(data_));
  EXPECT_EQ(Start(logs_, "volume_mount"), StartResult::kPending);
  EXPECT_EQ(Start(other_, "volume_mount"), StartResult::kStarted);
}

TEST_F(OperationExecutorTest, BacksOffFromHalfASecondDoublingToTwoMinutesTwo) {
  const std::vector<Duration> expected = {milliseconds(500), seconds(1),  seconds(2),  seconds(4),
                                          seconds(8),        seconds(16), seconds(32), seconds(64),
                                          seconds(122),      seconds(122)};
  for (const Duration delay : expected) {
    ASSERT_EQ(Run(data_, "volume_mount", kRefusal), StartResult::kStarted);
    ASSERT_EQ(Wait(data_), delay);
    EXPECT_EQ(Run(data_, "volume_mount"), StartResult::kBackoff);
    scheduler_.RunFor(delay - milliseconds(1));
    EXPECT_EQ(Run(data_, "volume_mount"), StartResult::kBackoff);
    scheduler_.RunFor(milliseconds(1));
    EXPECT_EQ(Wait(data_), std::nullopt);
  }
  // Nobody else waited, and success forgets.
  EXPECT_EQ(Run(logs_, "volume_mount"), StartResult::kStarted);
  EXPECT_EQ(Run(data_, "volume_mount"), StartResult::kStarted);
  EXPECT_EQ(Run(data_, "volume_mount", kRefusal), StartResult::kStarted);
  EXPECT_EQ(Wait(data_), milliseconds(500));
}

TEST_F(OperationExecutorTest, EachErrorClassGrowsItsOwnDelay) {
  EXPECT_EQ(Run(data_, "volume_mount", kRefusal), StartResult::kStarted);
  scheduler_.RunFor(milliseconds(500));
  EXPECT_EQ(Run(data_, "volume_mount", kRefusal), StartResult::kStarted);
  EXPECT_EQ(Wait(data_), seconds(1));
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Run(data_, "volume_mount", kTimedOut), StartResult::kStarted);
  EXPECT_EQ(Wait(data_), milliseconds(500));
}

TEST_F(OperationExecutorTest, AnEventOrAnotherOperationForgetsTheBackoff) {
  Run(data_, "volume_mount", kRefusal);
  executor_->ResetBackoff(data_);
  EXPECT_EQ(Wait(data_), std::nullopt);
  EXPECT_EQ(Run(data_, "volume_mount", kRefusal), StartResult::kStarted);
  EXPECT_EQ(Run(data_, "volume_unmount"), StartResult::kStarted);
  EXPECT_EQ(Run(data_, "volume_mount"), StartResult::kStarted);
}

TEST_F(OperationExecutorTest, ARemovedPodLeavesNoBackoffBehind) {
  Run(data_, "volume_unmount", kRefusal);
  Run(logs_, "volume_unmount", kRefusal);
  Run(other_, "volume_unmount", kRefusal);
  Run(pod_, "pod_remove");
  EXPECT_EQ(Wait(data_), std::nullopt);
  EXPECT_EQ(Wait(logs_), std::nullopt);
  EXPECT_TRUE(Wait(other_));
}

TEST_F(OperationExecutorTest, ShowsWhatRuns) {
  std::vector<RunningOperation> seen;
  in_body_ = [&] { seen = executor_->Running(); };
  const int64_t start = scheduler_.clock().WallUnixMillis();
  Run(data_, "volume_mount");
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].key, data_);
  EXPECT_EQ(seen[0].operation, "volume_mount");
  EXPECT_EQ(seen[0].step, "Step");
  EXPECT_EQ(seen[0].since_unix_ms, start);
  EXPECT_TRUE(executor_->Running().empty());
}

TEST_F(OperationExecutorTest, LogsAndReportsEachOperationOnce) {
  in_body_ = [this] { scheduler_.manual_clock().Advance(milliseconds(1500)); };
  Run(data_, "volume_mount", kTimedOut);
  Run(logs_, "volume_mount");
  ASSERT_EQ(log_.lines.size(), 2u);
  for (const char* field :
       {"pod=default/web", "volume=data", "plugin=test.io/p", "operation=volume_mount", "step=Step",
        "outcome=", "elapsed_ms=1500", "no answer"}) {
    EXPECT_NE(log_.lines[0].find(field), std::string::npos) << field << "\n" << log_.lines[0];
  }
  EXPECT_NE(log_.lines[1].find("outcome=done"), std::string::npos);
  ASSERT_EQ(observer_.finished.size(), 2u);
  EXPECT_EQ(observer_.finished[0].elapsed, milliseconds(1500));
  ASSERT_TRUE(observer_.finished[0].failure);
  EXPECT_EQ(observer_.finished[0].failure->error, kTimedOut);
  EXPECT_FALSE(observer_.finished[1].failure);
}

TEST_F(OperationExecutorTest, AnOperationThatEndsAfterTheExecutorIsNotReported) {
  Start(data_, "volume_mount");
  executor_.reset();
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(trace_, (std::vector<std::string>{"run uid-1/data"}));
  EXPECT_TRUE(observer_.finished.empty());
}

TEST_F(OperationExecutorTest, ACompletionMayStartTheNextOperationOfItsKey) {
  StartResult again = StartResult::kPending;
  executor_->Start(
      {.key = data_, .name = "volume_mount", .plugin_name = "", .pod_display_name = ""},
      [](OperationProgress&) { return std::nullopt; },
      [&](const std::optional<OperationFailure>&) { again = Start(data_, "volume_unmount"); });
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(again, StartResult::kStarted);
}

}  // namespace
}  // namespace volumed
