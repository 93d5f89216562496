// PinDevice: opens again the device of a block volume that pods have from an earlier agent, and
// keeps it open (blockmapper/device_pins.h). MapVolume does so too, but only for a pod that is
// wanted: one that is terminating, or that no source has delivered yet, is mapped no more and uses
// its device all the same.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "operation/operation.h"
#include "operation/volume_record.h"
#include "os/kernel_requests.h"

namespace volumed {

inline constexpr const char* kPinDeviceOperation = "pin_device";  // this program's name

// In one boot nothing of a device changes but its size; afterwards only what it says of itself can
// be compared. Errors: FailedPrecondition, not applied, naming the difference, unless the device is
// the one that `record` says pods were given; if the record names none, any device is success.
Status CheckMappedDevice(const DeviceRecord& record, const IdentifiedDevice& device);

struct PinnedDevice {
  std::string device_path;  // of the device's own node
};

// If the device's record cannot be read, only the node that a pod has says which device it is: what
// is there is opened, as there is nothing to compare it with.
//
// Changes nothing of the volume, and writes no record. The device is only shared, so that no pod
// has to wait with its teardown for a device that does not answer.
// Threads: one at a time per device. Blocks: until the step's deadline.
// Errors, not applied: NotFound without a record of a mapped device or a pod's node; those of
// CheckMappedDevice and IdentifyDevice.
struct PinDevice : OperationOf<PinnedDevice> {
  PinDevice(UniqueVolumeName of_device, std::string of_plugin, std::string node = "")
      : device(std::move(of_device)),
        plugin_name(std::move(of_plugin)),
        pod_node(std::move(node)) {}

  OperationKey key() const { return OperationKey(device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      PinnedDevice& result) const;

  UniqueVolumeName device;
  std::string plugin_name;
  std::string pod_node;  // of a device whose record cannot be read; else empty
};

}  // namespace volumed
