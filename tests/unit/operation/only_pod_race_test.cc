// Which pod may have a volume alone, when a thousand want it at once: this has threads of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/manual_clock.h"
#include "fakes/memory_record_store.h"
#include "operation/volume_record_keeper.h"

namespace volumed {
namespace {

const UniqueVolumeName kRacedVolume("kubernetes.io/csi/disks.test.io^vol-1");
constexpr int kPods = 1000;
constexpr int kThreads = 8;

class NobodyListens final : public OperationObserver {
 public:
  void OperationFinished(const FinishedOperation&) override {}
  void StateAssigned(const OperationKey&, VolumeState, bool) override {}
};

class OnlyPodRaceTest : public ::testing::Test {
 protected:
  OnlyPodRaceTest() { Restart("boot-a"); }

  // A new agent on the same store, with the device set up.
  void Restart(const std::string& boot) {
    keeper_ =
        std::make_unique<DeviceRecordKeeper>(store_, clock_, logger_, observer_, BootId(boot));
    if (const auto row = store_.Find(kDeviceRecordKind, RecordKey(kRacedVolume))) {
      keeper_->Restore(DecodeDeviceRecord(*row).value());
    }
    DeviceRecord facts;
    facts.key = kRacedVolume;
    facts.spec = SpecName("disk");
    const auto attempt = keeper_->BeginCall(facts, VolumeEvent::kMountDevice);
    ASSERT_TRUE(attempt.ok());
    ASSERT_TRUE(keeper_->EndCall(kRacedVolume, *attempt, CallAnswer::kDone).ok());
  }
  static PodUid PodNumber(int number) { return PodUid("pod-" + std::to_string(number)); }
  // All of them at once; the pods that got it.
  std::set<int> Race() {
    std::atomic<int> next{0};
    std::vector<std::set<int>> of_thread(kThreads);
    std::vector<std::thread> threads;
    for (std::set<int>& winners : of_thread) {
      threads.emplace_back([this, &next, &winners] {
        for (int pod = next++; pod < kPods; pod = next++) {
          if (keeper_->TakeOnlyPod(kRacedVolume, PodNumber(pod)).ok()) winners.insert(pod);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::set<int> winners;
    for (std::set<int>& some : of_thread) winners.merge(some);
    return winners;
  }

  ManualClock clock_;
  Logger logger_{{}, clock_};
  NobodyListens observer_;
  MemoryRecordStore store_;
  std::unique_ptr<DeviceRecordKeeper> keeper_;
};

TEST_F(OnlyPodRaceTest, OfAThousandPodsOneHasTheVolumeAlsoAfterAKillAndAPowerLoss) {
  const std::set<int> winner = Race();
  ASSERT_EQ(winner.size(), 1u);
  EXPECT_EQ(keeper_->Find(kRacedVolume)->only_pod, PodNumber(*winner.begin()));
  Restart("boot-a");
  EXPECT_EQ(Race(), winner) << "it may have it again, and nobody else";
  store_.PowerLoss();
  Restart("boot-b");
  EXPECT_EQ(Race(), winner);
  ASSERT_TRUE(keeper_->ReleaseOnlyPod(kRacedVolume, PodNumber(*winner.begin())).ok());
  EXPECT_EQ(Race().size(), 1u);
}

TEST_F(OnlyPodRaceTest, WhoeverGivesItBackLetsExactlyOneOtherHaveIt) {
  std::atomic<int> having{0};
  std::atomic<int> had{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([this, number, &having, &had] {
      for (int round = 0; round < 200; ++round) {
        if (!keeper_->TakeOnlyPod(kRacedVolume, PodNumber(number)).ok()) continue;
        EXPECT_EQ(++having, 1);
        ++had;
        --having;
        EXPECT_TRUE(keeper_->ReleaseOnlyPod(kRacedVolume, PodNumber(number)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(had, 0);
  EXPECT_TRUE(keeper_->Find(kRacedVolume)->only_pod.empty());
}

}  // namespace
}  // namespace volumed
