// The calls of the last hour.
#include "csi/rpc/csi_trace.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "csi.pb.h"
#include "csi/rpc/csi_methods.h"

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

TEST_F(CsiTraceTest, ACallThatWasSentIsUnderWayUntilItHasEnded) {
  CsiTrace trace(clock_);
  CsiCallReport first = Report("d", "NodeStageVolume", "first");
  const CsiCallReport second = Report("d", "NodeStageVolume", "second");
  const CsiCallReport others = Report("e", "NodeStageVolume", "others");
  trace.CallSent(first);
  trace.CallSent(others);
  clock_.Advance(std::chrono::seconds(20));
  trace.CallSent(second);
  std::vector<CsiCallReport> calls = trace.Of("d");
  ASSERT_EQ(KeysOf(trace), (Keys{"first", "second"}));
  EXPECT_TRUE(calls[0].under_way);
  EXPECT_EQ(calls[0].duration, std::chrono::seconds(20));
  EXPECT_EQ(calls[1].duration, Duration::zero());
  first.duration = std::chrono::seconds(21);
  trace.CallEnded(first);
  calls = trace.Of("d");
  ASSERT_EQ(KeysOf(trace), (Keys{"first", "second"}));
  EXPECT_FALSE(calls[0].under_way);
  EXPECT_EQ(calls[0].duration, std::chrono::seconds(21));
  EXPECT_TRUE(calls[1].under_way);
}

TEST_F(CsiTraceTest, WhatTheNodeShowedIsSaidOfTheLastCallOfThatRpcAndVolumeAlone) {
  CsiTrace trace(clock_);
  trace.CallEnded(Report("d", "NodePublishVolume", "v"));
  trace.CallEnded(Report("d", "NodePublishVolume", "v"));
  trace.CallEnded(Report("d", "NodePublishVolume", "w"));
  trace.CallEnded(Report("d", "NodeStageVolume", "v"));
  trace.Lied("d", "NodePublishVolume", "v", "nothing is mounted");
  trace.Lied("d", "NodeGetVolumeStats", "v", "no such call is kept");
  trace.Lied("nobody", "NodePublishVolume", "v", "nor such a driver");
  std::vector<std::string> found;
  for (const CsiCallReport& report : trace.Of("d")) found.push_back(report.not_true);
  EXPECT_EQ(found, (Keys{"", "nothing is mounted", "", ""}));
}

TEST_F(CsiTraceTest, ALieAboutAVolumeWithALongNameIsSaidOfItsCall) {
  CsiTrace trace(clock_);
  const std::string handle(400, 'h');
  ::csi::v1::NodePublishVolumeRequest request;
  request.set_volume_id(handle);
  const CsiMethod* const method = FindCsiMethod("NodePublishVolume");
  trace.CallEnded(Report("d", "NodePublishVolume", CsiKeyOf(*method, request)));
  trace.Lied("d", "NodePublishVolume", handle, "nothing is mounted");
  EXPECT_EQ(trace.Of("d").at(0).not_true, "nothing is mounted");
}

}  // namespace
}  // namespace volumed
