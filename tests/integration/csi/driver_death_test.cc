// Drivers that die, hang as a whole, come back as others, and flap (behaviours 20 to 30): each a
// process of its own, beside the real daemon. What a driver has set up stays; what waits for it
// goes on when it is back, without anybody's help.
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::driver_death_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "mortal.example.com";
constexpr const char* kGone = "CSI driver mortal.example.com is gone since";

class DriverDeathTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    driver_ = std::make_unique<CsiFakeProcess>(OptionsOf(kDriver));
    ASSERT_TRUE(driver_->Start());
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitTold(kDriver, "yes")) << ToldOf(kDriver);
  }
  void TearDown() override {
    if (driver_ != nullptr) driver_->Signal(SIGCONT);
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  void Add(const std::string& pod, bool attaches = false) {
    const CsiTestVolume volume = VolumeOf("v-" + pod, kDriver);
    ApplyOk(DriverObject(kDriver, attaches) + Storage(volume) + PodOn(pod, {volume}));
  }
  void Die() { driver_->Kill(); }
  void ExpectReady(const std::string& pod) {
    EXPECT_TRUE(WaitPhase(pod, "Ready")) << Explain(pod);
    EXPECT_EQ(MountsBelow(TargetOf(pod, "v-" + pod)).size(), 1u);
  }
  void DeleteAll(const std::vector<std::string>& pods) {
    for (const std::string& pod : pods) ASSERT_TRUE(Delete("Pod", pod).ok());
    for (const std::string& pod : pods) EXPECT_TRUE(WaitGone(pod)) << Explain(pod);
    EXPECT_EQ(LeftOvers(), "");
    EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
    for (const std::string& violation : ViolationsOf(LogOf(kDriver))) ADD_FAILURE() << violation;
  }
  // It dies in this RPC, and is missed; then it is there again and does right.
  void DieIn(const std::string& rpc, const std::string& when, const std::string& pod) {
    driver_->Script(R"([{"rpc": ")" + rpc + R"(", "die": ")" + when + R"("}])");
    if (rpc.find("Un") == std::string::npos) {
      ASSERT_NO_FATAL_FAILURE(Add(pod));
    } else {
      ASSERT_TRUE(Delete("Pod", pod).ok());
    }
    ASSERT_TRUE(driver_->WaitUntilDead()) << Explain(pod);
    EXPECT_TRUE(WaitSays(pod, kGone)) << Explain(pod);
    ASSERT_TRUE(driver_->Start());
  }

  // Between the moment at which the driver listened last and that at which it was asked to stage
  // the pod's volume; nullopt: it was not.
  std::optional<Milliseconds> StagedAfterItListened(const std::string& pod) const {
    int64_t listened = 0;
    for (const CsiFakeEntry& entry : LogOf(kDriver)) {
      if (entry.what == "listen") listened = entry.at_us;
      const bool is_it =
          entry.what == "begin" && entry.rpc == "NodeStageVolume" && entry.volume == "h-v-" + pod;
      if (!is_it) continue;
      const std::chrono::microseconds later(entry.at_us - listened);
      return std::chrono::duration_cast<Milliseconds>(later);
    }
    return std::nullopt;
  }

  std::unique_ptr<CsiFakeProcess> driver_;
};

// Behaviours 20 to 22.
TEST_F(DriverDeathTest, AVolumeIsSetUpOnceItsDriverIsBackWhereverItDied) {
  int number = 0;
  std::vector<std::string> pods;
  for (const char* rpc : {"NodeStageVolume", "NodePublishVolume"}) {
    for (const char* when : {"before", "after"}) {
      SCOPED_TRACE(std::string(rpc) + " " + when);
      pods.push_back("p" + std::to_string(number++));
      ASSERT_NO_FATAL_FAILURE(DieIn(rpc, when, pods.back()));
      ExpectReady(pods.back());
    }
  }
  DeleteAll(pods);
}

TEST_F(DriverDeathTest, AVolumeIsTakenAwayOnceItsDriverIsBackWhereverItDied) {
  for (const char* when : {"before", "after"}) {
    SCOPED_TRACE(when);
    ASSERT_NO_FATAL_FAILURE(Add("p"));
    ExpectReady("p");
    ASSERT_NO_FATAL_FAILURE(DieIn("NodeUnpublishVolume", when, "p"));
    EXPECT_TRUE(WaitGone("p")) << Explain("p");
    EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
  }
  // The pod has gone when its device goes.
  ASSERT_NO_FATAL_FAILURE(Add("q"));
  ExpectReady("q");
  driver_->Script(R"([{"rpc": "NodeUnstageVolume", "die": "after"}])");
  ASSERT_TRUE(Delete("Pod", "q").ok());
  ASSERT_TRUE(driver_->WaitUntilDead());
  ASSERT_TRUE(driver_->Start());
  DeleteAll({});
}

// Behaviours 23 and 24.
TEST_F(DriverDeathTest, APodKeepsItsVolumeWhileItsDriverIsDeadAndOthersWait) {
  ASSERT_NO_FATAL_FAILURE(Add("old"));
  ExpectReady("old");
  Die();
  EXPECT_TRUE(Exists(OptionsOf(kDriver).endpoint));
  ASSERT_NO_FATAL_FAILURE(Add("new"));
  EXPECT_TRUE(WaitSays("new", kGone)) << Explain("new");
  EXPECT_TRUE(WaitPhase("old", "Ready")) << Explain("old");
  ASSERT_TRUE(driver_->Start());
  ExpectReady("new");

  driver_->Script(R"([{"rpc": "NodeStageVolume", "die": "before", "remove_sockets": true}])");
  ASSERT_NO_FATAL_FAILURE(Add("newer"));
  ASSERT_TRUE(driver_->WaitUntilDead());
  EXPECT_TRUE(WaitSays("newer", "CSI driver mortal.example.com is ")) << Explain("newer");
  EXPECT_TRUE(WaitPhase("old", "Ready")) << Explain("old");
  ASSERT_TRUE(driver_->Start());
  ExpectReady("newer");
  DeleteAll({"old", "new", "newer"});
}

// The daemon starts while the driver is away: what is set up is not asked for.
TEST_F(DriverDeathTest, ARestartOfTheDaemonNeedsNoDriver) {
  ASSERT_NO_FATAL_FAILURE(Add("p"));
  ExpectReady("p");
  const size_t calls = LogOf(kDriver).size();
  Die();
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ExpectReady("p");
  ASSERT_TRUE(Delete("Pod", "p").ok());
  EXPECT_TRUE(WaitSays("p", "CSI driver mortal.example.com is gone")) << Explain("p");
  EXPECT_EQ(LogOf(kDriver).size(), calls);
  ASSERT_TRUE(driver_->Start());
  EXPECT_TRUE(WaitGone("p")) << Explain("p");
  DeleteAll({});
}

// Behaviour 25. What waits has no moment at which it is tried again: the news that its driver is
// back lets it go on, each time, and the quickest of ten returns shows how soon. That others have
// the processor is nobody's fault.
TEST_F(DriverDeathTest, ADriverThatComesBackAtOnceIsUsedAtOnce) {
  constexpr int kReturns = 10;
  constexpr Milliseconds kPromise(250);
  std::vector<std::string> pods;
  std::vector<Milliseconds> took;
  for (int i = 0; i < kReturns; ++i) {
    pods.push_back("p" + std::to_string(i));
    Die();
    ASSERT_NO_FATAL_FAILURE(Add(pods.back()));
    ASSERT_TRUE(WaitSays(pods.back(), kGone)) << Explain(pods.back());
    ASSERT_TRUE(WaitSays(pods.back(), "blocked at: WaitForDriver")) << Explain(pods.back());
    ASSERT_TRUE(WaitSays(pods.back(), "next try:   when something changes"))
        << Explain(pods.back());
    ASSERT_TRUE(driver_->Start());
    ASSERT_TRUE(Eventually(kPatience, [&] {
      return StagedAfterItListened(pods.back()).has_value();
    })) << Explain(pods.back());
    took.push_back(*StagedAfterItListened(pods.back()));
    std::cout << "a volume is asked for " << took.back().count()
              << " ms after its driver listens again\n";
  }
  EXPECT_LE(*std::min_element(took.begin(), took.end()), kPromise);
  for (const std::string& pod : pods) ExpectReady(pod);
  DeleteAll(pods);
}

// Behaviour 26.
TEST_F(DriverDeathTest, WhatWasStagedIsUnstagedByADriverThatStagesNoMore) {
  ASSERT_NO_FATAL_FAILURE(Add("old"));
  ExpectReady("old");
  Die();
  driver_->options().node_capabilities = {"GET_VOLUME_STATS"};
  ASSERT_TRUE(driver_->Start());
  ASSERT_NO_FATAL_FAILURE(Add("new"));
  ExpectReady("new");
  EXPECT_EQ(CountOf(kDriver, "NodeStageVolume"), 1);
  DeleteAll({"old", "new"});
  EXPECT_EQ(CountOf(kDriver, "NodeUnstageVolume"), 1);
}

// Behaviour 27.
TEST_F(DriverDeathTest, ADriverThatCallsTheNodeOtherwiseIsNotUsedWhileVolumesAreAttached) {
  driver_->Kill();
  driver_->options().controller_capabilities = {"PUBLISH_UNPUBLISH_VOLUME"};
  ASSERT_TRUE(driver_->Start());
  ASSERT_NO_FATAL_FAILURE(Add("old", true));
  ExpectReady("old");
  Die();
  driver_->options().node_id = "node-b";
  ASSERT_TRUE(driver_->Start());
  ASSERT_NO_FATAL_FAILURE(Add("new", true));
  EXPECT_TRUE(WaitSays("new", "calls this node \"node-b\"")) << Explain("new");
  Die();
  driver_->options().node_id = "node-a";
  ASSERT_TRUE(driver_->Start());
  ExpectReady("new");
  DeleteAll({"old", "new"});
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return CountOf(kDriver, "ControllerUnpublishVolume") >= 2; }));
}

// Behaviour 28: a mount that a driver does not know any more is nobody's to take away but a
// person's.
TEST_F(DriverDeathTest, WhatADriverHasForgottenIsNotCalledGone) {
  ASSERT_NO_FATAL_FAILURE(Add("p"));
  ExpectReady("p");
  Die();
  driver_->options().forgets = true;
  ASSERT_TRUE(driver_->Start());
  ASSERT_TRUE(Delete("Pod", "p").ok());
  EXPECT_TRUE(WaitSays("p", "it knows no volume")) << Explain("p");
  EXPECT_EQ(MountsBelow(TargetOf("p", "v-p")).size(), 1u);
  ASSERT_EQ(::umount2(TargetOf("p", "v-p").c_str(), 0), 0);
  EXPECT_TRUE(RetryUntilGone("p")) << Explain("p");
  for (const std::string& line : MountsBelow(root() + "/plugins")) {
    std::istringstream fields(line);
    std::string id, parent, device, inner, point;
    fields >> id >> parent >> device >> inner >> point;
    ::umount2(point.c_str(), 0);
  }
  DeleteAll({});
}

// Behaviour 29.
TEST_F(DriverDeathTest, ADriverThatIsStoppedHoldsNobodyElseUp) {
  CsiFakeDriver other(OptionsOf("other.example.com"));
  driver_->Signal(SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(Add("p"));
  const CsiTestVolume volume = VolumeOf("v-q", "other.example.com");
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(DriverObject(volume.driver, false) + Storage(volume) + PodOn("q", {volume})));
  EXPECT_TRUE(WaitPhase("q", "Ready")) << Explain("q");
  EXPECT_TRUE(WaitSays("p", "DeadlineExceeded")) << Explain("p");
  driver_->Signal(SIGCONT);
  EXPECT_TRUE(RetryUntilPhase("p", "Ready")) << Explain("p");
  DeleteAll({"p", "q"});
}

// Behaviour 30.
TEST_F(DriverDeathTest, ADriverThatFlapsIsUsedAndCostsNothingThatStays) {
  driver_->Kill();
  CsiFakeDriver flapping(OptionsOf(kDriver));
  ASSERT_NO_FATAL_FAILURE(Add("first"));
  ExpectReady("first");
  const std::string fds = "/proc/" + std::to_string(agent_pid()) + "/fd";
  const auto open_files = [&] {
    return std::distance(fs::directory_iterator(fds), fs::directory_iterator());
  };
  const auto before = open_files();
  constexpr int kFlaps = 200;
  for (int flap = 0; flap < kFlaps; ++flap) {
    flapping.Tell(R"({"stop": true})");
    flapping.Tell(R"({"listen": true})");
  }
  ASSERT_NO_FATAL_FAILURE(Add("second"));
  ExpectReady("second");
  EXPECT_TRUE(WaitPhase("first", "Ready")) << Explain("first");
  EXPECT_TRUE(Eventually(kPatience, [&] { return open_files() < before + 16; })) << open_files();
  DeleteAll({"first", "second"});
}

}  // namespace
}  // namespace volumed::driver_death_test
