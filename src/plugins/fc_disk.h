// FcDisks: finds the disks of a Fibre Channel volume by what the transport and the disks say of
// themselves, waits for them, and takes them away from the node. Private to fc.
//
// A disk is the volume's when sysfs says so: the remote port that it hangs on has one of the wanted
// names and its LUN is the wanted one, or its WWID is one of those. Links below /dev/disk are what
// is waited for, and prove nothing. (Kubelet takes whatever by-path or by-id link matches.)
// Source: kubernetes pkg/volume/fc/fc_util.go@v1.36.2 (searchDisk, findDisk, findDiskWWIDs,
// DetachDisk, DetachBlockFCDisk); systemd src/udev/udev-builtin-path_id.c (fc-, lun-).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attacher/device_finder.h"
#include "attacher/scsi_devices.h"
#include "base/clock.h"
#include "base/result.h"
#include "os/kernel.h"
#include "volumehost/fc_names.h"

namespace volumed {

// Of a LUN as udev names it: "0", "255", "0x0100000000000000" beyond. Pure.
std::string FcLunText(int64_t lun);

// Whether this disk, on a port of this name, is meant. Pure. `port_name` is as sysfs has it:
// "0x500a0982991b8dc5"; empty where the disk hangs on no remote port.
bool IsFcDisk(const FcNames& names, const ScsiDisk& disk, const std::string& port_name);

struct FcDiskPlaces {
  std::string sys = "/sys";
  std::string dev = "/dev";
};

// Threads: any; one call per volume at a time. Blocks: until the call's deadline.
class FcDisks {
 public:
  // All outlive it. `finder` null: nothing waits for devices, and WaitFor says so.
  FcDisks(Kernel& kernel, DeviceFinder* finder, const Clock& clock, const FcDiskPlaces& places)
      : kernel_(kernel),
        finder_(finder),
        clock_(clock),
        places_(places),
        scsi_(kernel, places.sys, places.dev) {}

  struct Found {
    std::vector<ScsiDisk> disks;     // in the order of their names
    std::optional<std::string> map;  // "/dev/dm-3": the multipath device made of them
  };
  // What is there now, by sysfs alone: no device is opened.
  Result<Found> Find(const FcNames& names, const CallOptions& call);

  // Waits until the volume's device is there, and has proven by its opened descriptor to be the one
  // that sysfs shows: the multipath device where there is one, else a disk. Where nothing is there,
  // all SCSI hosts are scanned once.
  // Errors, not applied: DeadlineExceeded, with what was waited for and why the scan failed, if it
  // did; FailedPrecondition for a multipath device that has paths to another unit.
  Result<FoundDevice> WaitFor(const FcNames& names, const CallOptions& call);

  // Takes the volume's multipath device and disks away; idempotent. `mounted`: the device that was
  // mounted, if one was; a multipath device whose paths are gone is found by nothing else. Errors:
  // those of ScsiDevices::Remove.
  Status Remove(const FcNames& names, const std::optional<std::string>& mounted,
                const CallOptions& call);

  // Whether a disk that is on the node is the volume's.
  Result<bool> IsDiskOf(const FcNames& names, const ScsiDisk& disk, const CallOptions& call);

  ScsiDevices& scsi() { return scsi_; }

 private:
  Result<std::string> PortNameOf(const ScsiDisk& disk, const CallOptions& call);
  Result<std::vector<std::string>> LinksOf(const FcNames& names, const CallOptions& call);
  Result<DeviceQuery> QueryFor(const FcNames& names, const Found& found, const CallOptions& call);
  Result<DeviceQuery> MapQuery(const Found& found, const CallOptions& call);

  Kernel& kernel_;
  DeviceFinder* const finder_;
  const Clock& clock_;
  const FcDiskPlaces places_;
  ScsiDevices scsi_;
};

}  // namespace volumed
