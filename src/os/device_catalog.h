// DeviceCatalog: which block devices the node has, as udevd or the kernel describes them, and news
// of them. What it says is a hint: a device's identity is read through its descriptor
// (IdentifyDevice). The real one is os/udev_device_catalog.h.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace volumed {

// The number of a block device. The kernel gives it to another device once nobody has this one
// open.
struct DeviceNumber {
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  std::string ToString() const {
    return std::to_string(device_major) + ":" + std::to_string(device_minor);
  }
  friend auto operator<=>(const DeviceNumber&, const DeviceNumber&) = default;
};

// A device as the catalog described it at one moment. Texts are bytes of the kernel, of udevd or of
// the device.
struct CatalogDevice {
  DeviceNumber number;
  std::string name;            // the kernel's: "loop7"
  std::string node;            // "/dev/loop7"
  std::string sysfs_path;      // "/sys/devices/virtual/block/loop7"
  uint64_t disk_sequence = 0;  // of the device that is there now; 0: the kernel has none
  bool whole_disk = true;
  // udevd has run its rules on this very device, not only on one that had the number before. Else
  // the rest is empty.
  bool described = false;
  // False for what udevd's rules keep from use: a path of a multipath device, a loop device without
  // a file.
  bool usable = true;
  std::vector<std::string> links;  // "/dev/disk/by-id/...": every name that it has, sorted
  std::vector<std::string> serials;
  std::vector<std::string> wwids;

  friend bool operator==(const CatalogDevice&, const CatalogDevice&) = default;
};

// Where a path below /dev leads, as far as that can be seen without leaving /dev.
struct DeviceLink {
  bool exists = false;
  std::string target;                  // of a link, as it is written; empty for a node
  std::optional<DeviceNumber> number;  // of the block device at its end
};

enum class DeviceEventSource {
  kUdev,    // udevd: a device comes with its links and properties
  kKernel,  // no udevd: a device comes as the kernel names it
};
std::string_view DeviceEventSourceName(DeviceEventSource source);  // "udev", "kernel"

struct DeviceEvent {
  bool removed = false;
  CatalogDevice record;  // as of the event
  bool resized = false;
  // The kernel tells it because a program asked for it: udevd, after somebody closed the device who
  // could write to it, or `udevadm trigger`. The disk itself is as it was. Of announcements only.
  bool by_program = false;
};

// Who wants to hear of devices. An event is valid during its call alone. Threads: the control
// thread.
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
  // A device came, changed or went, and udevd, if it is there, has finished with it.
  virtual void OnDevice(const DeviceEvent& event) = 0;
  // The kernel has it, or it has changed, or gone, and udevd has not finished with it: its OnDevice
  // follows. Of the record number, name, node, sequence and kind are there.
  virtual void OnAnnounced(const DeviceEvent&) {}
  // Anything may have come or gone: whoever waits for something looks again. `why` is for people.
  virtual void OnEventsLost(const std::string& why) = 0;
};

// Threads: the control thread. Blocks: for sysfs, /run and /dev only, never for a device.
class DeviceCatalog {
 public:
  virtual ~DeviceCatalog() = default;

  // There is one listener, which outlives the catalog or is taken away by nullptr.
  virtual void SetListener(DeviceListener* listener) = 0;
  virtual DeviceEventSource source() const = 0;
  // Looks whether udevd is there now; a change of the source is told as lost events.
  virtual void CheckSource() = 0;

  // Describes the device of this number, or of the kernel's name ("sdb"), as of now; nullopt if
  // there is no such device. Errors: errno, not applied.
  virtual Result<std::optional<CatalogDevice>> Find(DeviceNumber number) = 0;
  virtual Result<std::optional<CatalogDevice>> FindByName(const std::string& name) = 0;
  // Every block device of the node, in no order that means anything; one that goes meanwhile is
  // left out. Errors: errno, not applied.
  virtual Result<std::vector<CatalogDevice>> List() = 0;
  // `path` is absolute, clean and below /dev. What is missing is no error: see DeviceLink::exists.
  virtual DeviceLink ReadLink(const std::string& path) = 0;
};

}  // namespace volumed
