// FcDisks: finds the disks of a Fibre Channel volume by what the transport and the disks report,
// waits for them, and removes them from the node. Private to fc.
//
// A disk is the volume's if sysfs says so: its remote port has one of the wanted names and its LUN
// is the wanted one, or its WWID is one of the wanted ones. Links below /dev/disk are only waited
// for, and prove nothing. (Kubelet takes any by-path or by-id link that matches.)
// Source: kubernetes pkg/volume/fc/fc_util.go@v1.36.2 (searchDisk, findDisk, findDiskWWIDs,
// DetachDisk, DetachBlockFCDisk); systemd src/udev/udev-builtin-path_id.c (fc-, lun-).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attacher/device_finder.h"
#include "attacher/scsi_devices.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"
#include "plugins/fc_names.h"

namespace volumed {

// A LUN as udev writes it: "0" to "255", beyond that "0x0100000000000000". This function is pure.
std::string FcLunText(int64_t lun);

// Whether this disk, on a port of this name, is one of the named ones. `port_name` is as sysfs has
// it: "0x500a0982991b8dc5"; empty if the disk is on no remote port. This function is pure.
bool IsFcDisk(const FcNames& names, const ScsiDisk& disk, const std::string& port_name);

// The roots of the node's device trees; others than the defaults are for a recorded node.
struct FcDiskPlaces {
  std::string sys = "/sys";
  std::string dev = "/dev";
};

// How often sysfs is looked at while a disk is waited for, as no link announces that a disk became
// a path of a multipath device.
struct FcLooks {
  Duration first = std::chrono::seconds(1);  // doubling up to
  Duration longest = std::chrono::seconds(16);
};

// Threads: any; one call per volume at a time. Blocks: until the call's deadline.
class FcDisks {
 public:
  // All arguments outlive this object. If `finder` is null, nothing waits for devices, and WaitFor
  // fails.
  FcDisks(Kernel& kernel, DeviceFinder* finder, const Clock& clock, const FcDiskPlaces& places,
          const FcLooks& looks = {})
      : kernel_(kernel),
        finder_(finder),
        clock_(clock),
        places_(places),
        looks_(looks),
        scsi_(kernel, places.sys, places.dev) {}

  struct Found {
    std::vector<ScsiDisk> disks;     // in the order of their names
    std::optional<std::string> map;  // "/dev/dm-3": the multipath device made of them
  };
  // Finds what is on the node now, by sysfs alone: no device is opened. Found::map is the multipath
  // device of the first disk that has one.
  Result<Found> Find(const FcNames& names, const CallOptions& call);

  // Waits until the volume's device is on the node, and its opened descriptor has proven it to be
  // the one that sysfs shows. The device is the multipath device if there is one, else a disk. If
  // nothing is there, all SCSI hosts are scanned once.
  // Errors, not applied: DeadlineExceeded, with what was waited for, and why the scan failed, if it
  // did; FailedPrecondition if a multipath device has paths to another unit; Unimplemented if
  // nothing waits for devices. A scan that fails does not end the wait.
  Result<FoundDevice> WaitFor(const FcNames& names, const CallOptions& call);

  // Removes the volume's multipath device and disks, and every other disk of the same unit (WWID),
  // which are paths by ports that the volume does not name; it is idempotent. `mounted` is the
  // device that was mounted, if one was: a multipath device without paths can only be found by
  // that. Errors: those of ScsiDevices::Remove, maybe applied from the first removal on, and for a
  // disk whenever `mounted` is given.
  Status Remove(const FcNames& names, const std::optional<std::string>& mounted,
                const CallOptions& call);

  // Keeps which multipath device is mounted at `place`, for a second try after an unmount that has
  // failed to remove it; any other device is found by its names, and is not kept. What sysfs cannot
  // say is not kept either, since an unmount does not wait for it.
  void KeepMap(const SafePath& place, const std::string& mounted, const CallOptions& call)
      EXCLUDES(mu_);
  // That device, "/dev/dm-3", if it is still the same; nullopt if it is gone, and if another one
  // has its name.
  Result<std::optional<std::string>> KeptMap(const SafePath& place, const CallOptions& call)
      EXCLUDES(mu_);
  void ForgetMap(const SafePath& place) EXCLUDES(mu_);

  // Whether a disk that is on the node is the volume's. It asks sysfs for the name of the disk's
  // remote port if the volume names ports; a port that is gone is no match.
  Result<bool> IsDiskOf(const FcNames& names, const ScsiDisk& disk, const CallOptions& call);

  ScsiDevices& scsi() { return scsi_; }

 private:
  struct KnownMap {
    std::string node;
    std::string uuid;
  };

  Result<std::string> PortNameOf(const ScsiDisk& disk, const CallOptions& call);
  Result<std::vector<std::string>> LinksOf(const FcNames& names, const CallOptions& call);
  Result<DeviceQuery> QueryFor(const FcNames& names, const Found& found, const CallOptions& call);
  Result<DeviceQuery> MapQuery(const Found& found, const CallOptions& call);

  Kernel& kernel_;
  DeviceFinder* const finder_;
  const Clock& clock_;
  const FcDiskPlaces places_;
  const FcLooks looks_;
  ScsiDevices scsi_;
  Mutex mu_;
  std::map<std::string, KnownMap> kept_ GUARDED_BY(mu_);  // by the place
};

}  // namespace volumed
