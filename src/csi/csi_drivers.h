// CsiDrivers: the table of drivers: which there are, what they can do, and how they are; and its
// rows, so that a driver that is away is known all the same.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alive_guard.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_caller.h"
#include "csi/csi_driver.h"
#include "csi/csi_driver_record.h"
#include "csi/rpc/csi_secret_memory.h"
#include "os/safe_path.h"
#include "records/record_store.h"

namespace volumed {

// What the table asks of its owner. Control thread; they do not block. Any may be empty.
struct CsiDriversHooks {
  // Whether a volume is attached to this node by the driver: then it may not call the node
  // otherwise. Empty: none is.
  std::function<bool(const std::string& driver)> has_attached;
  // What is here of the driver, for people, so that it may not be forgotten; "" if it may. Empty:
  // all may.
  std::function<std::string(const std::string& driver)> what_is_here;
  // Adds to the node's labels what the driver says of where it is; an error if they say otherwise.
  std::function<Status(const std::string& driver,
                       const std::map<std::string, std::string>& topology)>
      merge_topology;
  // There is a driver of this name from now on, that may be one of an earlier run: what it was sent
  // as a secret before is to be in its memory, or withheld. Called before the driver says anything.
  std::function<void(const std::string& driver, const std::shared_ptr<CsiSecretMemory>& memory)>
      made;
  // The driver is forgotten, and what it said of the node too.
  std::function<void(const std::string& driver)> release_topology;
};

struct CsiDriversSettings {
  CsiDriverSettings driver = {};
  // Driver -> the socket of its controller, if that is another one.
  std::map<std::string, SafePath> controllers = {};
  // Where endpoints may lie, as for PlaceInOneOf().
  std::vector<std::string> endpoint_directories = {};
  // On record; beyond it the unregistered one that said longest ago what it can do is forgotten.
  size_t most_drivers = 256;
};

struct DriverView {
  CsiDriverFacts facts;
  std::string socket;  // by which it registered last
  int64_t last_ready_unix_ms = 0;
  bool was_unregistered = false;  // in this run, and it has not registered since
  CsiDriverHealth health;
  CsiLane lane;
  std::string why_away;                                    // empty if it is ready
  std::optional<CsiControllerLink> controller = {};        // nullopt: it has no socket of its own
  std::map<std::string, std::string> shown_topology = {};  // that of the facts, without secrets
};

// A socket of a controller that the settings name, and no driver of that name is known.
struct UnusedController {
  std::string driver;
  std::string place;  // for display
};

// Threads: any; control where it says so. Blocks: never.
class CsiDrivers {
 public:
  // They outlive this, and the tasks that it posts.
  struct Parts {
    Scheduler& scheduler;
    CsiDialer& dialer;
    RecordStore& records;
    Logger& log;
  };
  CsiDrivers(Parts parts, CsiDriversSettings settings, CsiDriversHooks hooks);
  // Ends all calls. Threads: control.
  ~CsiDrivers();
  CsiDrivers(const CsiDrivers&) = delete;
  CsiDrivers& operator=(const CsiDrivers&) = delete;

  // The drivers of earlier runs, which are gone until they register. `unreadable` are the names of
  // those whose row cannot be read, and why: they count as never seen until they register, and
  // their row is written over then. Threads: control; before anybody asks for one.
  void Restore(const std::vector<CsiDriverRecord>& records,
               std::map<std::string, std::string> unreadable = {}) EXCLUDES(mu_);

  // Null for a driver that was never seen here. A driver that is gone is found.
  std::shared_ptr<CsiDriver> Find(const std::string& name) const EXCLUDES(mu_);
  // Errors, not applied: Unavailable if it was never seen here.
  Result<CsiDriverFacts> FactsOf(const std::string& name) const EXCLUDES(mu_);
  // Of a driver that was never seen here: closed.
  CsiLane LaneOf(const std::string& name) const EXCLUDES(mu_);
  // For people; empty if it is ready.
  std::string WhyAway(const std::string& name) const EXCLUDES(mu_);
  // Why no controller of the driver makes volumes here, for people; empty if one does.
  std::string WhyNoProvisioner(const std::string& name) const EXCLUDES(mu_);
  // By name.
  std::vector<DriverView> List() const EXCLUDES(mu_);
  std::vector<UnusedController> UnusedControllers() const EXCLUDES(mu_);

  using Listener = std::function<void(const std::string& driver, DriverEvent event)>;
  // Threads: control, which also calls it, in the order of what happens to a driver.
  void AddListener(Listener listener) { listeners_.push_back(std::move(listener)); }

  // For the registration. Threads: control.
  //
  // `done` is called once, on the control thread, unless the driver is unregistered or registered
  // anew before. Errors: those of the dialer and of CsiInquiry; those of merge_topology; those of
  // the record store.
  void Register(const CsiRegister& registration, std::function<void(Status)> done) EXCLUDES(mu_);
  void Unregister(const std::string& name) EXCLUDES(mu_);
  void EndpointChanged(const std::string& display) EXCLUDES(mu_);
  std::vector<SafePath> Endpoints() const EXCLUDES(mu_);
  // What kept it from being used last, also of one that has not registered yet.
  std::string LastError(const std::string& name) const EXCLUDES(mu_);
  // The drivers that registered by this socket last are not registered by it now, as says `why`; ""
  // if they are.
  void RegistrarFailed(const std::string& socket, const std::string& why, bool is_refusal = false)
      EXCLUDES(mu_);
  // Whether a connection to it is there.
  bool IsConnected(const std::string& name) const EXCLUDES(mu_);
  Result<SafePath> PlaceOf(const std::string& endpoint) const;

  // For its owner. Threads: control.
  //
  // All volumes of the driver were detached.
  void VolumesDetached(const std::string& name) EXCLUDES(mu_);
  // Whether it is known, and neither registered nor connected. Errors, not applied: NotFound;
  // FailedPrecondition, with the reason.
  Status CheckAway(const std::string& name) const EXCLUDES(mu_);
  // The driver is as one that was never seen here, once `done` is told OK; that is on the control
  // thread. Errors, not applied: NotFound if it is; FailedPrecondition, with the reason, as long as
  // it is there or anything here is of it; those of the record store.
  void Forget(const std::string& name, std::function<void(Status)> done) EXCLUDES(mu_);
  // Asks the driver anew, as for its limit of volumes.
  void Refresh(const std::string& name) EXCLUDES(mu_);
  void RefreshNowAndThen(const std::string& name) EXCLUDES(mu_);
  void SetSettings(const CsiDriverSettings& settings) EXCLUDES(mu_);
  // The driver's words are not withheld any more.
  void TextsShown(const std::string& name) EXCLUDES(mu_);

 private:
  std::shared_ptr<CsiDriver> FindAny(const std::string& name) const EXCLUDES(mu_);
  std::vector<std::shared_ptr<CsiDriver>> All() const EXCLUDES(mu_);
  std::vector<std::string> KnownNames() const EXCLUDES(mu_);
  // In kubelet's words, with the row that cannot be read, if that is why, or else the driver that
  // may be meant.
  std::string NeverSeen(const std::string& name) const EXCLUDES(mu_);
  std::string NearController(const std::string& name) const EXCLUDES(mu_);
  std::shared_ptr<CsiDriver> Make(const CsiDriverRecord& record) EXCLUDES(mu_);
  void Accept(const CsiDriverRecord& record, std::function<void(Status)> done);
  bool IsWritten(const CsiDriverRecord& record) const;
  void Write(const CsiDriverRecord& record, std::function<void(Status)> done);
  void Written(const CsiDriverRecord& record) EXCLUDES(mu_);
  void Happened(const std::string& name, DriverEvent event);
  // A driver that never came goes again.
  void ForgetUnknown(const std::string& name) EXCLUDES(mu_);
  // Why it is not away; empty if it is.
  static std::string WhyThere(const CsiDriver& driver);
  // Why it may not be forgotten; empty if it may.
  std::string WhyKept(const CsiDriver& driver) const;
  void Forgotten(const std::string& name, const Status& removed,
                 const std::function<void(Status)>& done) EXCLUDES(mu_);
  void MakeRoom() EXCLUDES(mu_);

  const Parts parts_;
  const CsiDriversSettings settings_;
  const CsiDriversHooks hooks_;
  std::vector<Listener> listeners_;
  std::map<std::string, CsiDriverRecord> written_;  // what is on record

  mutable Mutex mu_;
  CsiDriverSettings driver_settings_ GUARDED_BY(mu_);
  std::map<std::string, std::shared_ptr<CsiDriver>> drivers_ GUARDED_BY(mu_);
  std::map<std::string, std::string> unreadable_ GUARDED_BY(mu_);  // driver -> why
  AliveGuard alive_;
};

// "CSI driver x is not forgotten: <why>"; FailedPrecondition, not applied. Pure.
Error RefuseToForget(const std::string& driver, const std::string& why);

}  // namespace volumed
