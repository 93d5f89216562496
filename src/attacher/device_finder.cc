#include "attacher/device_finder.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace volumed {
namespace {

// The thread that waits and the control thread share this, because the control thread may come to
// it after the other one has stopped waiting.
struct Answer {
  Mutex mu;
  CondVar changed;
  std::optional<Result<FoundDevice>> found GUARDED_BY(mu);
  bool cancelled GUARDED_BY(mu) = false;
  DeviceWaitId wait = 0;  // of the control thread alone

  void Give(Result<FoundDevice> result) {
    MutexLock lock(mu);
    if (!found) found = std::move(result);
    changed.NotifyAll();
  }
};

}  // namespace

Result<FoundDevice> WaitingDeviceFinder::WaitForDevice(const DeviceQuery& query,
                                                       const CallOptions& call) {
  const auto answer = std::make_shared<Answer>();
  scheduler_.Post([&waiter = waiter_, query, deadline = call.deadline, answer] {
    {
      MutexLock lock(answer->mu);
      if (answer->cancelled) return;
    }
    answer->wait = waiter.Wait(
        query, deadline, [answer](Result<FoundDevice> found) { answer->Give(std::move(found)); });
  });
  if (call.cancel != nullptr) {
    call.cancel->OnCancel([&scheduler = scheduler_, &waiter = waiter_, answer] {
      {
        MutexLock lock(answer->mu);
        answer->cancelled = true;
      }
      scheduler.Post([&waiter, answer] { waiter.Cancel(answer->wait); });
      answer->Give(Error::NotApplied(Code::kCancelled, "the wait for the device was cancelled"));
    });
  }
  Result<FoundDevice> found = [&]() -> Result<FoundDevice> {
    MutexLock lock(answer->mu);
    while (!answer->found) answer->changed.Wait(answer->mu);
    return *std::move(answer->found);
  }();
  if (call.cancel != nullptr) call.cancel->OnCancel(nullptr);
  return found;
}

}  // namespace volumed
