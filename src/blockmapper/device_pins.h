// DevicePins: a keeper (os/device_keeper.h) of each device that is mapped into pods.
//
// What it is for: as long as it is open, the kernel gives the device's number (major:minor) to no
// other device, a loop device keeps its file, and a device that is pulled out does not come back
// under the same number as somebody else's. A pod's container has a node with that number, and the
// number alone. Kubelet holds the device by a loop device for each pod and volume, which outlives
// it, leaks, and cannot be found again behind links or without its node (kubernetes #102408,
// #109132, #96888). A keeper ends with this process, whatever becomes of it, and a new agent starts
// another one when it maps what it finds, the device's identity compared with the record. It claims
// nothing, so the pod may open the device as it likes, with O_EXCL too. That it is a process of its
// own lets this one end while a disk does not answer.
//
// Between the end of an agent and the start of the next nobody has it open.
#pragma once

#include <cstddef>
#include <map>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: never, but for Release.
class DevicePins {
 public:
  // Keeps the pin until Release(). A pin that is kept for the volume already gives way. One that is
  // null is kept like any other, and nothing has the device open.
  void Keep(const UniqueVolumeName& volume, DevicePin pin) EXCLUDES(mu_);
  // Gives the pin up, if one is kept, and waits until the device is closed. Whoever closes it last
  // waits until what was written to it is there, which is why FlushDevice comes first. False if
  // that took longer than `patience`, for which this blocks at most: the pin is there still.
  bool Release(const UniqueVolumeName& volume, Duration patience) EXCLUDES(mu_);
  // Whether it is kept: also that nobody has killed the keeper.
  bool Has(const UniqueVolumeName& volume) const EXCLUDES(mu_);
  size_t size() const EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  std::map<UniqueVolumeName, DevicePin> pins_ GUARDED_BY(mu_);
};

}  // namespace volumed
