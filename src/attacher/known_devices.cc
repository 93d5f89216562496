#include "attacher/known_devices.h"

#include "attacher/device_query.h"

namespace volumed {

void KnownDevices::Reset(const std::vector<CatalogDevice>& records) {
  std::map<DeviceNumber, Device> old;
  old.swap(devices_);
  bearers_.clear();
  nameless_.clear();
  for (const CatalogDevice& record : records) {
    Device& device = devices_[record.number];
    const auto before = old.find(record.number);
    if (before != old.end() && record.disk_sequence != 0 &&
        before->second.record.disk_sequence == record.disk_sequence) {
      device = std::move(before->second);
    }
    device.record = record;
    Index(device);
    AskIfNameless(device);
  }
}

void KnownDevices::Update(const CatalogDevice& record) {
  Device& device = devices_[record.number];
  Unindex(device);
  if (record.disk_sequence == 0 || device.record.disk_sequence != record.disk_sequence) {
    device = {};
    device.record = record;
    AskIfNameless(device);
  }
  device.record = record;
  Index(device);
}

void KnownDevices::Remove(DeviceNumber number) {
  const auto device = devices_.find(number);
  if (device == devices_.end()) return;
  Unindex(device->second);
  nameless_.erase(number);
  devices_.erase(device);
}

void KnownDevices::SetFacts(DeviceNumber number, const DeviceFacts& facts) {
  const auto found = devices_.find(number);
  if (found == devices_.end()) return;
  Device& device = found->second;
  if (device.record.disk_sequence != facts.identity.disk_sequence) return;
  Unindex(device);
  device.answered = true;
  device.fact_keys = OwnNameKeys(facts);
  Index(device);
}

void KnownDevices::SetSilent(DeviceNumber number) {
  const auto device = devices_.find(number);
  if (device != devices_.end()) device->second.answered = true;
}

std::vector<DeviceNumber> KnownDevices::Bearers(const std::string& key) const {
  const auto bearers = bearers_.find(key);
  if (bearers == bearers_.end()) return {};
  return {bearers->second.begin(), bearers->second.end()};
}

std::optional<CatalogDevice> KnownDevices::TakeNameless() {
  if (nameless_.empty()) return std::nullopt;
  const DeviceNumber number = *nameless_.begin();
  nameless_.erase(nameless_.begin());
  return devices_.at(number).record;
}

// Opens a device of which udevd has not yet told the names. If udevd has described it, its names
// are known.
void KnownDevices::AskIfNameless(const Device& device) {
  const bool nameless = !device.answered && device.record.whole_disk && !device.record.described;
  if (nameless) nameless_.insert(device.record.number);
}

void KnownDevices::Index(const Device& device) {
  for (const std::string& key : OwnNameKeys(device.record)) {
    bearers_[key].insert(device.record.number);
  }
  for (const std::string& key : device.fact_keys) bearers_[key].insert(device.record.number);
}

void KnownDevices::Unindex(const Device& device) {
  const auto drop = [this, &device](const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      const auto bearers = bearers_.find(key);
      if (bearers == bearers_.end()) continue;
      bearers->second.erase(device.record.number);
      if (bearers->second.empty()) bearers_.erase(bearers);
    }
  };
  drop(OwnNameKeys(device.record));
  drop(device.fact_keys);
}

}  // namespace volumed
