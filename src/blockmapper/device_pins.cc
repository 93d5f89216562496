#include "blockmapper/device_pins.h"

#include <utility>

#include "os/device_keeper.h"

namespace volumed {

void DevicePins::Keep(const UniqueVolumeName& volume, DevicePin pin) {
  const MutexLock lock(mu_);
  pins_[volume].swap(pin);
}

bool DevicePins::Release(const UniqueVolumeName& volume, Duration patience) {
  DevicePin given_up;
  {
    const MutexLock lock(mu_);
    const auto found = pins_.find(volume);
    if (found == pins_.end()) return true;
    given_up = found->second;
  }
  if (given_up && !LetDeviceGo(*given_up, patience)) return false;
  const MutexLock lock(mu_);
  const auto found = pins_.find(volume);
  if (found != pins_.end() && found->second == given_up) pins_.erase(found);
  return true;
}

bool DevicePins::Has(const UniqueVolumeName& volume) const {
  const MutexLock lock(mu_);
  const auto found = pins_.find(volume);
  return found != pins_.end() && (!found->second || IsDeviceKept(*found->second));
}

size_t DevicePins::size() const {
  const MutexLock lock(mu_);
  return pins_.size();
}

}  // namespace volumed
