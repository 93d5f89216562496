// DeviceQuery: which block device somebody waits for, and whether one that is there is that one.
//
// A link or a node name finds a device and proves nothing: by-id links outlive their disks, and
// names are given again. What proves is what udevd says of this very device (same disk sequence)
// and what the device itself says through its opened descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/device_catalog.h"
#include "os/device_requests.h"

namespace volumed {

// All that is given must hold of one device; of several links, any one leads to it.
struct DeviceQuery {
  // ---- ways to find it; at least one
  std::vector<std::string> links;      // "/dev/disk/by-id/..", "/dev/mapper/..", "/dev/sdb"
  std::optional<DeviceNumber> number;  // major:minor
  std::string sysfs_path;              // "/sys/block/sdb", "/sys/class/block/..", "/sys/devices/.."
  std::string serial;                  // the unit's, or as udevd's ID_SERIAL[_SHORT] has it
  std::string wwid;                    // "naa.5..", "0x5..", "36..", "eui.0..": compared alike
  // ---- asked of the device alone
  int64_t size_bytes = 0;      // exactly; 0: any
  uint64_t disk_sequence = 0;  // 0: any
  std::string stable_id;       // DeviceIdentity::stable_id; empty: any
};

// Whether there is a way to find it, and links and the sysfs path are clean and below /dev and
// /sys: a look anywhere else may hang. Errors, not applied: InvalidArgument naming what is wrong.
Status ValidateDeviceQuery(const DeviceQuery& query);

// "link /dev/disk/by-id/virtio-vol-1, serial vol-1, size 1073741824"
std::string DeviceQueryText(const DeviceQuery& query);

// A device is among the wanted ones only if a key of its record is one of the query's: what an
// index of many queries goes by. ("link:/dev/sdb", "number:8:16", "serial:vol-1" ..)
std::vector<std::string> DeviceKeys(const DeviceQuery& query);
std::vector<std::string> DeviceKeys(const CatalogDevice& record);
// Of these, the ones by which a whole disk names itself; the same texts. A partition has none,
// since udevd gives it the names of its disk.
std::vector<std::string> OwnNameKeys(const CatalogDevice& record);
std::vector<std::string> OwnNameKeys(const DeviceFacts& facts);

// Returns a World Wide Identifier in one spelling, in lower case, whoever wrote it: the kernel
// ("naa.600.."), udevd ("0x600.."), scsi_id and multipath ("3600.."). It is for comparing, not for
// showing.
std::string NormalWwid(const std::string& wwid);

// Why the device of this record is not taken for the wanted one, or not yet; empty if nothing
// speaks against a look at the device itself. `link` is the query's link that led here, or empty.
// The text is for people, and goes on after "<node>: ".
std::string RefuseRecord(const DeviceQuery& query, const CatalogDevice& record,
                         const std::string& link, DeviceEventSource source);

// Each fact that speaks against the opened device; empty if it is the wanted one, and still the one
// of the record. Serial and WWID may be those that udevd has of this very disk.
std::string RefuseFacts(const DeviceQuery& query, const CatalogDevice& record,
                        const DeviceFacts& facts);

}  // namespace volumed
