// Promise 2 for CSI: 64 drivers that answer nothing, with 1,000 volumes in 200 pods, hold up nobody
// else, and cost a bounded number of threads and bytes: when the volumes are to be set up, and when
// they are there and the drivers hang in every other call.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::hang_test {
namespace {

constexpr int kDrivers = 64;
constexpr int kPods = 200;
constexpr int kVolumesOfPod = 5;
// Calls that a driver may have at first, and after it was silent once.
constexpr int kFirstCalls = 4;
// What else may begin a thread meanwhile: lookups, measurements, the executor's spare ones.
constexpr int kOtherThreads = 64;
constexpr int kOtherThreadsLater = 32;
constexpr long kMostGrowthKib = 256 * 1024;
// After so long a call of the first test is given up. Whoever waits for one that hangs waits so
// long in addition to what it takes by itself.
constexpr Milliseconds kDeadline = std::chrono::seconds(10);
// Operations that may have a thread, of all lanes together.
constexpr int kPlaces = 256;

// What drivers hang in whose volumes are set up, each in one of them; and what brings it about. The
// last ones answer nothing at all: they are measured, and asked whether they are well.
constexpr std::array kLaterCalls = {"NodeExpandVolume", "NodeUnpublishVolume", "NodeUnstageVolume",
                                    "ControllerUnpublishVolume", "Probe"};
const char* LaterCallOf(int driver) {
  return kLaterCalls[static_cast<size_t>(driver) % kLaterCalls.size()];
}

class HangTest : public CsiAgentTest {
 protected:
  void TearDown() override {
    drivers_.clear();
    CsiAgentTest::TearDown();
  }
  static std::string DriverName(int driver) {
    return "hangs-" + std::to_string(driver) + ".example.com";
  }
  static std::string PodName(int pod) { return "pod-" + std::to_string(pod); }
  // A line of /proc/PID/status of the daemon.
  long StatusOf(const std::string& key) const {
    std::ifstream file("/proc/" + std::to_string(agent_pid()) + "/status");
    for (std::string word; file >> word;) {
      long value = 0;
      if (word == key + ":" && file >> value) return value;
    }
    return -1;
  }
  // The services' socket is the registration's too: half as many servers.
  void BeginDrivers(const std::vector<std::string>& node_can,
                    const std::vector<std::string>& controller_can) {
    for (int i = 0; i < kDrivers; ++i) {
      CsiFakeOptions options = OptionsOf(DriverName(i));
      options.plugin_capabilities = {"ONLINE"};
      options.node_capabilities = node_can;
      options.controller_capabilities = controller_can;
      options.endpoint = std::exchange(options.registration, "");
      options.registered_endpoint = "none";
      drivers_.push_back(std::make_unique<CsiFakeDriver>(options));
    }
    for (int i = 0; i < kDrivers; ++i) {
      ASSERT_TRUE(WaitTold(DriverName(i), "yes")) << DriverName(i) << ": " << ToldOf(DriverName(i));
    }
  }
  static std::vector<CsiTestVolume> VolumesOf(int pod) {
    std::vector<CsiTestVolume> volumes;
    for (int i = 0; i < kVolumesOfPod; ++i) {
      volumes.push_back(VolumeOf("v-" + std::to_string(pod) + "-" + std::to_string(i),
                                 DriverName(pod % kDrivers)));
    }
    return volumes;
  }
  void ApplyPods(bool attach_required) {
    std::string objects;
    for (int i = 0; i < kDrivers; ++i) objects += DriverObject(DriverName(i), attach_required);
    ASSERT_NO_FATAL_FAILURE(ApplyOk(objects));
    for (int pod = 0; pod < kPods; ++pod) {
      const std::vector<CsiTestVolume> volumes = VolumesOf(pod);
      std::string manifest;
      for (const CsiTestVolume& volume : volumes) manifest += Storage(volume);
      ASSERT_NO_FATAL_FAILURE(ApplyOk(manifest + PodOn(PodName(pod), volumes)));
    }
  }
  int Held(int driver) {
    const std::string status = drivers_[static_cast<size_t>(driver)]->Tell(R"({"status": true})");
    return std::atoi(status.c_str() + status.find("\"held\":") + 7);
  }
  int Held() {
    int held = 0;
    for (int i = 0; i < kDrivers; ++i) held += Held(i);
    return held;
  }
  // Whether the driver was called so, and has not answered.
  bool HangsIn(int driver, const std::string& rpc) const {
    std::set<int> open;
    for (const CsiFakeEntry& entry : LogOf(DriverName(driver))) {
      if (entry.rpc != rpc) continue;
      if (entry.what == "begin") open.insert(entry.number);
      if (entry.what == "end") open.erase(entry.number);
    }
    return !open.empty();
  }
  // Whether a call that changes something was given up. Whoever asks a driver whether it is well
  // waits less long.
  bool IsAnyGivenUp() const {
    for (const char* rpc : {"NodeStageVolume", "NodeExpandVolume", "NodeUnpublishVolume",
                            "NodeUnstageVolume", "ControllerUnpublishVolume"}) {
      const std::vector<std::string> texts = {"csi_operations_seconds_count", rpc,
                                              "DeadlineExceeded"};
      if (!MetricLines(texts).empty()) return true;
    }
    return false;
  }
  static std::string EmptyDirPod(const std::string& name) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x, "
           "volumeMounts: [{name: data, mountPath: /d}]}\n  volumes:\n  - {name: data, emptyDir: "
           "{}}\n";
  }
  // How long pods of others take from now on, that of a healthy driver last.
  void ServeOthers(const std::string& when, Milliseconds* took) {
    const auto begun = std::chrono::steady_clock::now();
    const CsiTestVolume volume = VolumeOf("healthy-" + when, "healthy.example.com");
    ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(volume.driver, false) + Storage(volume) +
                                    PodOn("csi-" + when, {volume}) + EmptyDirPod("plain-" + when)));
    EXPECT_TRUE(WaitPhase("plain-" + when, "Ready")) << Explain("plain-" + when);
    std::cout << when << ": an emptyDir pod is Ready after " << Since(begun).count() << " ms\n";
    EXPECT_TRUE(WaitPhase("csi-" + when, "Ready")) << Explain("csi-" + when);
    *took = Since(begun);
    std::cout << when << ": a healthy driver's pod is Ready after " << took->count() << " ms\n";
  }
  void DeleteOthers(const std::vector<std::string>& times) {
    for (const std::string& when : times) {
      for (const std::string& pod : {"csi-" + when, "plain-" + when}) {
        ASSERT_TRUE(Delete("Pod", pod).ok());
        EXPECT_TRUE(WaitGone(pod)) << Explain(pod);
      }
    }
  }
  // What is needed that each driver gets its call: its first pod grows, or goes.
  void BringLaterCallsAbout() {
    std::string larger;
    for (int pod = 0; pod < kDrivers; ++pod) {
      const std::string call = LaterCallOf(pod);
      if (call == "NodeExpandVolume") {
        for (CsiTestVolume volume : VolumesOf(pod)) {
          volume.size = "32Mi";
          volume.claim_size = "16Mi";
          larger += Storage(volume);
        }
      } else if (call != "Probe") {
        ASSERT_TRUE(Delete("Pod", PodName(pod)).ok());
      }
    }
    ASSERT_NO_FATAL_FAILURE(ApplyOk(larger));
  }
  void HangInLaterCalls() {
    for (int i = 0; i < kDrivers; ++i) {
      const std::string call = LaterCallOf(i);
      const std::string rpc = call == "Probe" ? "*" : call;
      drivers_[static_cast<size_t>(i)]->Script(R"([{"rpc": ")" + rpc + R"(", "hang": true}])");
    }
  }
  void ExpectAllHang() {
    bool is_measured = false;
    for (int i = 0; i < kDrivers; ++i) {
      EXPECT_TRUE(Eventually(kPatience, [&] { return HangsIn(i, LaterCallOf(i)) && Held(i) > 0; }))
          << DriverName(i) << " hangs in no " << LaterCallOf(i);
      is_measured = is_measured || HangsIn(i, "NodeGetVolumeStats");
    }
    EXPECT_TRUE(is_measured) << "no driver hangs in NodeGetVolumeStats";
  }
  void Heal(int driver) {
    drivers_[static_cast<size_t>(driver)]->Script("[]");
    drivers_[static_cast<size_t>(driver)]->Tell(R"({"release": true})");
  }

  std::vector<std::unique_ptr<CsiFakeDriver>> drivers_;
};

TEST_F(HangTest, SixtyFourDriversThatAnswerNothingHoldUpNobodyElse) {
  settings["deadline-csi-call"] = std::to_string(kDeadline.count()) + "ms";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeDriver healthy(OptionsOf("healthy.example.com"));
  ASSERT_TRUE(WaitTold("healthy.example.com", "yes"));
  ASSERT_NO_FATAL_FAILURE(BeginDrivers({"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS"}, {}));
  Milliseconds before{}, at_first{}, later{};
  ASSERT_NO_FATAL_FAILURE(ServeOthers("before", &before));
  for (const auto& driver : drivers_) driver->Script(R"([{"rpc": "*", "hang": true}])");
  const long threads_before = StatusOf("Threads");
  const long kib_before = StatusOf("VmRSS");
  ASSERT_NO_FATAL_FAILURE(ApplyPods(/*attach_required=*/false));
  ASSERT_TRUE(Eventually(kPatience, [&] { return Held() >= kDrivers; })) << Held();
  ASSERT_NO_FATAL_FAILURE(ServeOthers("at-first", &at_first));
  EXPECT_LT(at_first, before + kDeadline) << "as if it had waited for a call that hangs";

  // As many at a time as a driver may have; after the first deadline one, and more do not come.
  long most = 0;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    most = std::max(most, StatusOf("Threads"));
    return IsAnyGivenUp();
  }));
  EXPECT_LE(most, threads_before + kDrivers * kFirstCalls + kOtherThreads);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return StatusOf("Threads") <= threads_before + kDrivers + kOtherThreadsLater;
  })) << StatusOf("Threads");
  std::cout << "threads: " << threads_before << " before, " << most << " at most, "
            << StatusOf("Threads") << " after the first deadline\n";
  const long grown = StatusOf("VmRSS") - kib_before;
  std::cout << "memory: " << kib_before << " KiB before, " << grown << " more now\n";
  EXPECT_LE(grown, kMostGrowthKib);

  ASSERT_NO_FATAL_FAILURE(ServeOthers("later", &later));
  EXPECT_LT(later, before + kDeadline) << "as if it had waited for a call that hangs";
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return !MetricLines({"kubelet_volume_stats_capacity_bytes", "\"healthy-later\""}).empty();
  }));
  EXPECT_TRUE(WaitSays(PodName(0), "DeadlineExceeded") || WaitSays(PodName(0), "does not answer"))
      << Explain(PodName(0));
  ASSERT_NO_FATAL_FAILURE(DeleteOthers({"before", "at-first", "later"}));
  // One of them is well again, and so are its pods, with nobody's help.
  Heal(0);
  for (int pod = 0; pod < kPods; pod += kDrivers) {
    EXPECT_TRUE(RetryUntilPhase(PodName(pod), "Ready")) << Explain(PodName(pod));
  }
}

// A call is given up after a minute here: whoever is served before the first one is has waited for
// none of them.
TEST_F(HangTest, SixtyFourDriversThatHangInAllThatFollowsASetUpHoldUpNobodyElse) {
  settings["deadline-csi-call"] = "60s";
  settings["deadline-stats"] = "60s";
  settings["volume-stats-period"] = "5s";
  settings["csi-probe-period"] = "1s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeDriver healthy(OptionsOf("healthy.example.com"));
  ASSERT_TRUE(WaitTold("healthy.example.com", "yes"));
  ASSERT_NO_FATAL_FAILURE(BeginDrivers(
      {"STAGE_UNSTAGE_VOLUME", "GET_VOLUME_STATS", "EXPAND_VOLUME"}, {"PUBLISH_UNPUBLISH_VOLUME"}));
  ASSERT_NO_FATAL_FAILURE(ApplyPods(/*attach_required=*/true));
  for (int pod = 0; pod < kPods; ++pod) {
    ASSERT_TRUE(RetryUntilPhase(PodName(pod), "Ready")) << Explain(PodName(pod));
  }
  Milliseconds before{}, meanwhile{};
  ASSERT_NO_FATAL_FAILURE(ServeOthers("before", &before));

  const long threads_before = StatusOf("Threads");
  const long kib_before = StatusOf("VmRSS");
  HangInLaterCalls();
  ASSERT_NO_FATAL_FAILURE(BringLaterCallsAbout());
  ExpectAllHang();
  ASSERT_NO_FATAL_FAILURE(ServeOthers("meanwhile", &meanwhile));
  EXPECT_FALSE(IsAnyGivenUp()) << "the pods may have waited for a call that hangs: "
                               << meanwhile.count() << " ms, and " << before.count() << " before";
  ASSERT_NO_FATAL_FAILURE(DeleteOthers({"before", "meanwhile"}));
  const long threads = StatusOf("Threads");
  const long grown = StatusOf("VmRSS") - kib_before;
  std::cout << "threads: " << threads_before << " before, " << threads
            << " now; memory: " << kib_before << " KiB before, " << grown << " more now\n";
  EXPECT_LE(threads, threads_before + kPlaces + kOtherThreads);
  EXPECT_LE(grown, kMostGrowthKib);

  // They are well again, and what they had begun comes to its end.
  for (int i = 0; i < kDrivers; ++i) Heal(i);
  for (int i = 0; i < kDrivers; ++i) {
    const std::string call = LaterCallOf(i);
    EXPECT_TRUE(Eventually(kPatience, [&] { return Held(i) == 0; })) << DriverName(i);
    if (call == "NodeExpandVolume" || call == "Probe") {
      EXPECT_TRUE(RetryUntilPhase(PodName(i), "Ready")) << Explain(PodName(i));
    } else {
      EXPECT_TRUE(RetryUntilGone(PodName(i))) << Explain(PodName(i));
    }
    for (const std::string& violation : ViolationsOf(LogOf(DriverName(i)))) {
      ADD_FAILURE() << DriverName(i) << ": " << violation;
    }
  }
}

}  // namespace
}  // namespace volumed::hang_test
