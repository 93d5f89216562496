#include "csi/csi_metrics.h"

#include "csi/csi_health.h"
#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

using Usage1 = ::csi::v1::VolumeUsage;
using Stats = ::csi::v1::NodeGetVolumeStatsResponse;

void AddUsage(Stats& answer, Usage1::Unit unit, int64_t total, int64_t used, int64_t available) {
  auto& usage = *answer.add_usage();
  usage.set_unit(unit);
  usage.set_total(total);
  usage.set_used(used);
  usage.set_available(available);
}

TEST(CsiFiguresTest, WhatTheDriverSaysIsThereAndNothingElse) {
  Stats answer;
  AddUsage(answer, Usage1::BYTES, 100, 40, 55);
  const Metrics bytes = Must(FiguresOf(answer));
  EXPECT_EQ(bytes.capacity_bytes, 100);
  EXPECT_EQ(bytes.used_bytes, 40);
  EXPECT_EQ(bytes.available_bytes, 55);
  EXPECT_EQ(bytes.inodes, std::nullopt);
  EXPECT_EQ(bytes.inodes_used, std::nullopt);
  EXPECT_EQ(bytes.inodes_free, std::nullopt);
  AddUsage(answer, Usage1::INODES, 10, 10, 0);
  const Metrics both = Must(FiguresOf(answer));
  EXPECT_EQ(both.used_bytes, 40);
  EXPECT_EQ(both.inodes, 10);
  EXPECT_EQ(both.inodes_used, 10);
  EXPECT_EQ(both.inodes_free, 0);
}

TEST(CsiFiguresTest, OfARawDeviceTheSizeAloneIsKnown) {
  Stats answer;
  AddUsage(answer, Usage1::BYTES, 100, 0, 0);
  const Metrics metrics = Must(FiguresOf(answer));
  EXPECT_EQ(metrics.capacity_bytes, 100);
  EXPECT_EQ(metrics.used_bytes, std::nullopt);
  EXPECT_EQ(metrics.available_bytes, std::nullopt);
}

TEST(CsiFiguresTest, AnUnknownTotalAndAnUnknownUnitArePassedOver) {
  Stats answer;
  AddUsage(answer, Usage1::INODES, 0, 7, 0);
  AddUsage(answer, static_cast<Usage1::Unit>(17), -1, -1, -1);
  const Metrics metrics = Must(FiguresOf(answer));
  EXPECT_EQ(metrics.inodes, std::nullopt);
  EXPECT_EQ(metrics.inodes_used, 7);
  EXPECT_EQ(metrics.capacity_bytes, std::nullopt);
}

TEST(CsiFiguresTest, FiguresThatCannotBeAreRefused) {
  const struct {
    Usage1::Unit unit;
    int64_t total, used, available;
    const char* why;
  } cases[] = {
      {Usage1::BYTES, -1, 0, 0, "there are -1 bytes"},
      {Usage1::BYTES, 100, -5, 0, "-5 bytes are used"},
      {Usage1::INODES, 100, 0, -5, "-5 inodes are left"},
      {Usage1::BYTES, 100, 101, 0, "101 bytes are used of 100"},
      {Usage1::INODES, 100, 0, 101, "101 inodes are left of 100"},
      {Usage1::UNKNOWN, 100, 1, 1, "they are of no unit"},
  };
  for (const auto& c : cases) {
    Stats answer;
    AddUsage(answer, c.unit, c.total, c.used, c.available);
    const auto metrics = FiguresOf(answer);
    ASSERT_FALSE(metrics.ok()) << c.why;
    EXPECT_EQ(metrics.error().message(), c.why);
    EXPECT_EQ(metrics.error().code(), Code::kInternal);
    EXPECT_EQ(metrics.error().outcome(), Outcome::kNotApplied);
  }
}

TEST(CsiHealthTest, AConditionIsAbnormalIfAnythingIsWrong) {
  ::csi::v1::VolumeHealth health;
  EXPECT_EQ(ConditionOf(health), (CsiCondition{false, ""}));
  auto* first = health.add_health_statuses();
  first->set_status(::csi::v1::DATA_LOSS);
  first->set_reason("DiskFailure");
  first->set_message("two disks are gone");
  health.add_health_statuses()->set_status(static_cast<::csi::v1::VolumeHealthErrorType>(77));
  EXPECT_EQ(ConditionOf(health),
            (CsiCondition{true, "DATA_LOSS: DiskFailure: two disks are gone; 77"}));
}

TEST(CsiHealthTest, ADriversWordsAreKeptShortAndPrintable) {
  ::csi::v1::VolumeHealth health;
  for (int i = 0; i < 1000; ++i) {
    health.add_health_statuses()->set_message(std::string(1000, 'x') + "\x1b[2J");
  }
  const CsiCondition condition = ConditionOf(health);
  EXPECT_TRUE(condition.abnormal);
  EXPECT_LE(condition.message.size(), 2048u);
  Stats answer;
  EXPECT_EQ(ConditionOf(answer), std::nullopt);
  answer.mutable_volume_condition()->set_message("\x1b[2J gone");
  EXPECT_EQ(ConditionOf(answer)->message, "\\x1b[2J gone");
}

std::string TextOf(const ExportedFamilies& families) {
  std::string text;
  families.AppendTo(text);
  return text;
}

class CsiMetricsTest : public CsiPluginFixture {
 protected:
  Result<Metrics> Measure() {
    CallOptions call;
    call.deadline = Deadline::After(clock_, seconds(30));
    Result<Metrics> metrics =
        CsiMetrics(*context_, kName, kHandle, Target(CsiSpec())).GetMetrics(call);
    scheduler_.RunFor(milliseconds(1));
    return metrics;
  }
  void SayFigures(bool abnormal = false) {
    Stats answer;
    AddUsage(answer, Usage1::BYTES, 100, 40, 60);
    answer.mutable_volume_condition()->set_abnormal(abnormal);
    answer.mutable_volume_condition()->set_message("it creaks");
    process_->Answer("NodeGetVolumeStats", answer);
  }
};

TEST_F(CsiMetricsTest, AVolumeIsMeasuredByItsDriver) {
  ServeNode({NodeCapability::GET_VOLUME_STATS});
  SayFigures();
  const Metrics metrics = Must(Measure());
  EXPECT_EQ(metrics.used_bytes, 40);
  EXPECT_EQ(metrics.time_unix_ms, clock_.WallUnixMillis() - 1);
  // Without VOLUME_CONDITION, what is said of it counts for nothing.
  EXPECT_EQ(metrics.abnormal, std::nullopt);
  EXPECT_EQ(process_->calls("NodeGetVolumeStats"), 1);
  EXPECT_EQ(process_->calls("NodeGetVolumeHealth"), 0);
}

TEST_F(CsiMetricsTest, AConditionComesWithTheFigures) {
  ServeNode({NodeCapability::GET_VOLUME_STATS, NodeCapability::VOLUME_CONDITION});
  SayFigures(/*abnormal=*/true);
  const Metrics metrics = Must(Measure());
  EXPECT_EQ(metrics.abnormal, true);
  EXPECT_EQ(metrics.message, "it creaks");
}

TEST_F(CsiMetricsTest, HealthIsAskedForAtItsLevelAlone) {
  ServeNode({NodeCapability::GET_VOLUME_STATS, NodeCapability::GET_VOLUME_HEALTH});
  SayFigures();
  ::csi::v1::NodeGetVolumeHealthResponse sick;
  sick.mutable_volume_health()->add_health_statuses()->set_status(::csi::v1::DEGRADED);
  process_->Answer("NodeGetVolumeHealth", sick);
  EXPECT_EQ(Must(Measure()).abnormal, std::nullopt);
  EXPECT_EQ(process_->calls("NodeGetVolumeHealth"), 0);
  plugin_settings_.Set({.level = CsiLevel::k1_13});
  const Metrics metrics = Must(Measure());
  EXPECT_EQ(metrics.abnormal, true);
  EXPECT_EQ(metrics.message, "DEGRADED");
  EXPECT_EQ(metrics.used_bytes, 40);
  // To say nothing is not to say that all is well.
  process_->Answer("NodeGetVolumeHealth", ::csi::v1::NodeGetVolumeHealthResponse());
  EXPECT_FALSE(Measure().ok());
  EXPECT_EQ(lies_, std::vector<std::string>{std::string(kName) + " NodeGetVolumeHealth"});
}

TEST_F(CsiMetricsTest, WhatADriverCannotIsNotSupported) {
  ServeNode({});
  const auto metrics = Measure();
  ASSERT_FALSE(metrics.ok());
  EXPECT_TRUE(IsNotSupported(metrics.error()));
  EXPECT_EQ(metrics.error().message(),
            "metrics are not supported for " + std::string(kName) + " volumes");
}

TEST_F(CsiMetricsTest, ADriverThatIsGoneFailsAtOnce) {
  ServeNode({NodeCapability::GET_VOLUME_STATS});
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  const TimePoint before = clock_.Now();
  const auto metrics = Measure();
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().code(), Code::kUnavailable);
  EXPECT_EQ(metrics.error().outcome(), Outcome::kNotApplied);
  EXPECT_LE(clock_.Now() - before, milliseconds(1));
}

// By that VolumeStats tells a driver that does not answer from one that nobody could ask.
TEST_F(CsiMetricsTest, ADriverThatDoesNotAnswerIsToldByTheOutcome) {
  ServeNode({NodeCapability::GET_VOLUME_STATS});
  process_->Hang("NodeGetVolumeStats");
  const auto metrics = Measure();
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(metrics.error().outcome(), Outcome::kMaybeApplied);
}

TEST_F(CsiMetricsTest, SenselessFiguresAreALie) {
  ServeNode({NodeCapability::GET_VOLUME_STATS});
  Stats answer;
  AddUsage(answer, Usage1::BYTES, 100, 400, 0);
  process_->Answer("NodeGetVolumeStats", answer);
  const auto metrics = Measure();
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().outcome(), Outcome::kNotApplied);
  EXPECT_THAT(metrics.error().message(), testing::HasSubstr("400 bytes are used of 100"));
  EXPECT_EQ(lies_, std::vector<std::string>{std::string(kName) + " NodeGetVolumeStats"});
  process_->Answer("NodeGetVolumeStats", Stats());
  EXPECT_THAT(Measure().error().message(), testing::HasSubstr("usage is nil"));
}

TEST_F(CsiMetricsTest, MeasurementsCountUnderTheDriversName) {
  ServeNode({NodeCapability::GET_VOLUME_STATS});
  SayFigures();
  Must(Measure());
  EXPECT_THAT(TextOf(families_),
              testing::HasSubstr("kubelet_volume_metric_collection_duration_seconds_count{metric_"
                                 "source=\"disk.example.com\"} 1\n"));
}

class CsiStorageHealthTest : public CsiPluginFixture {
 protected:
  std::unique_ptr<CsiStorageHealth> Make() {
    return std::make_unique<CsiStorageHealth>(
        CsiStorageHealth::Parts{scheduler_, *drivers_, plugin_settings_, families_, log_},
        minutes(1));
  }
  void SaySick(const std::string& reason) {
    ::csi::v1::NodeGetStorageHealthResponse answer;
    auto& entry = *answer.add_backend_health();
    entry.set_status(::csi::v1::STORAGE_DEGRADED);
    entry.set_reason(reason);
    process_->Answer("NodeGetStorageHealth", answer);
  }
  std::string Series() {
    const std::string text = TextOf(families_);
    std::string lines;
    for (size_t at = text.find("\ncsi_node_storage_health_status{"); at != std::string::npos;
         at = text.find("\ncsi_node_storage_health_status{", at + 1)) {
      lines += text.substr(at + 1, text.find('\n', at + 1) - at);
    }
    return lines;
  }
};

TEST_F(CsiStorageHealthTest, WhatIsWrongIsShownAsLongAsTheDriverSaysIt) {
  ServeNode({NodeCapability::GET_STORAGE_HEALTH});
  plugin_settings_.Set({.level = CsiLevel::k1_13});
  SaySick("Rebuild");
  const auto health = Make();
  scheduler_.RunFor(seconds(61));
  EXPECT_EQ(process_->calls("NodeGetStorageHealth"), 1);
  EXPECT_EQ(Series(),
            "csi_node_storage_health_status{driver_name=\"disk.example.com\",reason=\"Rebuild\","
            "status=\"STORAGE_DEGRADED\"} 1\n");
  process_->Answer("NodeGetStorageHealth", ::csi::v1::NodeGetStorageHealthResponse());
  scheduler_.RunFor(seconds(60));
  EXPECT_EQ(Series(), "");
  SaySick("Rebuild");
  scheduler_.RunFor(seconds(60));
  EXPECT_NE(Series(), "");
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(61));
  EXPECT_EQ(Series(), "");
}

TEST_F(CsiStorageHealthTest, NobodyIsAskedBelowItsLevelOrWithoutTheCapability) {
  ServeNode({NodeCapability::GET_STORAGE_HEALTH});
  const auto health = Make();
  scheduler_.RunFor(minutes(3));
  EXPECT_EQ(process_->calls("NodeGetStorageHealth"), 0);
}

TEST_F(CsiStorageHealthTest, ADriverThatDoesNotAnswerIsNotAskedTwiceAtATime) {
  ServeNode({NodeCapability::GET_STORAGE_HEALTH});
  plugin_settings_.Set({.level = CsiLevel::k1_13, .deadline = minutes(10)});
  process_->Hang("NodeGetStorageHealth");
  const auto health = Make();
  scheduler_.RunFor(minutes(5));
  EXPECT_EQ(process_->calls("NodeGetStorageHealth"), 1);
}

}  // namespace
}  // namespace volumed
