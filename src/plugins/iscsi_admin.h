// IscsiAdmin: open-iscsi's iscsiadm, with one function for each call that volumes need, and names
// for its exit codes. It never gets a secret: those are written into open-iscsi's records
// (iscsi_records.h). Private to iscsi.
//
// Discovery leaves nothing in open-iscsi's database; kubelet's leaves a record of every target of
// the portal, and overwrites existing ones. A node's record is made only for the wanted target.
// Source: kubernetes pkg/volume/iscsi/iscsi_util.go@v1.36.2; iscsiadm(8), open-iscsi
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

// Those exit codes of iscsiadm on which something depends.
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

// An interface of open-iscsi's: by which transport and under which name sessions are made.
struct IscsiIface {
  std::string transport = "tcp";
  // "iface.transport_name" and so on; only settings that have a value.
  std::map<std::string, std::string> settings;
};
// Parses the output of `iscsiadm -m iface -I .. -o show`. This function is pure.
IscsiIface ParseIfaceShow(const std::string& output);

// One line of a discovery: a portal by which a target can be reached.
struct DiscoveredPortal {
  std::string portal;  // "10.0.0.1:3260"
  std::string group;   // the target portal group's tag
  std::string iqn;
  friend bool operator==(const DiscoveredPortal&, const DiscoveredPortal&) = default;
};
// Parses the lines of a discovery, "10.0.0.1:3260,1 iqn.2026-01.lab:t"; other lines are messages.
// This function is pure.
std::vector<DiscoveredPortal> ParseDiscovery(const std::string& output);

struct IscsiAdminOptions {
  std::string program = "/usr/sbin/iscsiadm";
  // The limit for one call, which a dead portal may hold up. open-iscsi itself waits 15 s a try,
  // with five tries for a discovery, and 120 s for a login.
  Duration timeout = std::chrono::seconds(130);
};

// Threads: any, one call per target at a time. Blocks: until the call's deadline, or the timeout.
// Errors: NotFound, not applied, naming open-iscsi, if the program is missing; those of RunProgram.
// If the program ran and failed, the error has its words and is maybe applied (not applied for
// ShowIface, which only asks): Unavailable naming iscsid.service, or for a portal that does not
// answer; Unauthenticated if the target refuses a login; NotFound for what open-iscsi has no record
// or session of; FailedPrecondition without the kernel's transport; else Internal.
class IscsiAdmin {
 public:
  IscsiAdmin(Kernel& kernel, const Clock& clock, IscsiAdminOptions options)
      : kernel_(kernel), clock_(clock), options_(std::move(options)) {}

  // The settings of an interface as open-iscsi has it. Changes nothing.
  Result<IscsiIface> ShowIface(const std::string& iface, const CallOptions& call);
  // Makes disk.iface as a copy of disk.init_iface with the volume's initiator name. An interface
  // that sessions use is left as it is.
  Status CloneIface(const IscsiDisk& disk, const IscsiIface& original, const CallOptions& call);
  // Succeeds if there is no such interface.
  Status DeleteIface(const std::string& iface, const CallOptions& call);

  // Uses a record of the portal if discovery needs secrets, and none otherwise. Returns every
  // target and portal that the portal names, in its order. It runs in a scope of its own, since it
  // talks to the portal itself.
  Result<std::vector<DiscoveredPortal>> Discover(const std::string& portal,
                                                 const std::string& iface, bool from_record,
                                                 const CallOptions& call);
  // For Discover() with a record: it gives the secrets a place to be written to.
  Status NewDiscoveryRecord(const std::string& portal, const std::string& iface,
                            const CallOptions& call);
  // Succeeds if there is no such record.
  Status DeleteDiscoveryRecord(const std::string& portal, const std::string& iface,
                               const CallOptions& call);

  // Overwrites an existing record. `group` may be empty: any group will do.
  Status NewNode(const IscsiDisk& disk, const std::string& portal, const std::string& group,
                 const CallOptions& call);
  // Changes settings ("node.startup") of a record that is there. Never for secrets: they would be
  // arguments.
  Status SetNode(const IscsiDisk& disk, const std::string& portal,
                 const std::map<std::string, std::string>& settings, const CallOptions& call);
  // Succeeds if there is no such record.
  Status DeleteNode(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);
  // Succeeds if there is such a session already.
  Status Login(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);
  // Succeeds if there is no such session.
  Status Logout(const IscsiDisk& disk, const std::string& portal, const CallOptions& call);

 private:
  Result<ProgramEnd> Run(std::vector<std::string> arguments, const CallOptions& call,
                         bool is_discovery = false);
  // Exit codes other than the tolerated ones are errors.
  Status Do(const std::vector<std::string>& arguments, const std::vector<IscsiExit>& tolerated,
            const CallOptions& call);
  Status DoWithNode(const IscsiDisk& disk, const std::string& portal,
                    const std::vector<std::string>& what, const std::vector<IscsiExit>& tolerated,
                    const CallOptions& call);

  Kernel& kernel_;
  const Clock& clock_;
  const IscsiAdminOptions options_;
};

}  // namespace volumed
