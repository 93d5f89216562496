// What is on a block device: signatures by libblkid, and the proof that there is nothing.
//
// Threads: any. Blocks: as the device does.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<DeviceProbe> DoProbeDevice(const ProbeDevice& request, const CallOptions& options);

// What of a ProbeDevice can be said through a descriptor that is open for reading, so that the same
// device is looked at and used. Without `prove_blank` only signatures are looked for.
struct ProbeDepth {
  bool prove_blank = true;
  bool full_scan = false;
};
Result<DeviceProbe> ProbeOpenDevice(int device, const std::string& path, ProbeDepth depth,
                                    const CallOptions& options);

// What is on an open file that holds a device's content: signatures alone, and of the identity
// nothing but the UUID.
Result<DeviceProbe> ProbeImage(int file, const std::string& path);

// A device that is what was expected, and stays so while the descriptor is open: the kernel gives
// its number to no other device meanwhile.
struct PinnedDevice {
  Descriptor device;   // read-only
  std::string source;  // a path for mount: the kernel's own name in /dev, or through the descriptor
};
// If the filesystem that was probed is of `fs_type`, its UUID is read from its superblock alone;
// anything else is looked at as a whole. Errors: those of OpenBlockDevice; FailedPrecondition, not
// applied, for another device.
Result<PinnedDevice> PinDevice(const std::string& path, const DeviceIdentity& expected,
                               const std::string& fs_type);

}  // namespace volumed
