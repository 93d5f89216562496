// A DeviceWaiter on the real node: udev or kernel events, workers, the real scheduler, whose
// control thread is the caller's while it waits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "attacher/device_waiter.h"
#include "base/real_scheduler.h"
#include "os/udev_device_catalog.h"
#include "os/worker_kernel.h"

namespace volumed {

class WaiterOnNode {
 public:
  static Result<std::unique_ptr<WaiterOnNode>> Create(const std::string& worker_path,
                                                      UdevDeviceCatalogOptions options = {}) {
    std::unique_ptr<WaiterOnNode> node(new WaiterOnNode());
    ASSIGN_OR_RETURN(node->scheduler_, RealScheduler::Create());
    WorkerKernelOptions workers;
    workers.worker_path = worker_path;
    ASSIGN_OR_RETURN(node->kernel_, WorkerKernel::Create(workers, node->scheduler_->clock()));
    ASSIGN_OR_RETURN(node->catalog_, UdevDeviceCatalog::Create(node->scheduler_->loop(), options));
    node->waiter_ =
        std::make_unique<DeviceWaiter>(*node->scheduler_, *node->kernel_, *node->catalog_);
    return node;
  }
  ~WaiterOnNode() {
    if (scheduler_) RunUntil([this] { return scheduler_->load().busy == 0; });
  }

  // Looks after each millisecond. False after half a minute.
  bool RunUntil(const std::function<bool()>& done) {
    const TimePoint limit = scheduler_->clock().Now() + std::chrono::seconds(30);
    bool held = false;
    Task look = [&] {
      held = done();
      if (held || scheduler_->clock().Now() > limit) {
        scheduler_->Stop();
      } else {
        scheduler_->PostAfter(std::chrono::milliseconds(1), look);
      }
    };
    scheduler_->Post(look);
    scheduler_->Run();
    return held;
  }

  // Waits for one; the answer.
  Result<FoundDevice> Await(DeviceQuery query, Duration timeout = std::chrono::seconds(10)) {
    std::optional<Result<FoundDevice>> answer;
    Start(std::move(query), timeout, [&](Result<FoundDevice> found) { answer = std::move(found); });
    if (!RunUntil([&] { return answer.has_value(); })) {
      return Error::NotApplied(Code::kInternal, "the waiter has not answered");
    }
    return *answer;
  }
  DeviceWaitId Start(DeviceQuery query, Duration timeout, DeviceWaiter::Completion done) {
    return waiter_->Wait(std::move(query), Deadline::After(scheduler_->clock(), timeout),
                         std::move(done));
  }

  std::unique_ptr<RealScheduler> scheduler_;
  std::unique_ptr<WorkerKernel> kernel_;
  std::unique_ptr<UdevDeviceCatalog> catalog_;
  std::unique_ptr<DeviceWaiter> waiter_;

 private:
  WaiterOnNode() = default;
};

inline DeviceQuery LinkQuery(const std::string& link) {
  DeviceQuery query;
  query.links = {link};
  return query;
}

}  // namespace volumed
