// FakeDeviceFinder: finds the devices of a FakeKernel by the query's links, and waits for nothing:
// a device that is not there now does not come.
#pragma once

#include <string>

#include "attacher/device_finder.h"
#include "os/kernel.h"

namespace volumed {

// Threads: as the kernel's.
class FakeDeviceFinder final : public DeviceFinder {
 public:
  // The kernel of the agent, so that the look at the device is one of its calls.
  explicit FakeDeviceFinder(Kernel& kernel) : kernel_(kernel) {}

  Result<FoundDevice> WaitForDevice(const DeviceQuery& query, const CallOptions& call) override {
    RETURN_IF_ERROR(ValidateDeviceQuery(query));
    std::string why;
    for (const std::string& link : query.links) {
      const SafePath path{"/", link.substr(1), Resolve::kBeneath};
      const Result<IdentifiedDevice> device = kernel_.Call(IdentifyDevice{path}, call);
      if (!device.ok()) {
        if (device.error().maybe_applied()) return device.error();
        why += "; " + device.error().message();
        continue;
      }
      const DeviceIdentity& identity = device->facts.identity;
      CatalogDevice record;
      record.number = {identity.device_major, identity.device_minor};
      record.node = device->path;
      record.disk_sequence = identity.disk_sequence;
      const std::string refusal = RefuseFacts(query, record, device->facts);
      if (refusal.empty()) return FoundDevice{device->path, link, device->facts};
      why += "; " + link + ": " + refusal;
    }
    return Error::NotApplied(Code::kDeadlineExceeded,
                             "no device for " + DeviceQueryText(query) + why);
  }

 private:
  Kernel& kernel_;
};

}  // namespace volumed
