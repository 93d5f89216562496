// IscsiSessions: the sessions that the kernel has with targets, and the disks on them, by sysfs.
// sysfs tells what is so; open-iscsi's records only tell what was wanted. Private to iscsi.
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

// One session of open-iscsi's with a target, as it is now.
struct IscsiSession {
  std::string name;         // "session1"
  std::string sysfs_path;   // "devices/platform/host2/session1"
  int host = 0;             // number of the SCSI host
  std::string pci_address;  // of a hardware adapter; empty for tcp
  std::string iface;        // "default"
  // The configured one and the present one: a target may redirect.
  std::vector<std::string> portals;
};

// One unit that a session shows; it may be a disk that the kernel has not named yet.
struct IscsiSessionDisk {
  int64_t lun = 0;
  std::string sysfs_path;  // "devices/platform/host2/session1/target2:0:0/2:0:0:1"
  std::string name;        // "sdb"; empty until the kernel has named it
  std::string wwid;        // "naa.6001405.."; empty if the unit tells none
};

// Threads: any. Blocks: for reads of sysfs, which do not ask the disks. Errors: those of the
// effects; a session that goes meanwhile is left out. So an empty answer may also mean that a
// session just went.
class IscsiSessions {
 public:
  explicit IscsiSessions(Kernel& kernel, std::string sys_root = "/sys")
      : kernel_(kernel), sys_root_(std::move(sys_root)) {}

  // The sessions with this target through disk.iface.
  Result<std::vector<IscsiSession>> Of(const IscsiDisk& disk, const CallOptions& call);
  // The session with this target through disk.iface that has the disk of this sysfs path; nullopt
  // if none.
  Result<std::optional<IscsiSession>> UnderDisk(const std::string& sysfs_path,
                                                const IscsiDisk& disk, const CallOptions& call);
  // Every unit of the session that the kernel has as a disk, of all LUNs.
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

// The first session with this portal, as it is configured or as it is now; null if there is none.
// It points into `sessions`. This function is pure.
const IscsiSession* SessionAt(const std::vector<IscsiSession>& sessions, const std::string& portal);

}  // namespace volumed
