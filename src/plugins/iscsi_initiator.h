// IscsiInitiator: brings the disk of an iSCSI volume to the node (sessions, scan, device), and
// removes it again (device, sessions, records). Both can be repeated at any time, and one finishes
// what an interrupted other began: the kernel tells what is there, and the file that is written
// beside the volume's place before the first login tells what was wanted.
//
// All volumes of a target and portal share a session. It is ended only when the kernel has no other
// disk on it and no other volume has begun to use it; so all work on one target is done one call at
// a time.
//
// Differences from kubelet's, on purpose: docs/OPERATIONS.md, "iSCSI".
// Source: kubernetes pkg/volume/iscsi/iscsi_util.go@v1.36.2 (AttachDisk, DetachDisk,
// DetachBlockISCSIDisk).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attacher/device_finder.h"
#include "attacher/scsi_devices.h"
#include "plugins/iscsi_admin.h"
#include "plugins/iscsi_disk.h"
#include "plugins/iscsi_records.h"
#include "plugins/iscsi_sessions.h"
#include "plugins/named_locks.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct IscsiOptions {
  IscsiAdminOptions admin;
  // Where open-iscsi may keep its records.
  std::vector<std::string> database_roots = {"/etc/iscsi", "/var/lib/iscsi"};
  // How long to wait for one disk, from the scan that finds it.
  Duration device_timeout = std::chrono::seconds(30);
  // How long to wait for the multipath device over disks that are there. Without that device a
  // single path is used.
  Duration multipath_timeout = std::chrono::seconds(10);
  // How long missing portals are tried again after the first one is there. (Kubelet tries five
  // rounds, however long they take.)
  Duration more_portals_timeout = std::chrono::seconds(30);
};

struct IscsiAttachRequest {
  IscsiVolume volume;
  SafePath place;  // of the volume on the node; iscsi.json goes there
  // Null: no secret is needed. It is used while the call lasts.
  const SecretObject* chap_secret = nullptr;
  // Reports what somebody should hear of although the attach succeeded. May be empty.
  std::function<void(const std::string& reason, const std::string& message)> warn;
};

// Threads: any; calls about one target wait for each other. Blocks: until the call's deadline.
class IscsiInitiator {
 public:
  // All arguments outlive this object.
  IscsiInitiator(VolumeHost& host, DeviceFinder& devices, const IscsiOptions& options);

  // Answers the device's path: udevd's link to the disk, or the multipath device. Errors: not
  // applied until iscsi.json is written, since nothing has to be removed then; maybe applied from
  // then on. A volume is attached as soon as one portal leads to its disk; portals that do not are
  // told to `warn`, and so is a disk of several portals without a multipath device.
  // FailedPrecondition if what udevd's link leads to is not the disk; the code of the last portal's
  // error if no portal leads to it.
  Result<std::string> AttachDisk(const IscsiAttachRequest& request, const CallOptions& call);
  // Removes the disk. REQUIRES: what was at `place` is already unmounted and unmapped. It is
  // idempotent; a place that is missing is success. Disks that another volume uses, and the
  // sessions that it needs, stay. The directory is removed only after everything else, and by the
  // caller for a block volume.
  // Errors: FailedPrecondition, naming the user, if somebody still uses a disk; that disk, all
  // sessions and the directory stay then. DeadlineExceeded and Cancelled, not applied, while
  // another call works on the target. What fails after the disks are gone is maybe applied.
  Status DetachDisk(const SafePath& place, const CallOptions& call);
  // The device of the volume at this place; nullopt if the node does not have it. Changes nothing.
  Result<std::optional<std::string>> FindDevice(const IscsiDisk& disk, const CallOptions& call);
  // Identifies the device that is at `path` now. Errors: FailedPrecondition, not applied, if it is
  // not this disk: neither one of its paths nor the multipath device over them.
  Result<DeviceIdentity> ProveDevice(const IscsiDisk& disk, const std::string& path,
                                     const CallOptions& call);
  // Whether a disk that is on the node is the volume's, by its session and its LUN.
  Result<bool> IsDiskOf(const IscsiDisk& disk, const ScsiDisk& found, const CallOptions& call);
  ScsiDevices& scsi() { return scsi_; }
  // Asks the target for the disk's size on every path.
  Status RescanSize(const IscsiDisk& disk, const CallOptions& call);

 private:
  struct Attach;  // one call of AttachDisk
  using PathDisks = std::vector<IscsiSessionDisk>;

  Status WriteFileFor(const IscsiAttachRequest& request, const CallOptions& call);
  Status PrepareIface(const IscsiDisk& disk, const CallOptions& call);
  Status LoginAll(Attach& attach, const CallOptions& call);
  Status AttachPortal(Attach& attach, const std::string& portal, const CallOptions& call);
  // Makes a record of the portal for a discovery with a secret, and writes down first that it is
  // this program's.
  Status BeginDiscovery(const Attach& attach, const std::string& portal, const CallOptions& call);
  // Deletes that record, and what says so. REQUIRES: the caller has the portal in discoveries_, as
  // for BeginDiscovery.
  Status EndDiscovery(const IscsiDisk& disk, const SafePath& place, const std::string& portal,
                      const CallOptions& call);
  // Likewise, if a discovery for the volume at this place has left its record: its agent has ended
  // amid it, or the record could not be deleted. It takes the portal itself. REQUIRES: the caller
  // has none in discoveries_.
  Status EndLeftDiscovery(const IscsiDisk& disk, const SafePath& place, const CallOptions& call);
  Result<std::string> DiscoverGroup(const Attach& attach, const std::string& portal,
                                    const CallOptions& call);
  Status Login(const Attach& attach, const std::string& portal, const CallOptions& call);
  Result<std::string> WaitForDevice(Attach& attach, const CallOptions& call);
  Result<std::string> WaitForLinks(const Attach& attach, std::vector<std::string> links,
                                   Duration timeout, const CallOptions& call);

  // The multipath device over the volume's disks, by sysfs: "/dev/dm-3"; nullopt if there is none.
  Result<std::optional<std::string>> FindMap(const IscsiDisk& disk, const CallOptions& call);
  // Waits until udevd has finished with the device. `links` are the device's own; there may be
  // none.
  Result<std::string> WaitForMap(const Attach& attach, const std::string& map,
                                 std::vector<std::string> links, const CallOptions& call);

  // Proves by the kernel, not by links, that the device node is the disk.
  Status ProveNode(const IscsiDisk& disk, const std::string& node, const CallOptions& call);
  // The volume's own disks, one for each session.
  Result<PathDisks> DisksOf(const IscsiDisk& disk, const CallOptions& call);
  Result<IscsiDisk> LoadDisk(const SafePath& place, const CallOptions& call);
  // Removes the volume's disks one after the other. What fails after the first one is gone is maybe
  // applied.
  Status RemoveDevices(const IscsiDisk& disk, const CallOptions& call);
  Status RemovePath(const IscsiSessionDisk& path, const CallOptions& call);
  Status EndSessions(const IscsiDisk& disk, const SafePath& place, const CallOptions& call);
  // Other volumes with the same target and interface that are on this node, or are about to be.
  Result<std::vector<IscsiDisk>> OthersOf(const IscsiDisk& disk, const SafePath& place,
                                          const CallOptions& call);
  Result<std::vector<SafePath>> PlacesBelow(const SafePath& directory, const CallOptions& call);
  // Logs out of the portal and deletes its record of the node.
  Status EndSession(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);

  VolumeHost& host_;
  DeviceFinder& devices_;
  const IscsiOptions options_;
  IscsiAdmin admin_;
  IscsiRecords records_;
  IscsiSessions sessions_;
  ScsiDevices scsi_;
  NamedLocks targets_;
  // Portals whose discovery record is made, used or deleted. One at a time, and after the target.
  NamedLocks discoveries_;
};

}  // namespace volumed
