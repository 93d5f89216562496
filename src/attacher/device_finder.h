// DeviceFinder: how an operation, which runs beside the control thread, waits for a device.
#pragma once

#include "attacher/device_query.h"
#include "attacher/device_waiter.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any but the control thread. Blocks: until the device is there and proven to be the one
// that is wanted, until the call's deadline, or until it is cancelled.
class DeviceFinder {
 public:
  virtual ~DeviceFinder() = default;
  // Of the call, the deadline (a finite one) and the cancel token count; the token's hook is taken
  // for as long as this waits. Errors: those of DeviceWaiter::Wait; Cancelled, not applied.
  virtual Result<FoundDevice> WaitForDevice(const DeviceQuery& query, const CallOptions& call) = 0;
};

// Waits by DeviceWaiter, on the control thread. Scheduler and waiter outlive the finder, and the
// finder every call of it.
class WaitingDeviceFinder final : public DeviceFinder {
 public:
  WaitingDeviceFinder(Scheduler& scheduler, DeviceWaiter& waiter)
      : scheduler_(scheduler), waiter_(waiter) {}
  Result<FoundDevice> WaitForDevice(const DeviceQuery& query, const CallOptions& call) override;

 private:
  Scheduler& scheduler_;
  DeviceWaiter& waiter_;
};

}  // namespace volumed
