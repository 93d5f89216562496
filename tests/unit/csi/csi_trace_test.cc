// The calls of the last hour.
#include "csi/rpc/csi_trace.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

CsiCallReport Report(const std::string& driver, const char* rpc, const std::string& key) {
  CsiCallReport report;
  report.driver = driver;
  report.method = FindCsiMethod(rpc);
  report.key = key;
  return report;
}

class CsiTraceTest : public testing::Test {
 protected:
  static std::vector<std::string> KeysOf(const CsiTrace& trace, const std::string& driver = "d") {
    std::vector<std::string> keys;
    for (const CsiCallReport& report : trace.Of(driver)) keys.push_back(report.key);
    return keys;
  }

  ManualClock clock_;
};

using Keys = std::vector<std::string>;

TEST_F(CsiTraceTest, CallsAreToldInTheOrderInWhichTheyEnded) {
  CsiTrace trace(clock_);
  trace.CallEnded(Report("d", "NodeStageVolume", "1"));
  trace.CallEnded(Report("d", "NodeGetVolumeStats", "2"));
  trace.CallEnded(Report("d", "NodePublishVolume", "3"));
  EXPECT_EQ(KeysOf(trace), (Keys{"1", "2", "3"}));
}

TEST_F(CsiTraceTest, EachDriverHasItsOwn) {
  CsiTrace trace(clock_);
  trace.CallEnded(Report("b", "NodeStageVolume", "1"));
  trace.CallEnded(Report("a", "NodeStageVolume", "2"));
  EXPECT_EQ(trace.Drivers(), (Keys{"a", "b"}));
  EXPECT_EQ(KeysOf(trace, "b"), (Keys{"1"}));
  EXPECT_EQ(KeysOf(trace, "c"), Keys{});
  trace.Forget("b");
  EXPECT_EQ(trace.Drivers(), (Keys{"a"}));
}

TEST_F(CsiTraceTest, WhatIsOlderThanAnHourIsGone) {
  CsiTrace trace(clock_);
  trace.CallEnded(Report("d", "NodeStageVolume", "1"));
  trace.CallEnded(Report("d", "NodeGetVolumeStats", "2"));
  clock_.Advance(std::chrono::minutes(40));
  trace.CallEnded(Report("d", "NodeStageVolume", "3"));
  clock_.Advance(std::chrono::minutes(21));
  EXPECT_EQ(KeysOf(trace), (Keys{"3"}));
}

TEST_F(CsiTraceTest, ManyQuestionsThatWentWellPushNothingElseOut) {
  CsiTraceLimits limits;
  limits.quiet_calls = 3;
  CsiTrace trace(clock_, limits);
  trace.CallEnded(Report("d", "NodeStageVolume", "stage"));
  CsiCallReport failed = Report("d", "NodeGetVolumeStats", "failed");
  failed.error = Error::NotApplied(Code::kNotFound, "gone");
  trace.CallEnded(failed);
  for (int i = 0; i < 10; ++i) {
    trace.CallEnded(Report("d", "NodeGetVolumeStats", std::to_string(i)));
  }
  EXPECT_EQ(KeysOf(trace), (Keys{"stage", "failed", "7", "8", "9"}));
}

TEST_F(CsiTraceTest, ItIsBoundedInCalls) {
  CsiTraceLimits limits;
  limits.calls = 2;
  CsiTrace trace(clock_, limits);
  for (int i = 0; i < 5; ++i) {
    trace.CallEnded(Report("d", "NodeStageVolume", std::to_string(i)));
  }
  EXPECT_EQ(KeysOf(trace), (Keys{"3", "4"}));
}

TEST_F(CsiTraceTest, ItIsBoundedInBytes) {
  CsiTraceLimits limits;
  limits.bytes = 10'000;
  CsiTrace trace(clock_, limits);
  for (int i = 0; i < 20; ++i) {
    CsiCallReport report = Report("d", i % 2 == 0 ? "NodeStageVolume" : "Probe", "");
    report.request = std::string(2000, 'x');
    trace.CallEnded(report);
  }
  size_t bytes = 0;
  for (const CsiCallReport& report : trace.Of("d")) bytes += report.request.size();
  EXPECT_LE(bytes, limits.bytes);
  EXPECT_GE(bytes, limits.bytes / 2);
  // One that is larger than all is not kept at all.
  CsiCallReport huge = Report("d", "NodeStageVolume", "");
  huge.request = std::string(20'000, 'x');
  trace.CallEnded(huge);
  for (const CsiCallReport& report : trace.Of("d")) EXPECT_LE(report.request.size(), 2000u);
}

TEST_F(CsiTraceTest, ItIsBoundedInDriversAndForgetsTheOneThatIsSilentLongest) {
  CsiTraceLimits limits;
  limits.drivers = 2;
  CsiTrace trace(clock_, limits);
  for (const char* driver : {"a", "b", "a", "c"}) {
    trace.CallEnded(Report(driver, "Probe", ""));
    clock_.Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(trace.Drivers(), (Keys{"a", "c"}));
}

}  // namespace
}  // namespace volumed
