#include "volumemanager/watch/size_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "unit/volumemanager/manager_fixture.h"
#include "volumehost/event_log.h"

namespace volumed {
namespace {

constexpr char kMessage[] = "Usage of EmptyDir volume \"scratch\" exceeds the limit \"1Ki\". ";

class SizeLimitsTest : public ::testing::Test {
 protected:
  static VolumeSpec Spec(const char* limit = "1Ki") {
    EmptyDirVolumeSource source;
    if (limit != nullptr) source.size_limit = Quantity::Parse(limit).value();
    return VolumeSpec::FromVolume({"scratch", source});
  }
  static Metrics Used(int64_t bytes) {
    Metrics metrics;
    metrics.used_bytes = bytes;
    return metrics;
  }
  SizeLimits Make(SizeLimitAction action) {
    return SizeLimits(events_, clock_, action,
                      [this](const PodUid& pod, const std::string& message) {
                        evicted_.push_back(pod.str() + " " + message);
                      });
  }
  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    for (const KeptEvent& event : events_.Snapshot(key_.pod)) {
      reasons.push_back(event.reason + " " + event.message);
      EXPECT_EQ(event.type, EventType::kWarning);
      EXPECT_EQ(event.count, 1u);
    }
    return reasons;
  }

  ManualClock clock_;
  EventLog events_{clock_};
  const PodVolumeKey key_{PodUid("u1"), SpecName("scratch")};
  std::vector<std::string> evicted_;
};

TEST_F(SizeLimitsTest, OnlyMoreThanALimitExceedsIt) {
  EXPECT_EQ(SizeLimitMessage(Spec(), Used(1025)), kMessage);
  EXPECT_EQ(SizeLimitMessage(Spec(), Used(1024)), "");
  EXPECT_EQ(SizeLimitMessage(Spec(nullptr), Used(1 << 30)), "");
  EXPECT_EQ(SizeLimitMessage(Spec("0"), Used(1)), "") << "no limit";
  EXPECT_EQ(SizeLimitMessage(Spec(), Metrics()), "") << "not measured";
  const VolumeSpec other = VolumeSpec::FromVolume({"v", HostPathVolumeSource{}});
  EXPECT_EQ(SizeLimitMessage(other, Used(1 << 30)), "");
}

TEST_F(SizeLimitsTest, EvictsOnceInKubeletsWords) {
  SizeLimits limits = Make(SizeLimitAction::kEvict);
  limits.Measured(key_, Spec(), Used(1000));
  EXPECT_EQ(limits.Find(key_), nullptr);
  limits.Measured(key_, Spec(), Used(2000));
  clock_.Advance(std::chrono::seconds(60));
  limits.Measured(key_, Spec(), Used(3000));
  EXPECT_EQ(evicted_, (std::vector<std::string>{std::string("u1 ") + kMessage}));
  EXPECT_EQ(Reasons(), (std::vector<std::string>{std::string("Evicted ") + kMessage}));
  ASSERT_NE(limits.Find(key_), nullptr);
  EXPECT_EQ(limits.Find(key_)->used_bytes, 3000);
  EXPECT_EQ(limits.Find(key_)->since_unix_ms, ManualClock::kStartUnixMillis);
  limits.Forget(key_);
  EXPECT_EQ(limits.Find(key_), nullptr);
}

TEST_F(SizeLimitsTest, ReportsUntilItHoldsLessAgain) {
  SizeLimits limits = Make(SizeLimitAction::kReport);
  limits.Measured(key_, Spec(), Used(2000));
  EXPECT_EQ(Reasons(), (std::vector<std::string>{std::string("SizeLimitExceeded ") + kMessage}));
  EXPECT_NE(limits.Find(key_), nullptr);
  limits.Measured(key_, Spec(), Used(10));
  EXPECT_EQ(limits.Find(key_), nullptr);
  EXPECT_TRUE(evicted_.empty());
}

TEST_F(SizeLimitsTest, ActionsHaveNames) {
  for (const SizeLimitAction action : {SizeLimitAction::kEvict, SizeLimitAction::kReport}) {
    EXPECT_EQ(ParseSizeLimitAction(SizeLimitActionName(action)).value(), action);
  }
  EXPECT_EQ(ParseSizeLimitAction("kill").error().message(), "must be evict or report, not 'kill'");
}

// The same through the whole manager.
class SizeLimitsManagerTest : public ManagerTest {
 protected:
  void Start() {
    stats_period = std::chrono::seconds(10);
    metrics = std::make_shared<FakePlugin::MetricsScript>();
    metrics->answer = [this](const SpecName&, const CallOptions&) -> Result<Metrics> {
      Metrics answer;
      answer.used_bytes = used;
      return answer;
    };
    StartAgent();
    Settle();
    Deliver(manifest);
  }
  const std::string manifest = PodManifest("a", {"scratch: emptyDir: {sizeLimit: 1Ki}"});
  int64_t used = 100;
};

TEST_F(SizeLimitsManagerTest, AFullEmptyDirTakesItsPodAwayForGood) {
  Start();
  Pass(std::chrono::seconds(30));
  ASSERT_EQ(Phase("a"), "Ready");
  used = 5000;
  Pass(std::chrono::seconds(60));
  EXPECT_EQ(host_parts.events, (std::vector<std::string>{"a Evicted"}));
  std::string exported;
  families.AppendTo(exported);
  EXPECT_NE(exported.find("kubelet_evictions{eviction_signal=\"emptydirfs.limit\"} 1\n"),
            std::string::npos)
      << exported;
  EXPECT_NE(Phase("a"), "Ready");
  EXPECT_NE(Phase("a"), "Pending");
  used = 0;
  Deliver(manifest);  // its source has it still
  Pass(std::chrono::seconds(60));
  EXPECT_NE(Phase("a"), "Ready");
  EXPECT_TRUE(HasPodRecord("a")) << "the next agent must not bring it back either";
}

// It once said that it was deleted by command, which nobody had given.
TEST_F(SizeLimitsManagerTest, AnEvictedPodSaysSoWhileItLeavesAndAfterAStartToo) {
  const std::string evicted =
      "it was evicted: Usage of EmptyDir volume \"scratch\" exceeds the limit \"1Ki\". ";
  Start();
  watch.processes[7] = 1;
  ASSERT_TRUE(HoldPid("a", 7).ok());
  used = 5000;
  Pass(std::chrono::seconds(60));
  ASSERT_EQ(Phase("a"), "Terminating");
  ASSERT_EQ(View("a").problems.size(), 2U);
  EXPECT_EQ(View("a").problems.at(0).message, "held by pid 7 (runc)");
  EXPECT_EQ(View("a").problems.at(1).message, evicted);
  watch.EndProcess(7);
  Pass(std::chrono::seconds(60));
  for (const bool started_anew : {false, true}) {
    if (started_anew) {
      StartAgent();
      Settle();
      Deliver(manifest);
      Pass(std::chrono::seconds(60));
    }
    ASSERT_EQ(Phase("a"), "Refused");
    EXPECT_EQ(View("a").problems.at(0).message,
              evicted.substr(0, evicted.size() - 2) +
                  "; test.yaml still has it: taken out there and put there anew, it comes back")
        << "the sentence went on behind its full stop, and did not say what to do";
  }
}

TEST_F(SizeLimitsManagerTest, OrIsShownUntilItHoldsLess) {
  size_limit_action = SizeLimitAction::kReport;
  Start();
  used = 5000;
  Pass(std::chrono::seconds(60));
  ASSERT_EQ(Phase("a"), "Ready");
  const auto problem = View("a").volumes.at(0).problem;
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->step, "SizeLimit");
  EXPECT_EQ(problem->message,
            "Usage of EmptyDir volume \"scratch\" exceeds the limit \"1Ki\". It holds 5000 bytes.");
  EXPECT_EQ(host_parts.events, (std::vector<std::string>{"a SizeLimitExceeded"}));
  used = 10;
  Pass(std::chrono::seconds(60));
  EXPECT_FALSE(View("a").volumes.at(0).problem.has_value());
}

}  // namespace
}  // namespace volumed
