// Opening a block device by descriptor, and what the kernel says of it.
//
// Threads: any. Blocks: as the device does.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Opens the block device that `path` leads to. Nothing but a block device is ever opened for I/O:
// opening other devices can have effects. `flags` are open(2)'s; O_CLOEXEC is added. With O_EXCL
// the device is claimed: EBUSY while it is mounted or part of another device.
// Errors, not applied: InvalidArgument for a path that is not absolute; FailedPrecondition for what
// is no block device; errno of open(2).
Result<Descriptor> OpenBlockDevice(const std::string& path, int flags);

// The same of a node that is open, if only with O_PATH; `path` is for errors.
Result<Descriptor> OpenBlockDeviceNode(int node, const std::string& path, int flags);

// The same, which must be this device: FailedPrecondition, not applied, if not.
Result<Descriptor> OpenExpectedDevice(int node, const std::string& path,
                                      const DeviceIdentity& expected);

// A device that is open, and what it says of itself now.
struct OpenedDevice {
  Descriptor device;
  DeviceIdentity now;
};
// The device at the path, which must be this one in everything but its size and the UUID of what is
// on it: those change while it is in use. Errors, not applied, with `what`: as OpenBlockDevice and
// OpenExpectedDevice.
Result<OpenedDevice> OpenDeviceOfAnySize(const std::string& path, DeviceIdentity expected,
                                         const std::string& what);

Result<IdentifiedDevice> DoIdentifyDevice(const IdentifyDevice& request);

// Reads all of the identity but the UUID, which is not the device's, through a descriptor that is
// open for reading. Errors, not applied: FailedPrecondition without a medium; errno of the ioctls.
// What sysfs does not say is left empty.
Result<DeviceIdentity> ReadDeviceIdentity(int device, const std::string& path);

Result<DeviceFacts> ReadDeviceFacts(int device, const std::string& path);

// IdentifiedDevice::writes, of the device that is open. Errors: errno of fsync(2), not applied.
Result<std::string> CountDeviceWrites(int device, const DeviceIdentity& identity,
                                      const std::string& path);

// Whether the kernel lets nobody write to the device. Errors: errno, not applied.
Result<bool> IsReadOnlyDevice(int device, const std::string& path);

// The kernel's own name of the device, "sda1", "loop3", as its node in /dev has it: a '!' of sysfs
// is a '/' here. Errors: errno, not applied; ENOENT if there is no such device any more.
Result<std::string> KernelDeviceName(const DeviceIdentity& identity);

Result<DeviceUsers> DoCheckDeviceUse(const CheckDeviceUse& request);

}  // namespace volumed
