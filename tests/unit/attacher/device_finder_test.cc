#include "attacher/device_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

#include "base/real_scheduler.h"
#include "fakes/fake_kernel.h"
#include "fakes/fake_udev.h"

namespace volumed {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr const char* kLink = "/dev/disk/by-id/virtio-vol-1";

// The control thread is a real one; each test waits on its own thread, as an operation does.
class DeviceFinderTest : public ::testing::Test {
 protected:
  DeviceFinderTest() {
    kernel_.AddDirectory("/dev/disk/by-id");
    control_ = std::thread([this] { scheduler_->Run(); });
  }
  ~DeviceFinderTest() override {
    OnControl([this] {
      waiter_.reset();
      scheduler_->Stop();
    });
    control_.join();
  }

  void OnControl(const std::function<void()>& task) {
    std::promise<void> done;
    scheduler_->Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  void Attach() {
    OnControl([this] {
      udev_.Plug({.name = "sda", .serial = "vol-1", .links = {kLink}});
      udev_.Process("sda");
    });
  }
  size_t Waiting() {
    size_t waiting = 0;
    OnControl([&] { waiting = waiter_->stats().waiting; });
    return waiting;
  }
  std::future<Result<FoundDevice>> Wait(Duration timeout, CancelToken* cancel = nullptr) {
    return std::async(std::launch::async, [this, timeout, cancel] {
      DeviceQuery query;
      query.links = {kLink};
      CallOptions call;
      call.deadline = Deadline::After(scheduler_->clock(), timeout);
      call.cancel = cancel;
      return finder_.WaitForDevice(query, call);
    });
  }
  void UntilItWaits() {
    while (Waiting() == 0) std::this_thread::yield();
  }

  std::unique_ptr<RealScheduler> scheduler_ = RealScheduler::Create().value();
  FakeKernel kernel_;
  FakeUdev udev_{*scheduler_, kernel_};
  std::unique_ptr<DeviceWaiter> waiter_ =
      std::make_unique<DeviceWaiter>(*scheduler_, kernel_, udev_);
  WaitingDeviceFinder finder_{*scheduler_, *waiter_};
  std::thread control_;
};

TEST_F(DeviceFinderTest, ADeviceThatComesLaterEndsTheWait) {
  auto found = Wait(seconds(600));
  UntilItWaits();
  Attach();
  const Result<FoundDevice> device = found.get();
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_EQ(device->node, "/dev/sda");
  EXPECT_EQ(device->found_by, DeviceFoundBy::kEvent);
}

TEST_F(DeviceFinderTest, TheDeadlineSaysWhatWasLookedFor) {
  const Result<FoundDevice> device = Wait(std::chrono::milliseconds(1)).get();
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(device.error().message(), HasSubstr(kLink));
}

TEST_F(DeviceFinderTest, AWaitThatIsCancelledIsLeftBehindByNobody) {
  CancelToken cancel;
  auto found = Wait(seconds(600), &cancel);
  UntilItWaits();
  cancel.Cancel();
  const Result<FoundDevice> device = found.get();
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), Code::kCancelled);
  EXPECT_FALSE(device.error().maybe_applied());
  EXPECT_EQ(Waiting(), 0u);
  // Cancelled before it began.
  EXPECT_EQ(Wait(seconds(600), &cancel).get().error().code(), Code::kCancelled);
  EXPECT_EQ(Waiting(), 0u);
}

}  // namespace
}  // namespace volumed
