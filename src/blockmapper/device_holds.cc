#include "blockmapper/device_holds.h"

#include <utility>

namespace volumed {

// The descriptors that are given up are closed after the lock is released, because closing a device
// may take long.

void DeviceHolds::Keep(const UniqueVolumeName& volume, DeviceHold hold) {
  const MutexLock lock(mu_);
  holds_[volume].swap(hold);
}

bool DeviceHolds::Release(const UniqueVolumeName& volume) {
  DeviceHold given_up;
  const MutexLock lock(mu_);
  const auto found = holds_.find(volume);
  if (found == holds_.end()) return false;
  given_up = std::move(found->second);
  holds_.erase(found);
  return true;
}

bool DeviceHolds::Has(const UniqueVolumeName& volume) const {
  const MutexLock lock(mu_);
  return holds_.contains(volume);
}

size_t DeviceHolds::size() const {
  const MutexLock lock(mu_);
  return holds_.size();
}

}  // namespace volumed
