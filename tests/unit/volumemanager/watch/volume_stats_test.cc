#include "volumemanager/watch/volume_stats.h"

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

class VolumeStatsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::unique_ptr<VolumePlugin>> made;
    made.push_back(std::make_unique<FakePlugin>("kubernetes.io/empty-dir", "emptyDir", script_));
    made.push_back(std::make_unique<FakePlugin>("test.io/driven", "iscsi", script_));
    ASSERT_TRUE(plugins_.InitPlugins(std::move(made), host_).ok());
    script_->answer = [this](const SpecName& spec, const CallOptions& call) -> Result<Metrics> {
      ++measured_[spec.str()];
      given_ = call.deadline.Remaining(clock_);
      clock_.Advance(takes_);
      EXPECT_FALSE(call.domain.empty()) << "it would block the lane of mounts";
      EXPECT_TRUE(call.key.empty()) << "it would lock the volume";
      if (hung_.contains(spec.str())) {
        return Error::MaybeApplied(Code::kDeadlineExceeded, "no answer");
      }
      if (failing_.contains(spec.str())) return Error::NotApplied(Code::kInternal, "broken");
      if (spec.str() == "none") return NewNotSupportedError();
      Metrics metrics;
      metrics.used_bytes = 42;
      return metrics;
    };
  }
  std::unique_ptr<VolumeStats> Make(VolumeStatsSettings settings = {}) {
    return std::make_unique<VolumeStats>(
        VolumeStats::Parts{scheduler_, plugins_, paths_, log_, measures_together_}, settings,
        hooks_);
  }
  static PodVolumeKey Key(const std::string& spec) { return {PodUid("a"), SpecName(spec)}; }
  void Track(VolumeStats& stats, const std::string& spec) {
    stats.Track(Key(spec), VolumeSpec::FromVolume({spec, EmptyDirVolumeSource{}}), pod_);
  }

  ManualClock clock_;
  SimulatedScheduler scheduler_{3, clock_};
  Logger log_{LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [](LogLevel, std::string_view) {}},
              clock_};
  StubKernel kernel_;
  FakeHostParts parts_;
  KubeletPaths paths_{"/r"};
  ExportedFamilies families_;
  FakeIrreversibleSteps irreversible_;
  VolumeHost host_{paths_, kernel_, clock_,    parts_,       parts_,
                   parts_, parts_,  families_, irreversible_};
  VolumePluginMgr plugins_;
  PodPtr pod_ = std::make_shared<const Pod>();
  std::shared_ptr<FakePlugin::MetricsScript> script_ =
      std::make_shared<FakePlugin::MetricsScript>();
  std::map<std::string, int> measured_;
  std::set<std::string> hung_, failing_;
  Duration takes_{};
  Duration given_{};  // to the last measurement
  Kernel* measures_together_ = nullptr;
  VolumeStats::Hooks hooks_;
};

TEST_F(VolumeStatsTest, MeasuresSoonAndThenOnceInOneToTwoPeriods) {
  auto stats = Make();
  Track(*stats, "v");
  scheduler_.RunFor(seconds(6));
  ASSERT_EQ(measured_["v"], 1);
  EXPECT_EQ(stats->Find(Key("v"))->metrics.used_bytes, 42);
  EXPECT_TRUE(stats->Find(Key("v"))->measured);
  EXPECT_LE(stats->Find(Key("v"))->metrics.time_unix_ms, clock_.WallUnixMillis());
  scheduler_.RunFor(seconds(54));
  EXPECT_EQ(measured_["v"], 1);
  scheduler_.RunFor(seconds(1200));
  EXPECT_GE(measured_["v"], 10);
  EXPECT_LE(measured_["v"], 21);
}

TEST_F(VolumeStatsTest, WhatIsNotTrueAnyMoreIsMeasuredAtOnce) {
  auto stats = Make();
  Track(*stats, "v");
  Track(*stats, "none");
  scheduler_.RunFor(seconds(7));
  ASSERT_EQ(measured_["v"], 1);
  ASSERT_EQ(measured_["none"], 1);
  for (const char* volume : {"v", "none", "unknown"}) stats->MeasureNow(Key(volume));
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(measured_["v"], 2);
  EXPECT_EQ(measured_["none"], 1) << "it has no metrics";
  EXPECT_EQ(measured_.count("unknown"), 0u);
}

// What had been asked before a volume grew was shown until it was measured in its turn.
TEST_F(VolumeStatsTest, FiguresOfBeforeAGrowthCountedAsThoseAfterIt) {
  auto stats = Make();
  const auto measure = script_->answer;
  script_->answer = [&](const SpecName& spec, const CallOptions& call) {
    if (measured_[spec.str()] == 0) stats->MeasureNow(Key(spec.str()));
    return measure(spec, call);
  };
  Track(*stats, "v");
  scheduler_.RunFor(seconds(7));
  EXPECT_EQ(measured_["v"], 2);
}

TEST_F(VolumeStatsTest, ANewPeriodCountsAtOnceAndSoDoesANewDeadline) {
  VolumeStatsSettings settings;
  settings.period = std::chrono::hours(1);
  settings.deadline = seconds(5);
  auto stats = Make(settings);
  Track(*stats, "v");
  Track(*stats, "none");
  scheduler_.RunFor(std::chrono::minutes(7));
  ASSERT_EQ(measured_["v"], 1);
  EXPECT_EQ(given_, seconds(5));
  stats->SetTimes(seconds(10), seconds(3));
  scheduler_.RunFor(seconds(10));
  EXPECT_EQ(measured_["v"], 2);
  EXPECT_EQ(given_, seconds(3));
  scheduler_.RunFor(seconds(100));
  EXPECT_GE(measured_["v"], 6);
  EXPECT_EQ(measured_["none"], 1);
  const int before = measured_["v"];
  stats->SetTimes(std::chrono::hours(10), seconds(3));
  scheduler_.RunFor(std::chrono::hours(10));
  EXPECT_GE(measured_["v"], before + 1);
  EXPECT_LE(measured_["v"], before + 2);
}

TEST_F(VolumeStatsTest, AFailureKeepsTheLastFigures) {
  auto stats = Make();
  Track(*stats, "v");
  scheduler_.RunFor(seconds(6));
  const int64_t measured_at = stats->Find(Key("v"))->metrics.time_unix_ms;
  failing_.insert("v");
  scheduler_.RunFor(seconds(130));
  const VolumeStatsEntry& entry = *stats->Find(Key("v"));
  EXPECT_EQ(entry.metrics.time_unix_ms, measured_at);
  EXPECT_EQ(entry.metrics.used_bytes, 42);
  EXPECT_EQ(entry.last_error->message(), "broken");
}

TEST_F(VolumeStatsTest, AVolumeWithoutMetricsIsAskedOnce) {
  auto stats = Make();
  Track(*stats, "none");
  scheduler_.RunFor(seconds(1000));
  EXPECT_EQ(measured_["none"], 1);
  EXPECT_FALSE(stats->Find(Key("none"))->supported);
}

TEST_F(VolumeStatsTest, NeverRunsMoreThanAllowedNorOneVolumeTwice) {
  VolumeStatsSettings settings;
  settings.max_running = 2;
  takes_ = seconds(1);  // so that all are due before a few are done
  auto stats = Make(settings);
  for (int i = 0; i < 30; ++i) Track(*stats, "v" + std::to_string(i));
  int highest = 0;
  const auto watch = [&] {
    highest = std::max(highest, stats->running());
    return false;
  };
  scheduler_.RunUntil(watch, seconds(120));
  EXPECT_EQ(highest, 2);
  for (int i = 0; i < 30; ++i) EXPECT_GE(measured_["v" + std::to_string(i)], 1) << i;
}

TEST_F(VolumeStatsTest, HungVolumesShareTheirOwnPlaces) {
  VolumeStatsSettings settings;
  settings.max_running = 2;
  auto stats = Make(settings);
  for (int i = 0; i < 10; ++i) {
    hung_.insert("h" + std::to_string(i));
    Track(*stats, "h" + std::to_string(i));
  }
  Track(*stats, "good");
  scheduler_.RunFor(seconds(600));
  EXPECT_GE(measured_["good"], 5);
  EXPECT_TRUE(stats->Find(Key("good"))->measured);
  EXPECT_EQ(stats->Find(Key("h0"))->last_error->code(), Code::kDeadlineExceeded);
}

TEST_F(VolumeStatsTest, ADriverThatMayHaveLearntToMeasureIsAskedOnceMoreForItsVolumesAlone) {
  bool can = false;
  script_->answer = [&](const SpecName& spec, const CallOptions&) -> Result<Metrics> {
    ++measured_[spec.str()];
    if (!can) return NewNotSupportedError();
    return Metrics();
  };
  auto stats = Make();
  for (const char* name : {"d-1", "e-1"}) {
    stats->Track(Key(name), VolumeSpec::FromVolume({name, IscsiVolumeSource{}}), pod_);
  }
  scheduler_.RunFor(seconds(600));
  ASSERT_EQ(measured_["d-1"], 1);
  can = true;
  stats->AskAgain("csi:d");
  scheduler_.RunFor(seconds(600));
  EXPECT_GT(measured_["d-1"], 2);
  EXPECT_TRUE(stats->Find(Key("d-1"))->measured);
  EXPECT_EQ(measured_["e-1"], 1);
}

// What of a driver's volumes is measured at a time, at most.
class DriverStatsTest : public VolumeStatsTest {
 protected:
  void SetUp() override {
    VolumeStatsTest::SetUp();
    script_->domain = "csi:disk.example.com";
    takes_ = seconds(1);  // so that all are due before a few are done
    settings_.max_running = 3;
    settings_.max_running_suspect = 3;
  }
  int Highest(const VolumeStats& stats, Duration time) {
    int highest = 0;
    scheduler_.RunUntil(
        [&] {
          highest = std::max(highest, stats.running());
          return false;
        },
        time);
    return highest;
  }
  void TrackMany(VolumeStats& stats) {
    for (int i = 0; i < 30; ++i) Track(stats, "v" + std::to_string(i));
  }
  VolumeStatsSettings settings_;
};

TEST_F(DriverStatsTest, VolumesOfADriverThatDoesNotAnswerAreAskedOneAtATime) {
  for (int i = 0; i < 30; ++i) hung_.insert("v" + std::to_string(i));
  auto stats = Make(settings_);
  TrackMany(*stats);
  EXPECT_EQ(Highest(*stats, seconds(300)), 1);
  hung_.clear();
  takes_ = std::chrono::milliseconds(500);
  EXPECT_GT(Highest(*stats, seconds(300)), 1);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(stats->Find(Key("v" + std::to_string(i)))->measured);
  hung_.insert("v0");
  scheduler_.RunUntil([&] { return stats->Find(Key("v0"))->last_error.has_value(); }, seconds(300));
  EXPECT_TRUE(stats->Find(Key("v0"))->last_error.has_value());
}

TEST_F(DriverStatsTest, TheOwnerMaySayThatADriverIsSilent) {
  bool silent = true;
  hooks_.may_ask = [&](const std::string& domain) {
    EXPECT_EQ(domain, "csi:disk.example.com");
    return !silent;
  };
  auto stats = Make(settings_);
  TrackMany(*stats);
  EXPECT_EQ(Highest(*stats, seconds(300)), 1);
  silent = false;
  takes_ = std::chrono::milliseconds(500);
  EXPECT_GT(Highest(*stats, seconds(300)), 1);
}

TEST_F(VolumeStatsTest, ThatAVolumeIsAbnormalIsToldWhenItChanges) {
  Metrics now;
  script_->answer = [&](const SpecName&, const CallOptions&) -> Result<Metrics> { return now; };
  std::vector<std::string> told;
  hooks_.abnormal = [&](const PodVolumeKey& key, const Metrics& metrics) {
    told.push_back(key.spec.str() + ": " + metrics.message);
  };
  auto stats = Make();
  Track(*stats, "v");
  const auto measure = [&](std::optional<bool> abnormal, const std::string& message) {
    now.abnormal = abnormal;
    now.message = message;
    scheduler_.RunFor(seconds(240));
    return std::exchange(told, {});
  };
  using Told = std::vector<std::string>;
  EXPECT_EQ(measure(std::nullopt, ""), Told());
  EXPECT_EQ(measure(false, "all is well"), Told());
  EXPECT_EQ(measure(true, "it creaks"), Told{"v: it creaks"});
  EXPECT_EQ(measure(true, "it creaks"), Told());
  EXPECT_EQ(measure(true, "it breaks"), Told{"v: it breaks"});
  EXPECT_EQ(measure(false, ""), Told());
  EXPECT_EQ(measure(true, "it breaks"), Told{"v: it breaks"});
}

TEST_F(VolumeStatsTest, AForgottenVolumesLateAnswerIsDropped) {
  auto stats = Make();
  Track(*stats, "v");
  // Up to the moment when the measurement has been handed out and not yet come back.
  scheduler_.RunUntil([&] { return stats->running() == 1; }, seconds(10));
  ASSERT_EQ(stats->running(), 1);
  stats->Forget(Key("v"));
  Track(*stats, "v");
  scheduler_.RunUntil([&] { return stats->running() == 0; }, seconds(1));
  EXPECT_FALSE(stats->Find(Key("v"))->measured);
  scheduler_.RunFor(seconds(60));
  EXPECT_TRUE(stats->Find(Key("v"))->measured);
  stats->Forget(Key("v"));
  EXPECT_EQ(stats->Find(Key("v")), nullptr);
}

TEST_F(VolumeStatsTest, CanBeSwitchedOffAndDroppedWhileItMeasures) {
  VolumeStatsSettings off;
  off.period = Duration::zero();
  auto none = Make(off);
  Track(*none, "v");
  EXPECT_EQ(none->size(), 0u);
  auto stats = Make();
  Track(*stats, "v");
  scheduler_.RunUntil([&] { return stats->running() == 1; }, seconds(10));
  stats.reset();
  scheduler_.RunFor(seconds(60));
  EXPECT_EQ(measured_["v"], 1);
}

// Takes requests whole, as workers do, and counts them.
class SharedRequestsKernel final : public Kernel {
 public:
  bool TakesComposites() const override { return true; }
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& call) override {
    const Batch& batch = std::get<Batch>(request);
    EXPECT_FALSE(call.domain.empty()) << "it would block the lane of mounts";
    sizes.push_back(batch.items.size());
    BatchAnswer answer;
    for (const BatchItem& item : batch.items) {
      const std::string name = std::get<StatFs>(item.request).path.relative;
      if (hung.contains(name)) return Error::NotApplied(Code::kDeadlineExceeded, "no answer");
      if (failing.contains(name)) {
        answer.items.push_back({Error::NotApplied(Code::kInternal, "broken")});
        continue;
      }
      ++measured[name];
      FsInfo info;
      info.used_bytes = 42;
      answer.items.push_back({AnyAnswer(info)});
    }
    return AnyAnswer(answer);
  }

  std::vector<size_t> sizes;  // of the requests, in volumes
  std::map<std::string, int> measured;
  std::set<std::string> hung, failing;
};

class SharedStatsTest : public VolumeStatsTest {
 protected:
  void SetUp() override {
    VolumeStatsTest::SetUp();
    script_->shares_requests = true;
    measures_together_ = &shared_;
  }
  void TrackMany(VolumeStats& stats, int pods) {
    for (int i = 0; i < pods; ++i) {
      for (const char* volume : {"a", "b", "c", "d", "e"}) {
        const std::string spec = volume + std::to_string(i);
        stats.Track({PodUid("pod-" + std::to_string(i)), SpecName(spec)},
                    VolumeSpec::FromVolume({spec, EmptyDirVolumeSource{}}), pod_);
      }
    }
  }
  const VolumeStatsEntry& Entry(VolumeStats& stats, int pod, const std::string& spec) {
    return *stats.Find({PodUid("pod-" + std::to_string(pod)), SpecName(spec)});
  }

  SharedRequestsKernel shared_;
  VolumeStatsSettings settings_;
};

TEST_F(SharedStatsTest, FifteenThousandVolumesAreMeasuredByARequestForAHundredAndMore) {
  auto stats = Make(settings_);
  TrackMany(*stats, 3000);
  scheduler_.RunFor(seconds(300));
  EXPECT_EQ(shared_.measured.size(), 15'000u);
  size_t measured = 0;
  for (const size_t size : shared_.sizes) measured += size;
  EXPECT_GE(measured / shared_.sizes.size(), 80u);
  for (const auto& [volume, times] : shared_.measured) {
    EXPECT_GE(times, 3) << volume;
    EXPECT_LE(times, 5) << volume;
  }
  EXPECT_TRUE(measured_.empty()) << "none is measured by itself as well";
  EXPECT_EQ(Entry(*stats, 7, "a7").metrics.used_bytes, 42);
}

TEST_F(SharedStatsTest, WhatTheAgentAloneWritesIsMeasuredMoreSeldomButSoonAfterItWasWritten) {
  const auto track = [this](VolumeStats& stats, int pod, const std::string& spec) {
    stats.Track({PodUid("pod-" + std::to_string(pod)), SpecName(spec)},
                VolumeSpec::FromVolume({spec, EmptyDirVolumeSource{}}), pod_,
                VolumeStats::Writer::kAgent);
  };
  auto stats = Make(settings_);
  for (int i = 0; i < 200; ++i) track(*stats, i, "k" + std::to_string(i));
  TrackMany(*stats, 1);
  scheduler_.RunFor(seconds(60));
  EXPECT_EQ(shared_.measured.size(), 205u) << "the first time is soon";
  scheduler_.RunFor(std::chrono::minutes(30));
  size_t least = 1000;
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    least = std::min<size_t>(least, shared_.measured["k" + std::to_string(i)]);
    most = std::max<size_t>(most, shared_.measured["k" + std::to_string(i)]);
  }
  EXPECT_GE(least, 3u);
  EXPECT_LE(most, 5u);
  EXPECT_GE(shared_.measured["a0"], 19) << "a pod may write at any time";
  const int before = shared_.measured["k7"];
  track(*stats, 7, "k7");
  scheduler_.RunFor(seconds(61));
  EXPECT_EQ(shared_.measured["k7"], before + 1);
}

// Each writing put the measurement off, so that what was written every few seconds had the figures
// of its first time for ever; so did each new period.
TEST_F(SharedStatsTest, WhatIsWrittenAgainAndAgainIsMeasuredAllTheSame) {
  auto stats = Make(settings_);
  const auto write_all = [&] {
    for (int i = 0; i < 50; ++i) {
      const std::string spec = "k" + std::to_string(i);
      stats->Track({PodUid("pod-" + std::to_string(i)), SpecName(spec)},
                   VolumeSpec::FromVolume({spec, EmptyDirVolumeSource{}}), pod_,
                   VolumeStats::Writer::kAgent);
    }
  };
  write_all();
  scheduler_.RunFor(seconds(60));
  shared_.measured.clear();
  for (int i = 0; i < 40; ++i) {
    write_all();
    scheduler_.RunFor(seconds(3));
  }
  for (int i = 0; i < 50; ++i) EXPECT_GE(shared_.measured["k" + std::to_string(i)], 1) << i;
  shared_.measured.clear();
  for (int i = 0; i < 40; ++i) {
    stats->SetTimes(seconds(60 + i % 2), seconds(3));
    scheduler_.RunFor(seconds(3));
  }
  for (int i = 0; i < 50; ++i) EXPECT_GE(shared_.measured["k" + std::to_string(i)], 1) << i;
}

// Ten dead ones took every place, so that nothing was measured for four deadlines, and no pod that
// wrote beyond its limit was seen.
TEST_F(SharedStatsTest, ThoseThatAreAskedByThemselvesLeavePlacesForTheOthers) {
  auto stats = Make(settings_);
  TrackMany(*stats, 5);
  for (int i = 0; i < 5; ++i) shared_.hung.insert("a" + std::to_string(i));
  scheduler_.RunFor(seconds(60));
  takes_ = seconds(2);  // so that several are due before one is done
  int highest = 0;
  scheduler_.RunUntil(
      [&] {
        highest = std::max(highest, stats->running());
        return false;
      },
      seconds(600));
  EXPECT_EQ(highest, 2) << "of four";
  EXPECT_FALSE(measured_.empty()) << "by themselves";
}

TEST_F(SharedStatsTest, WhatTheAgentAloneWritesIsAskedAgainSoonIfItCouldNotBeMeasured) {
  shared_.failing.insert("c");
  auto stats = Make(settings_);
  const PodVolumeKey key{PodUid("pod-0"), SpecName("c")};
  stats->Track(key, VolumeSpec::FromVolume({"c", EmptyDirVolumeSource{}}), pod_,
               VolumeStats::Writer::kAgent);
  scheduler_.RunFor(seconds(60));
  EXPECT_FALSE(stats->Find(key)->measured);
  shared_.failing.clear();
  scheduler_.RunFor(seconds(120));
  EXPECT_TRUE(stats->Find(key)->measured);
}

TEST_F(VolumeStatsTest, WhatIsWrittenWhileItIsMeasuredIsMeasuredOnceMore) {
  auto stats = Make();
  const auto track = [&] {
    stats->Track(Key("v"), VolumeSpec::FromVolume({"v", EmptyDirVolumeSource{}}), pod_,
                 VolumeStats::Writer::kAgent);
  };
  track();
  ASSERT_TRUE(scheduler_.RunUntil([&] { return stats->running() == 1; }, seconds(60)));
  track();
  scheduler_.RunFor(seconds(130));
  EXPECT_EQ(measured_["v"], 2);
}

TEST_F(SharedStatsTest, VolumesOfOnePodAreMeasuredAtTheSameTime) {
  std::map<PodUid, std::set<TimePoint>> times;
  hooks_.measured = [&](const PodVolumeKey& key, const VolumeSpec&, const Metrics&) {
    times[key.pod].insert(clock_.Now());
  };
  auto stats = Make(settings_);
  TrackMany(*stats, 20);
  scheduler_.RunFor(seconds(300));
  ASSERT_EQ(times.size(), 20u);
  for (const auto& [pod, at] : times) EXPECT_LE(at.size(), 4u) << pod.str();
}

TEST_F(SharedStatsTest, OneThatFailsHoldsUpNoOtherOfItsRequest) {
  shared_.failing.insert("a0");
  auto stats = Make(settings_);
  TrackMany(*stats, 10);
  scheduler_.RunFor(seconds(10));
  EXPECT_EQ(Entry(*stats, 0, "a0").last_error->message(), "broken");
  EXPECT_FALSE(Entry(*stats, 0, "a0").measured);
  EXPECT_EQ(shared_.measured.size(), 49u);
}

TEST_F(SharedStatsTest, WhereNothingComesBackEachIsAskedByItselfAndTheDeadOneStaysSo) {
  shared_.hung.insert("a0");
  hung_.insert("a0");
  auto stats = Make(settings_);
  TrackMany(*stats, 10);
  scheduler_.RunFor(seconds(400));
  EXPECT_GE(measured_["a0"], 1) << "by itself";
  EXPECT_GE(measured_["b0"], 1) << "by itself, as long as nobody knew which one is dead";
  // From then on only the dead one is not with the others.
  const int by_itself = measured_["b0"];
  const int shared = shared_.measured["b0"];
  scheduler_.RunFor(seconds(400));
  EXPECT_EQ(measured_["b0"], by_itself);
  EXPECT_GE(shared_.measured["b0"], shared + 3);
  EXPECT_EQ(Entry(*stats, 0, "a0").last_error->message(), "no answer");
}

}  // namespace
}  // namespace volumed
