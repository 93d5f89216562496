// ScsiDevices: SCSI disks and the multipath devices made of them, by what sysfs says of them and by
// its attributes: hosts are scanned, disks asked for their size again, and disks taken away from
// the node once nothing is cached of them and nobody uses them. iSCSI and Fibre Channel share it.
//
// Linux, not this class, decides when a disk is gone: to write to its `delete` waits for that, so
// that nothing is polled.
// Source: kubernetes pkg/volume/fc/fc_util.go, pkg/volume/iscsi/iscsi_util.go,
// pkg/volume/util/device_util_linux.go@v1.36.2; Linux Documentation/scsi, Documentation/ABI/testing
// (sysfs-block, sysfs-class-scsi_host); multipath(8), multipathd(8).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/device_catalog.h"
#include "os/kernel.h"

namespace volumed {

// A SCSI disk as sysfs has it now.
struct ScsiDisk {
  std::string name;     // "sdb"
  std::string node;     // "/dev/sdb"
  std::string address;  // "3:0:0:1": host, channel, target, LUN
  // Below the sysfs root, links followed:
  // "devices/pci0000:00/0000:00:05.0/host3/rport-3:0-0/target3:0:0/3:0:0:1".
  std::string sysfs_path;
  DeviceNumber number;
  int64_t lun = 0;
  std::string wwid;   // "naa.6001405..."; empty if the disk says none
  std::string state;  // "running", "offline", "transport-offline", ..
  bool running() const { return state == "running"; }
};

// A multipath device as sysfs has it now.
struct ScsiMap {
  DeviceNumber number;
  std::string uuid;  // "mpath-36001405.."
};

// Threads: any, one call per device at a time. Blocks: until the call's deadline; sysfs itself
// answers at once, but to delete a disk waits for what it still has to write.
//
// A device is named by its node or any link to it below the device root ("/dev/sdb",
// "/dev/mapper/mpatha", "/dev/disk/by-id/..").
class ScsiDevices {
 public:
  // The kernel outlives it. The roots are for tests on a recorded tree.
  explicit ScsiDevices(Kernel& kernel, std::string sys_root = "/sys", std::string dev_root = "/dev")
      : kernel_(kernel), sys_root_(std::move(sys_root)), dev_root_(std::move(dev_root)) {}

  // Asks one host for what it has there; nullopt stands for everything in that place. Errors:
  // NotFound, not applied, for a host that is not there; those of WriteAttribute.
  Status ScanHost(int host, std::optional<int> channel, std::optional<int> target,
                  std::optional<int64_t> lun, const CallOptions& call);
  // Asks all hosts for everything, also if one refuses; then the first refusal is the error.
  // NotFound, not applied, naming what is missing, on a node without SCSI hosts.
  Status RescanAllHosts(const CallOptions& call);

  // Nullopt: there is no such device. Errors, not applied: FailedPrecondition if it is no SCSI
  // disk; InvalidArgument for a path that does not lead below the device root.
  Result<std::optional<ScsiDisk>> FindDisk(const std::string& disk, const CallOptions& call);
  // Returns the node, "/dev/sdb", of a device by its number (makedev(3)), whatever kind it is.
  // Nullopt: there is none.
  Result<std::optional<std::string>> NodeOf(uint64_t device_number, const CallOptions& call);
  // Every SCSI disk of the node, in the order of their names.
  Result<std::vector<ScsiDisk>> ListDisks(const CallOptions& call);

  // Returns the node, "/dev/dm-3", of the multipath device of which the disk is a path. Nullopt: it
  // is a path of none. What else is made of a disk (a logical volume, an encrypted device) does not
  // count.
  Result<std::optional<std::string>> MultipathOf(const std::string& disk, const CallOptions& call);
  // Returns the nodes, "/dev/sdb" and "/dev/sdc", of what a device is made of; empty for one that
  // is made of nothing, and for one that is not there.
  Result<std::vector<std::string>> PathsOf(const std::string& dm, const CallOptions& call);
  // False also for a device that is not there.
  Result<bool> IsMultipath(const std::string& device, const CallOptions& call);
  // NotFound, not applied, for one that is not there.
  Result<ScsiMap> DescribeMap(const std::string& dm, const CallOptions& call);

  // The disk, or each path of the multipath device that runs, is asked for its size; the multipath
  // device takes the new one over.
  // Errors: FailedPrecondition, not applied, naming the disks, if none could be asked. Unavailable,
  // maybe applied, if the multipath device has not the size of those that were asked: a path that
  // is down keeps it from that, and is named. FailedPrecondition, maybe applied, if all paths run
  // and multipathd refused. NotFound, naming multipath-tools, if the tool is missing.
  Status RescanSize(const std::string& device, const CallOptions& call);

  // Takes a disk, or a multipath device with its paths, away from the node: nobody uses it, what is
  // cached is written, the map is flushed, and each disk is deleted. Idempotent: what is not there
  // is success, and a call that ended half way is continued by the next, given the multipath device
  // or any disk that is left.
  // Errors: FailedPrecondition for what is in use, naming who holds it; EIO for what cannot be
  // written (but a disk that is not running, or a multipath device without a path that is, has
  // nothing to be asked: what it did not take is lost already); NotFound naming multipath-tools if
  // a map is to be flushed and the tool is missing; Internal, maybe applied, if the map is still
  // there after a flush that ended well. Not applied before the map or the first disk is gone;
  // maybe applied from then on. `last`: names of those paths ("sdb") that go after the others, as
  // the caller knows the rest by them.
  Status Remove(const std::string& device, const CallOptions& call,
                const std::vector<std::string>& last = {});

 private:
  SafePath Sys(const std::string& relative) const;
  Result<std::optional<std::string>> NameOf(const std::string& device, const CallOptions& call);
  Result<std::string> Attribute(const std::string& relative, const CallOptions& call);
  Result<std::optional<ScsiDisk>> DiskByName(const std::string& name, const CallOptions& call);
  // The names in a directory of sysfs; none if it is missing.
  Result<std::vector<std::string>> NamesIn(const std::string& relative, const CallOptions& call);
  Result<bool> IsThere(const std::string& name, const CallOptions& call);
  Result<bool> IsMap(const std::string& name, const CallOptions& call);
  Result<int64_t> BytesOf(const std::string& name, const CallOptions& call);
  Result<bool> AnyRuns(const std::vector<std::string>& names, const CallOptions& call);
  Status ProveUnused(const std::string& name, const CallOptions& call);
  Result<ProgramEnd> RunMultipathTool(const std::string& tool,
                                      const std::vector<std::string>& arguments,
                                      const std::string& device, const CallOptions& call);
  // `answered`: names of paths that were asked; `silent`: of the others, and why.
  Status ResizeMap(const std::string& device, const std::vector<std::string>& answered,
                   const std::string& silent, const CallOptions& call);
  Status FlushMap(const std::string& name, const CallOptions& call);
  Status RemoveMultipath(const std::string& name, const std::vector<std::string>& last,
                         const CallOptions& call);
  Status RemoveDisk(const std::string& name, const CallOptions& call);

  Kernel& kernel_;
  const std::string sys_root_;
  const std::string dev_root_;
};

}  // namespace volumed
