// Random lives of a node's disks, in seeded order: names that are used again, links that stay,
// events that are lost, a udevd that is late or gone. No wait may get another disk than its own,
// and each gets an answer. VOLUMED_SEED repeats a run.
#include <cstdlib>
#include <iostream>
#include <random>

#include "unit/attacher/waiter_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kVolumes = 12;
constexpr uint32_t kNames = 5;
constexpr uint32_t kSteps = 150;

class RandomLife : private WaiterWorld {
 public:
  explicit RandomLife(uint64_t seed) : WaiterWorld(seed), random_(seed) {
    udev_.AnnounceDevices(seed % 2 == 1);
    // Some disks change while they are being opened.
    kernel_.SetCallHook([this](const AnyRequest&) {
      if (Below(4) == 0) ChangeADisk();
    });
  }

  void Run() {
    for (uint32_t i = 0; i < kSteps; ++i) {
      Step();
      if (Below(3) != 0) scheduler_.RunFor(milliseconds(Below(700)));
    }
    // All that is wanted comes, one volume at a time under each name; nobody waits for ever.
    kernel_.SetCallHook(nullptr);
    udev_.LoseEvents(false);
    scheduler_.RunFor(seconds(200));
    EXPECT_EQ(waiter_->stats().waiting, 0u);
    EXPECT_EQ(wanted_.size(), answers_.size());
    Judge();
  }

  uint32_t right_ = 0;
  uint32_t wrong_ = 0;
  uint32_t expired_ = 0;
  uint64_t refused() const { return waiter_->stats().refused; }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void Step() {
    switch (Below(8)) {
      case 0:
      case 1:
      case 2:
        StartWait();
        break;
      case 3:
        udev_.LoseEvents(Below(3) == 0);
        break;
      case 4:
        if (Below(4) == 0) udev_.Overflow();
        if (Below(6) == 0) udev_.StopUdevd();
        if (Below(2) == 0) udev_.StartUdevd();
        break;
      default:
        ChangeADisk();
        break;
    }
  }

  void StartWait() {
    const std::string volume = "vol-" + std::to_string(Below(kVolumes));
    DeviceQuery query;
    const uint32_t kind = Below(3);
    if (kind != 0) query.links = {ById(volume)};
    if (kind != 1) query.serial = volume;
    const DeviceWaitId id = Wait(query, milliseconds(Below(100'000)));
    wanted_[id] = volume;
  }

  void ChangeADisk() {
    const std::string name = "sd" + std::string(1, static_cast<char>('a' + Below(kNames)));
    const auto plugged = plugged_.find(name);
    if (plugged == plugged_.end()) {
      const std::string volume = "vol-" + std::to_string(Below(kVolumes));
      for (const auto& [other, held] : plugged_) {
        if (held == volume) return;
      }
      udev_.Plug(Volume(name, volume));
      plugged_[name] = volume;
      if (Below(2) == 0) udev_.Process(name);
    } else if (Below(3) == 0) {
      udev_.Process(name);
    } else {
      udev_.Unplug(name, Below(2) == 0);
      plugged_.erase(plugged);
    }
  }

  void Judge() {
    for (const auto& [id, answer] : answers_) {
      if (!answer.ok()) {
        EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded) << answer.error().ToString();
        ++expired_;
      } else if (answer->facts.serial == wanted_.at(id)) {
        ++right_;
      } else {
        ++wrong_;
      }
    }
  }

  std::mt19937_64 random_;
  std::map<DeviceWaitId, std::string> wanted_;
  std::map<std::string, std::string> plugged_;  // name: volume
};

TEST(DeviceWaiterRandom, NoWaitGetsAnotherDisk) {
  const char* seed = std::getenv("VOLUMED_SEED");
  const uint64_t first = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
  uint64_t right = 0, wrong = 0, expired = 0, refused = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    RandomLife life(first + i);
    life.Run();
    EXPECT_EQ(life.wrong_, 0u);
    wrong += life.wrong_;
    right += life.right_;
    expired += life.expired_;
    refused += life.refused();
  }
  std::cout << right << " found, " << expired << " expired, " << refused << " refused, " << wrong
            << " wrong\n";
  // The test means something only if both happen often.
  EXPECT_GT(right, 1000u);
  EXPECT_GT(expired, 1000u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace volumed
