// A DeviceWaiter in a simulated world, and its answers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attacher/device_waiter.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_kernel.h"
#include "fakes/fake_udev.h"

namespace volumed {

inline std::string ById(const std::string& volume) { return "/dev/disk/by-id/virtio-" + volume; }

// What a cloud gives a volume: a serial, and a link made of it.
inline FakeDisk Volume(const std::string& name, const std::string& volume) {
  FakeDisk disk;
  disk.name = name;
  disk.serial = volume;
  disk.links = {ById(volume)};
  return disk;
}

class WaiterWorld {
 public:
  explicit WaiterWorld(uint64_t seed = 1) : scheduler_(seed) {
    kernel_.AddDirectory("/dev/disk/by-id");
    kernel_.SetClock(&scheduler_.clock());
  }

  // Plugged and processed, with the time that this takes.
  void Attach(const FakeDisk& disk) {
    udev_.Plug(disk);
    udev_.Process(disk.name);
  }
  DeviceWaitId Wait(DeviceQuery query, Duration timeout = std::chrono::seconds(60)) {
    // The completion needs the id, which it comes before only if it is called too early.
    auto id = std::make_shared<DeviceWaitId>(0);
    *id = waiter_->Wait(std::move(query), Deadline::After(scheduler_.clock(), timeout),
                        [this, id](Result<FoundDevice> found) {
                          EXPECT_NE(*id, 0u) << "completed inside Wait()";
                          EXPECT_TRUE(scheduler_.OnControlThread());
                          EXPECT_TRUE(answers_.emplace(*id, std::move(found)).second) << "twice";
                        });
    return *id;
  }
  DeviceWaitId WaitForLink(const std::string& path, Duration timeout = std::chrono::seconds(60)) {
    DeviceQuery query;
    query.links = {path};
    return Wait(std::move(query), timeout);
  }
  void Settle() { scheduler_.RunFor(Duration::zero()); }

  bool answered(DeviceWaitId id) const { return answers_.count(id) != 0; }
  const FoundDevice& Found(DeviceWaitId id) const {
    const auto answer = answers_.find(id);
    static const FoundDevice kNone;
    if (answer == answers_.end() || !answer->second.ok()) {
      ADD_FAILURE() << "not found: "
                    << (answer == answers_.end() ? "no answer" : answer->second.error().ToString());
      return kNone;
    }
    return *answer->second;
  }
  Error Failure(DeviceWaitId id) const {
    const auto answer = answers_.find(id);
    if (answer == answers_.end() || answer->second.ok()) {
      ADD_FAILURE() << "no failure";
      return Error::NotApplied(Code::kUnknown, "");
    }
    return answer->second.error();
  }

  SimulatedScheduler scheduler_;
  FakeKernel kernel_;
  FakeUdev udev_{scheduler_, kernel_};
  std::unique_ptr<DeviceWaiter> waiter_ =
      std::make_unique<DeviceWaiter>(scheduler_, kernel_, udev_);
  std::map<DeviceWaitId, Result<FoundDevice>> answers_;
};

}  // namespace volumed
