#include "blockmapper/device_pins.h"

#include <utility>

namespace volumed {

// The descriptors that are given up are closed after the lock is released, because closing a device
// may take long.

void DevicePins::Keep(const UniqueVolumeName& volume, DevicePin pin) {
  const MutexLock lock(mu_);
  pins_[volume].swap(pin);
}

bool DevicePins::Release(const UniqueVolumeName& volume) {
  DevicePin given_up;
  const MutexLock lock(mu_);
  const auto found = pins_.find(volume);
  if (found == pins_.end()) return false;
  given_up = std::move(found->second);
  pins_.erase(found);
  return true;
}

bool DevicePins::Has(const UniqueVolumeName& volume) const {
  const MutexLock lock(mu_);
  return pins_.contains(volume);
}

size_t DevicePins::size() const {
  const MutexLock lock(mu_);
  return pins_.size();
}

}  // namespace volumed
