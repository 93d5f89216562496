// CsiClient: the parts by which the agent has CSI drivers: sockets that are opened without trust,
// the table of drivers, their registration, and what is kept and counted of calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/csi_figures.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_command.h"
#include "csi/csi_context.h"
#include "csi/csi_drivers.h"
#include "csi/registration.h"
#include "csi/registry_watch.h"
#include "csi/rpc/csi_trace.h"
#include "csi/socket_dialer.h"
#include "metrics/exported_families.h"
#include "records/record_store.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// What connections to drivers use until the last one is gone. That may be after the client is: the
// scheduler has the last ones in its tasks, so this outlives the scheduler. Threads: any.
struct CsiConnectionParts {
  // They outlive this object; the clock is the machine's.
  CsiConnectionParts(const Clock& of_machine, ExportedFamilies& families)
      : clock(of_machine), trace(of_machine), figures(families) {}

  const Clock& clock;
  CsiTrace trace;
  CsiFigures figures;
  CsiStateWatch watch;
};

struct CsiClientSettings {
  std::string registry;  // the directory in which drivers register; absolute and clean
  SocketOwners owners;
  CsiDriversSettings drivers;
  CsiChannelOptions channel;
  std::shared_ptr<TrustedRoots> roots = std::make_shared<TrustedRoots>();
};

// Control thread; they do not block. Any may be empty.
struct CsiClientHooks {
  CsiDriversHooks drivers;
  // In the order of what happens to a driver.
  CsiDrivers::Listener happened;
  // The directory of registrations was looked into: after the first look, and when that goes
  // otherwise than before.
  std::function<void(const std::optional<Error>&)> looked;
};

// Threads: control, unless it says otherwise. Blocks: never.
class CsiClient {
 public:
  // They outlive this object, and the tasks that it posts.
  struct Parts {
    Scheduler& scheduler;
    EventLoop* loop;  // null: the directory is looked into once
    CsiConnectionParts& connections;
    RecordStore& records;
    Logger& log;
  };
  CsiClient(Parts parts, CsiClientSettings settings, CsiClientHooks hooks);
  ~CsiClient();
  CsiClient(const CsiClient&) = delete;
  CsiClient& operator=(const CsiClient&) = delete;

  // The rows that are to be loaded for Restore(), of each kind.
  static std::vector<OtherRecordKind> RecordKinds();
  // The drivers of earlier runs, and what was begun by hand, are known from now on; rows of another
  // kind are none of its business. REQUIRES: it is called before Start().
  void Restore(const std::string& kind, const LoadedRecords& rows);
  // Drivers may register from now on. REQUIRES: it is called once.
  void Start(std::shared_ptr<RegistryWatch> watch);

  // Valid as long as this object. Threads: any.
  CsiDrivers& drivers() { return drivers_; }
  const CsiDrivers& drivers() const { return drivers_; }
  CsiCommands& commands() { return commands_; }
  const CsiCommands& commands() const { return commands_; }
  const CsiTrace& trace() const { return parts_.connections.trace; }
  CsiFigures& figures() { return parts_.connections.figures; }
  // Counts it, and marks the call in the trace. Threads: any.
  void DriverLied(const CsiAnswered& call, const std::string& found);
  // In the directory of registrations; empty before Start().
  std::vector<RegisteredSocket> Sockets() const;

  // They hold from now on: of sockets that are opened, and of calls that begin.
  void SetSettings(SocketOwners owners, const CsiDriverSettings& drivers);
  // A volume was detached: a driver that calls the node by another name may be used now.
  void VolumeDetached();
  // Brings the figures of a scrape up to date.
  void Collect(const std::map<std::string, int>& waiting) {
    figures().Collect(drivers_.List(), Sockets(), waiting);
  }

 private:
  void RestoreDrivers(const LoadedRecords& rows);

  const Parts parts_;
  const std::string registry_;
  const std::function<void(const std::optional<Error>&)> looked_;
  SocketDialer dialer_;
  CsiCommands commands_;
  CsiDrivers drivers_;
  std::unique_ptr<CsiRegistration> registration_;
};

}  // namespace volumed
