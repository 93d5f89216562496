// KnownDevices: which devices bear which serial or WWID, kept from events and listings, so that a
// search by one costs no walk over all devices. It may be out of date, and is asked for whom to
// look at only.
//
// Threads: the control thread. Blocks: never.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "os/device_catalog.h"
#include "os/device_requests.h"

namespace volumed {

class KnownDevices {
 public:
  // What is known now is just this; answers are kept of devices that are still the same. Those that
  // were asked and never answered are nameless again.
  void Reset(const std::vector<CatalogDevice>& records);
  // Takes in what an event says of one device; what it has said itself stays, if it is the same
  // disk.
  void Update(const CatalogDevice& record);
  void Remove(DeviceNumber number);
  // What the device said of itself. Ignored if it is another by now.
  void SetFacts(DeviceNumber number, const DeviceFacts& facts);
  // The device has nothing to say of itself, as a drive without a medium, until it changes.
  void SetSilent(DeviceNumber number);

  // The devices that bear a key of OwnNameKeys() ("serial:vol-1"); several if they are paths to one
  // disk.
  std::vector<DeviceNumber> Bearers(const std::string& key) const;
  // A whole disk that udevd has not described and that was not asked for its names yet; it is taken
  // for asked from now on. Nullopt if there is none.
  std::optional<CatalogDevice> TakeNameless();
  size_t size() const { return devices_.size(); }

 private:
  struct Device {
    CatalogDevice record;
    bool answered = false;
    std::vector<std::string> fact_keys;
  };

  void Index(const Device& device);
  void Unindex(const Device& device);
  void AskIfNameless(const Device& device);

  std::map<DeviceNumber, Device> devices_;
  std::unordered_map<std::string, std::set<DeviceNumber>> bearers_;
  std::set<DeviceNumber> nameless_;
};

}  // namespace volumed
