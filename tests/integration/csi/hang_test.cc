// Promise 2 for CSI: 64 drivers that answer nothing, with 1,000 volumes in 200 pods, hold up nobody
// else, and cost a bounded number of threads and bytes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::hang_test {
namespace {

using std::chrono::milliseconds;

constexpr int kDrivers = 64;
constexpr int kPods = 200;
constexpr int kVolumesOfPod = 5;
// Calls that a driver may have at first, and after it was silent once.
constexpr int kFirstCalls = 4;
// What else may begin a thread meanwhile: lookups, measurements, the executor's spare ones.
constexpr int kOtherThreads = 64;
constexpr int kOtherThreadsLater = 32;
constexpr long kMostGrowthKib = 256 * 1024;

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
  void BeginDrivers() {
    for (int i = 0; i < kDrivers; ++i) {
      CsiFakeOptions options = OptionsOf(DriverName(i));
      options.endpoint = std::exchange(options.registration, "");
      options.registered_endpoint = "none";
      drivers_.push_back(std::make_unique<CsiFakeDriver>(options));
    }
    for (int i = 0; i < kDrivers; ++i) {
      ASSERT_TRUE(WaitTold(DriverName(i), "yes")) << DriverName(i) << ": " << ToldOf(DriverName(i));
    }
    for (const auto& driver : drivers_) driver->Script(R"([{"rpc": "*", "hang": true}])");
  }
  void ApplyPods() {
    std::string objects;
    for (int i = 0; i < kDrivers; ++i) objects += DriverObject(DriverName(i), false);
    ASSERT_NO_FATAL_FAILURE(ApplyOk(objects));
    for (int pod = 0; pod < kPods; ++pod) {
      std::vector<CsiTestVolume> volumes;
      std::string manifest;
      for (int i = 0; i < kVolumesOfPod; ++i) {
        volumes.push_back(VolumeOf("v-" + std::to_string(pod) + "-" + std::to_string(i),
                                   DriverName(pod % kDrivers)));
        manifest += Storage(volumes.back());
      }
      ASSERT_NO_FATAL_FAILURE(ApplyOk(manifest + PodOn(PodName(pod), volumes)));
    }
  }
  int Held() {
    int held = 0;
    for (const auto& driver : drivers_) {
      const std::string status = driver->Tell(R"({"status": true})");
      held += std::atoi(status.c_str() + status.find("\"held\":") + 7);
    }
    return held;
  }
  static std::string EmptyDirPod(const std::string& name) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x, "
           "volumeMounts: [{name: data, mountPath: /d}]}\n  volumes:\n  - {name: data, emptyDir: "
           "{}}\n";
  }
  // How long they take from now on is shown.
  void ExpectOthersAreServed(const std::string& when) {
    const auto begun = std::chrono::steady_clock::now();
    const CsiTestVolume volume = VolumeOf("healthy-" + when, "healthy.example.com");
    ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(volume.driver, false) + Storage(volume) +
                                    PodOn("csi-" + when, {volume}) + EmptyDirPod("plain-" + when)));
    EXPECT_TRUE(WaitPhase("plain-" + when, "Ready")) << Explain("plain-" + when);
    std::cout << when << ": an emptyDir pod is Ready after " << Since(begun).count() << " ms\n";
    EXPECT_TRUE(WaitPhase("csi-" + when, "Ready")) << Explain("csi-" + when);
    std::cout << when << ": a healthy driver's pod is Ready after " << Since(begun).count()
              << " ms\n";
  }

  std::vector<std::unique_ptr<CsiFakeDriver>> drivers_;
};

TEST_F(HangTest, SixtyFourDriversThatAnswerNothingHoldUpNobodyElse) {
  settings["deadline-csi-call"] = "3s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  CsiFakeDriver healthy(OptionsOf("healthy.example.com"));
  ASSERT_TRUE(WaitTold("healthy.example.com", "yes"));
  ASSERT_NO_FATAL_FAILURE(BeginDrivers());
  const long threads_before = StatusOf("Threads");
  const long kib_before = StatusOf("VmRSS");
  ASSERT_NO_FATAL_FAILURE(ApplyPods());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Held() >= kDrivers; })) << Held();
  ASSERT_NO_FATAL_FAILURE(ExpectOthersAreServed("at-first"));

  // As many at a time as a driver may have; after the first deadline one, and more do not come.
  long most = 0;
  const auto begun = std::chrono::steady_clock::now();
  while (Since(begun) < milliseconds(5000)) {
    most = std::max(most, StatusOf("Threads"));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_LE(most, threads_before + kDrivers * kFirstCalls + kOtherThreads);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return StatusOf("Threads") <= threads_before + kDrivers + kOtherThreadsLater;
  })) << StatusOf("Threads");
  std::cout << "threads: " << threads_before << " before, " << most << " at most, "
            << StatusOf("Threads") << " after the first deadline\n";
  const long grown = StatusOf("VmRSS") - kib_before;
  std::cout << "memory: " << kib_before << " KiB before, " << grown << " more now\n";
  EXPECT_LE(grown, kMostGrowthKib);

  ASSERT_NO_FATAL_FAILURE(ExpectOthersAreServed("later"));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return !MetricLines({"kubelet_volume_stats_capacity_bytes", "\"healthy-later\""}).empty();
  }));
  EXPECT_TRUE(WaitSays(PodName(0), "DeadlineExceeded") || WaitSays(PodName(0), "does not answer"))
      << Explain(PodName(0));
  for (const char* pod : {"csi-at-first", "csi-later", "plain-at-first", "plain-later"}) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    EXPECT_TRUE(WaitGone(pod)) << Explain(pod);
  }
  // One of them is well again, and so are its pods, with nobody's help.
  drivers_[0]->Script("[]");
  drivers_[0]->Tell(R"({"release": true})");
  for (int pod = 0; pod < kPods; pod += kDrivers) {
    EXPECT_TRUE(RetryUntilPhase(PodName(pod), "Ready")) << Explain(PodName(pod));
  }
}

}  // namespace
}  // namespace volumed::hang_test
