// Operations that wait for their lanes: an executor in simulated time, and fault domains that are
// as a test says.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/simulated_scheduler.h"
#include "operation/operation_executor.h"
#include "operation/operation_lanes.h"
#include "operation/operation_settings.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/test_domains.h"

namespace volumed {

class OperationLanesTest : public ::testing::Test {
 protected:
  static constexpr LaneLimits kLimits{.places = 8, .per_lane = 2, .own_lane = 3};

  static PodVolumeKey Of(int pod) {
    return {PodUid("uid-" + std::to_string(pod)), SpecName("data")};
  }
  // An operation that goes on until End().
  void Start(int pod, const std::string& domain, bool takes_away = false, bool with_many = false) {
    OperationTraits traits = TraitsFor(pod, domain, takes_away);
    traits.with_many = with_many;
    ASSERT_EQ(Start(pod, traits), StartResult::kStarted);
  }
  static OperationTraits TraitsFor(int pod, const std::string& domain, bool takes_away) {
    return {.key = Of(pod),
            .name = takes_away ? "volume_unmount" : "volume_mount",
            .plugin_name = "test.io/p",
            .pod_display_name = "default/web",
            .domain = {domain, domain == "nfs:nas" ? "NFS server nas" : ""},
            .on_own_filesystem = domain.empty(),
            .takes_away = takes_away};
  }
  StartResult Start(int pod, const OperationTraits& traits) {
    return executor_->Start(
        traits,
        [this, pod](OperationProgress&) -> std::optional<OperationFailure> {
          begun_.push_back(pod);
          return fails_ ? std::optional(OperationFailure{"any", "Step", *fails_}) : std::nullopt;
        },
        [this, pod](const std::optional<OperationFailure>& failure) {
          ended_[pod] = failure ? failure->error.message() : "done";
          steps_[pod] = failure ? failure->step : "";
        });
  }
  void RunAll() { scheduler_.RunFor(Duration::zero()); }
  std::string WaitText(int pod) const {
    for (const RunningOperation& operation : executor_->Running()) {
      if (operation.key == OperationKey(Of(pod)) && operation.waits_for) {
        return operation.step + ": " + operation.waits_for->text +
               (operation.waits_for->does_not_answer ? " (hangs)" : "");
      }
    }
    return "";
  }
  void Hangs(const std::string& lane, int lost) {
    domains_.health[lane] = {.lost = lost, .silent_since = scheduler_.clock().Now()};
  }

  SimulatedScheduler scheduler_{1};
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  TestDomains domains_;
  std::unique_ptr<OperationExecutor> executor_ =
      std::make_unique<OperationExecutor>(scheduler_, logger_, observer_, &domains_, kLimits);
  std::optional<Error> fails_;
  std::vector<int> begun_;
  std::map<int, std::string> ended_;
  std::map<int, std::string> steps_;  // in which those failed that have ended
};

}  // namespace volumed
