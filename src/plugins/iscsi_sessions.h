// IscsiSessions: the sessions that the kernel has with targets, and the disks on them, by sysfs.
// What it says is so; open-iscsi's records only say what was wanted. Private to iscsi.
// Source: Linux drivers/scsi/scsi_transport_iscsi.c; kubernetes
// pkg/volume/iscsi/iscsi_util.go@v1.36.2 (GetISCSIPortalHostMapForTarget).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "plugins/iscsi_disk.h"

namespace volumed {

struct IscsiSession {
  std::string name;                  // "session1"
  std::string sysfs_path;            // "devices/platform/host2/session1"
  int host = 0;                      // SCSI's
  std::string pci_address;           // of an adapter that does iSCSI itself; empty for tcp
  std::string iface;                 // "default"
  std::vector<std::string> portals;  // as it was told, and as it is now: a target may redirect
};

struct IscsiSessionDisk {
  int64_t lun = 0;
  std::string sysfs_path;  // "devices/platform/host2/session1/target2:0:0/2:0:0:1"
  std::string name;        // "sdb"; empty while the kernel has not named it
  std::string wwid;        // "naa.6001405.."; empty where the unit says none
};

// Threads: any. Blocks: never for long, sysfs does not ask the disks. Errors: those of the effects;
// a session that goes meanwhile is left out.
class IscsiSessions {
 public:
  explicit IscsiSessions(Kernel& kernel, std::string sys_root = "/sys")
      : kernel_(kernel), sys_root_(std::move(sys_root)) {}

  // With this target, through disk.iface.
  Result<std::vector<IscsiSession>> Of(const IscsiDisk& disk, const CallOptions& call);
  // The session with this target, through disk.iface, that a disk of this path in sysfs is on.
  Result<std::optional<IscsiSession>> UnderDisk(const std::string& sysfs_path,
                                                const IscsiDisk& disk, const CallOptions& call);
  // Every unit that the kernel has there as a disk, of all LUNs.
  Result<std::vector<IscsiSessionDisk>> DisksOf(const IscsiSession& session,
                                                const CallOptions& call);

 private:
  Result<std::optional<IscsiSession>> Look(const std::string& name, const IscsiDisk& disk,
                                           const CallOptions& call);
  Status AddPortals(IscsiSession& session, const CallOptions& call);
  Result<std::string> Attribute(const std::string& relative, const CallOptions& call);
  Result<std::vector<std::string>> NamesIn(const std::string& relative, const CallOptions& call);
  SafePath Sys(const std::string& relative) const;

  Kernel& kernel_;
  const std::string sys_root_;
};

// The session that is with this portal; null: none. Pure.
const IscsiSession* SessionAt(const std::vector<IscsiSession>& sessions, const std::string& portal);

}  // namespace volumed
