// The life of two pods on three volumes of a CSI driver, in a simulated world in which anything may
// happen at any moment: pods come and go, the agent is ended, the node starts anew, the driver
// dies, flaps, hangs and lies. The operations of one agent in two overlap. At each call, effect and
// record the rules of the crash walk hold (unit/crash/crash_csi_monitor.cc): one call of a volume
// at a time, and unpublish before unstage among them. Whenever it is calm each pod gets what it has
// a right to; and in the end nothing is left over.
//
// VOLUMED_CSI_OPERATIONS sets how many operations (5,000), VOLUMED_SEED repeats a run.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "csi/csi_names.h"
#include "fakes/simulated_crash.h"
#include "run_numbers.h"
#include "unit/crash/crash_agent.h"
#include "unit/crash/crash_csi.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_scenarios.h"
#include "unit/crash/walk_sample.h"

namespace volumed {
namespace {

constexpr uint64_t kOperations = 5000 / kSampleThinning;
constexpr uint64_t kSeed = 20261127;
constexpr int kVolumes = 3;
constexpr int kPods = 2;
constexpr int kOnePodVolume = 2;        // ReadWriteOncePod
constexpr uint64_t kFirstUid = 100000;  // no uid is the beginning of another one
constexpr uint64_t kCalmEvery = 100;    // operations

std::string SpecOf(int volume) { return "pv-" + std::to_string(volume); }
std::string HandleOf(int volume) { return "vol-" + std::to_string(volume); }
std::string ModeOf(int volume) {
  return volume == kOnePodVolume ? "ReadWriteOncePod" : "ReadWriteOnce";
}

constexpr const char* kFrame = R"(---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disk.example.com}
spec: {attachRequired: true}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: grows}
provisioner: disk.example.com
allowVolumeExpansion: true
)";

std::string VolumeText(int volume) {
  return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + SpecOf(volume) +
         "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [" + ModeOf(volume) +
         "]\n  storageClassName: grows\n  persistentVolumeReclaimPolicy: Retain\n"
         "  csi: {driver: disk.example.com, fsType: ext4, volumeHandle: " +
         HandleOf(volume) + "}\n";
}

std::string ClaimText(int volume, int gibibytes) {
  const std::string number = std::to_string(volume);
  return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim-" + number +
         ", namespace: default, uid: claim-" + number + "}\nspec:\n  accessModes: [" +
         ModeOf(volume) + "]\n  storageClassName: grows\n  volumeName: " + SpecOf(volume) +
         "\n  resources: {requests: {storage: " + std::to_string(gibibytes) + "Gi}}\n";
}

std::string PodText(const std::string& uid, const std::set<int>& volumes) {
  std::string mounts;
  std::string sources;
  for (const int volume : volumes) {
    const std::string number = std::to_string(volume);
    mounts += "{name: d" + number + ", mountPath: /d" + number + "}, ";
    sources +=
        "  - {name: d" + number + ", persistentVolumeClaim: {claimName: claim-" + number + "}}\n";
  }
  mounts.resize(mounts.size() - 2);
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
         ", namespace: default, uid: " + uid +
         "}\nspec:\n  containers:\n  - {name: main, image: x, volumeMounts: [" + mounts +
         "]}\n  volumes:\n" + sources;
}

class CsiModel {
 public:
  explicit CsiModel(uint64_t seed) : random_(seed), seed_(seed) {
    world_.csi.emplace();
    world_.csi->attaches = true;
    world_.csi->makes = true;
    world_.csi->how = [this](const CsiAbout& about) { return Draw(about); };
    world_.sources[kFiles]["frame"] = kFrame;
    for (int volume = 0; volume < kVolumes; ++volume) {
      CsiTruth::Volume truth;
      truth.one_pod = volume == kOnePodVolume;
      AddCsiVolume(world_, HandleOf(volume), truth);
      world_.sources[kFiles]["volume-" + std::to_string(volume)] = VolumeText(volume);
      Claim(volume);
    }
    StartAgent();
    // A claim that asks for more than its volume has is not bound to it: they grow later.
    calm_ = true;
    agent_->RunFor(std::chrono::minutes(1));
    calm_ = false;
  }
  ~CsiModel() { EndAgent(); }

  void Step(uint64_t number) {
    try {
      Happen();
      Hear();
      Wait();
      if (number % kCalmEvery == 0) CalmDown();
    } catch (const SimulatedCrash&) {
      ADD_FAILURE() << "the agent was ended by nobody";
    } catch (const RunawayAgent&) {
      ADD_FAILURE() << "the agent makes effects without end";
    }
    for (const std::string& violation : world_.violations) ADD_FAILURE() << violation;
    if (!world_.violations.empty()) std::cout << CsiHistoryText(world_);
  }

  // All pods go, and with them everything.
  void End() {
    for (int slot = 0; slot < kPods; ++slot) RemovePod(slot);
    Hear();
    CalmDown();
    EXPECT_TRUE(world_.pods.empty());
    EXPECT_EQ(LeftOfCsi(world_), "");
    std::cout << made_ << " pods, " << restarts_ << " restarts, " << reboots_ << " reboots, "
              << calls_ + world_.csi->calls << " calls of the driver, " << disturbed_
              << " of them disturbed, " << switches_ + agent_->switches()
              << " switches amid operations\n";
    EXPECT_GT(made_, 10u);
    EXPECT_GT(disturbed_, 10u);
  }

 private:
  int Dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }

  CsiHow Draw(const CsiAbout& about) {
    if (calm_ || Dice(4) != 0) return CsiHow::kWell;
    static constexpr std::array kBad = {CsiHow::kRefused,    CsiHow::kAnswerLost, CsiHow::kHangs,
                                        CsiHow::kDiesBefore, CsiHow::kDiesAfter,  CsiHow::kLies};
    const CsiHow how = kBad[static_cast<size_t>(Dice(kBad.size()))];
    // Whether a volume is staged or attached need not be seen on the node: there a lie goes
    // unnoticed. And what is as it is said to be is no lie.
    const std::string& rpc = about.call.first;
    const bool is_published = world_.kernel->IsMountPoint(about.call.second);
    const bool is_lie = (rpc == "NodePublishVolume" && !is_published) ||
                        (rpc == "NodeUnpublishVolume" && is_published);
    if (how == CsiHow::kLies && !is_lie) return CsiHow::kWell;
    ++disturbed_;
    return how;
  }

  void Happen() {
    switch (Dice(11)) {
      case 0:
      case 1:
      case 2:
        return ApplyPod(Dice(kPods));
      case 3:
        return RemovePod(Dice(kPods));
      case 4:
        return DeletePod(Dice(kPods), Dice(2) == 0);
      case 5:
        return Restart();
      case 6:
        return Dice(4) == 0 ? Reboot() : Restart();
      case 7:
        world_.csi->away = !world_.csi->away;
        return;
      case 8:  // flaps
        world_.csi->away = false;
        ++world_.csi->release;
        return;
      case 9:
        for (const std::string& uid : slots_) {
          if (!uid.empty()) agent_->Retry(uid);
        }
        return;
      case 10:
        return Grow(Dice(kVolumes));
    }
  }

  void Hear() { agent_->Hear(); }
  void Wait() {
    if (Dice(2) == 0) return agent_->RunSteps(Dice(60));
    agent_->RunFor(std::chrono::milliseconds(Dice(20'000)));
  }

  // ---- pods
  void ApplyPod(int slot) {
    std::string& uid = slots_.at(static_cast<size_t>(slot));
    if (!uid.empty()) return;
    uid = "pod-" + std::to_string(kFirstUid + ++made_);
    std::set<int> volumes{Dice(kVolumes)};
    volumes.insert(Dice(kVolumes));
    world_.sources[kFiles][uid] = PodText(uid, volumes);
    PodTruth& pod = world_.pods[uid];
    pod.wanted = true;
    for (const int volume : volumes) {
      pod.volumes[SpecOf(volume)].plugin = kCsiPluginName;
      pod.volumes[SpecOf(volume)].has_mount = true;
    }
  }
  void RemovePod(int slot) {
    std::string& uid = slots_.at(static_cast<size_t>(slot));
    if (uid.empty()) return;
    world_.sources[kFiles].erase(uid);
    leaving_.insert(uid);
    const auto pod = world_.pods.find(uid);
    if (pod != world_.pods.end()) pod->second.wanted = false;
    uid.clear();
  }
  // By command, while its file is there; that goes later. What was begun for it by then may go on
  // for a moment, so from here on all that is owed is that nothing of it stays.
  void DeletePod(int slot, bool force) {
    const std::string uid = slots_.at(static_cast<size_t>(slot));
    if (world_.pods.erase(uid) == 0) return;
    UserCommand command{UserCommand::Kind::kDelete, uid, 0, false};
    command.force = force;
    world_.commands.push_back(command);
  }

  // ---- claims
  void Claim(int volume) {
    const std::string number = std::to_string(volume);
    world_.sources[kFiles]["claim-" + number] =
        ClaimText(volume, sizes_.at(static_cast<size_t>(volume)));
  }
  void Grow(int volume) {
    ++sizes_.at(static_cast<size_t>(volume));
    Claim(volume);
  }

  // ---- the agent, and the node
  void StartAgent() {
    world_.kernel->Revive();
    world_.store->Revive();
    BeginCsiAgent(world_);
    ++seed_;
    std::optional<OverlapSchedule> overlap;
    if (Dice(2) == 0) overlap = OverlapSchedule{seed_, "the agent of " + std::to_string(seed_)};
    agent_ = std::make_unique<CrashAgent>(world_, bug_, seed_, std::move(overlap));
    agent_->Start();
  }
  void EndAgent() {
    calls_ += world_.csi->calls;
    switches_ += agent_->switches();
    world_.csi->agent_is_dead = true;
    world_.kernel->Die();
    world_.store->Die();
    agent_.reset();
    NoteRecords(world_);
  }
  void Restart() {
    ++restarts_;
    EndAgent();
    StartAgent();
  }
  void Reboot() {
    ++reboots_;
    EndAgent();
    world_.Reboot(/*power_loss=*/Dice(2) == 0);
    StartAgent();
  }

  // ---- what must hold when nothing disturbs
  void CalmDown() {
    calm_ = true;
    world_.csi->away = false;
    for (int slot = 0; slot < kPods; ++slot) {
      if (!world_.pods.contains(slots_.at(static_cast<size_t>(slot)))) RemovePod(slot);
    }
    Hear();
    agent_->RunFor(std::chrono::minutes(30));
    for (const UserCommand& command : world_.commands) EXPECT_TRUE(command.acknowledged);
    world_.commands.clear();
    world_.CheckState("when it is calm");
    for (const std::string& uid : leaving_) {
      EXPECT_EQ(world_.LeftOf(uid), "") << uid;
      world_.pods.erase(uid);
    }
    leaving_.clear();
    for (const auto& [uid, pod] : world_.pods) ExpectWhole(uid, pod);
    if (HasFailure()) std::cout << agent_->ViewText() << CsiText(world_);
    calm_ = false;
  }
  static bool HasFailure() { return testing::Test::HasFailure(); }

  void ExpectWhole(const std::string& uid, const PodTruth& pod) const {
    for (const auto& [spec, volume] : pod.volumes) {
      bool is_others = false;
      for (const auto& [other, truth] : world_.pods) {
        if (other != uid && spec == SpecOf(kOnePodVolume)) {
          is_others = is_others || truth.volumes.contains(spec);
        }
      }
      EXPECT_TRUE(volume.established || is_others) << uid << " has no " << spec;
    }
  }

  CrashWorld world_;
  const SeededBug bug_;
  std::mt19937_64 random_;
  uint64_t seed_;
  std::array<std::string, kPods> slots_;  // the uid of the pod that a source has; "": none
  std::set<std::string> leaving_;         // uids of those that it has no more
  std::array<int, kVolumes> sizes_ = {1, 1, 1};
  bool calm_ = false;
  uint64_t made_ = 0;
  uint64_t restarts_ = 0;
  uint64_t reboots_ = 0;
  uint64_t calls_ = 0;     // of ended agents
  uint64_t switches_ = 0;  // likewise
  uint64_t disturbed_ = 0;
  std::unique_ptr<CrashAgent> agent_;
};

TEST(CsiModelTest, WhateverHappensTheRulesHoldAndNothingIsLeftOver) {
  const uint64_t operations = NumberOfRun("VOLUMED_CSI_OPERATIONS", kOperations);
  const uint64_t seed = NumberOfRun("VOLUMED_SEED", kSeed);
  std::cout << operations << " operations, VOLUMED_SEED=" << seed << "\n";
  CsiModel model(seed);
  for (uint64_t number = 1; number <= operations && !HasFailure(); ++number) {
    SCOPED_TRACE("operation " + std::to_string(number) + " of seed " + std::to_string(seed));
    model.Step(number);
  }
  if (!HasFailure()) model.End();
}

}  // namespace
}  // namespace volumed
