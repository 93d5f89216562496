// IscsiAdmin: open-iscsi's iscsiadm, one function per call that volumes need, with its exit codes
// by name. It is never given a secret: those are written into open-iscsi's records
// (iscsi_records.h). Private to iscsi.
//
// Discovery keeps nothing in open-iscsi's database: kubelet's leaves a record of every target of
// the portal, and overwrites those that are there. A node's record is made for the wanted target
// alone. Source: kubernetes pkg/volume/iscsi/iscsi_util.go@v1.36.2; iscsiadm(8), open-iscsi
// include/iscsi_err.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/kernel.h"
#include "plugins/iscsi_disk.h"

namespace volumed {

// How iscsiadm ends, as far as something depends on it.
enum class IscsiExit {
  kSuccess = 0,
  kSessionNotFound = 2,
  kLoginFailed = 5,
  kDatabase = 6,
  kTransportTimeout = 8,
  kTransportNotFound = 12,
  kSessionExists = 15,
  kNoAnswerFromDaemon = 18,
  kFatalLogin = 19,
  kDaemonNotRunning = 20,
  kNoObjectsFound = 21,
  kAuthenticationFailed = 24,
};

struct IscsiIface {
  std::string transport = "tcp";
  std::map<std::string, std::string> settings;  // "iface.transport_name": those that have a value
};
// Of `iscsiadm -m iface -I .. -o show`. Pure.
IscsiIface ParseIfaceShow(const std::string& output);

struct DiscoveredPortal {
  std::string portal;  // "10.0.0.1:3260"
  std::string group;   // the target portal group's tag
  std::string iqn;
  friend bool operator==(const DiscoveredPortal&, const DiscoveredPortal&) = default;
};
// Of a discovery: "10.0.0.1:3260,1 iqn.2026-01.lab:t". Other lines are messages. Pure.
std::vector<DiscoveredPortal> ParseDiscovery(const std::string& output);

struct IscsiAdminOptions {
  std::string program = "/usr/sbin/iscsiadm";
  // Of one call; a dead portal may hold it up. open-iscsi's own patience is 15 s a try and five
  // tries for a discovery, 120 s for a login.
  Duration timeout = std::chrono::seconds(130);
};

// Threads: any, one call per target at a time. Blocks: until the call's deadline, or the timeout.
// Errors, not applied where nothing was done for certain: NotFound naming open-iscsi where the
// program is missing; Unavailable naming iscsid.service; Unauthenticated for a login that the
// target refuses; Internal with the program's own words.
class IscsiAdmin {
 public:
  IscsiAdmin(Kernel& kernel, const Clock& clock, IscsiAdminOptions options)
      : kernel_(kernel), clock_(clock), options_(std::move(options)) {}

  Result<IscsiIface> ShowIface(const std::string& iface, const CallOptions& call);
  // disk.iface: as disk.init_iface, with the volume's initiator name. One that sessions use is
  // left.
  Status CloneIface(const IscsiDisk& disk, const IscsiIface& original, const CallOptions& call);
  Status DeleteIface(const std::string& iface, const CallOptions& call);

  // From a record of the portal, where discovery needs secrets; else without one.
  Result<std::vector<DiscoveredPortal>> Discover(const std::string& portal,
                                                 const std::string& iface, bool from_record,
                                                 const CallOptions& call);
  Status NewDiscoveryRecord(const std::string& portal, const std::string& iface,
                            const CallOptions& call);
  Status DeleteDiscoveryRecord(const std::string& portal, const std::string& iface,
                               const CallOptions& call);

  // Overwrites one that is there. `group` may be empty: then any will do.
  Status NewNode(const IscsiDisk& disk, const std::string& portal, const std::string& group,
                 const CallOptions& call);
  Status SetNode(const IscsiDisk& disk, const std::string& portal,
                 const std::map<std::string, std::string>& settings, const CallOptions& call);
  // What is not there is success.
  Status DeleteNode(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);
  Status Login(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);
  // No such session is success.
  Status Logout(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);

 private:
  Result<ProgramEnd> Run(std::vector<std::string> arguments, const CallOptions& call,
                         bool is_discovery = false);
  // Ends other than the tolerated ones are errors.
  Status Do(std::vector<std::string> arguments, const std::vector<IscsiExit>& tolerated,
            const CallOptions& call);
  Status DoWithNode(const IscsiDisk& disk, const std::string& portal,
                    const std::vector<std::string>& what, const std::vector<IscsiExit>& tolerated,
                    const CallOptions& call);

  Kernel& kernel_;
  const Clock& clock_;
  const IscsiAdminOptions options_;
};

}  // namespace volumed
