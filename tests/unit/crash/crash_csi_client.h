// CrashCsiClient: the agent's part of its CSI drivers, as src/agent/csi_client.h puts it together,
// over the driver of a CrashWorld: its process may end at any call, and the agent too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/driver_lanes.h"
#include "base/alive_guard.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "csi/csi_caller.h"
#include "csi/csi_context.h"
#include "csi/csi_drivers.h"
#include "csi/csi_settings.h"
#include "records/record_store.h"
#include "unit/crash/crash_csi.h"
#include "unit/crash/crash_world.h"

namespace volumed {

// Where the calls that operations make go to; a mistake stands between the plugin and the real one.
class CrashCsiCalls {
 public:
  virtual ~CrashCsiCalls() = default;
  virtual CsiChannel::AnyAnswer Do(const google::protobuf::Message& request) = 0;
};

// Each domain is a lane of its own name.
class PlainDomains final : public FaultDomains {
 public:
  FaultDomain Locate(const std::string& domain) override { return {domain, domain}; }
  LaneHealth HealthOf(const std::string&) const override { return {}; }
};

class CrashCsiCaller;

// Threads: those of the scheduler. May throw SimulatedCrash out of a call.
class CrashCsiClient final : public CsiDialer, public CrashCsiCalls {
 public:
  // They outlive this object.
  struct Parts {
    CrashWorld& world;
    Scheduler& scheduler;
    RecordStore& records;
    Logger& log;
    // Another operation may run here.
    std::function<void()> switch_point;
  };
  struct Hooks {
    CsiDriversHooks drivers;
    CsiDrivers::Listener happened;
  };
  // REQUIRES: the world has a driver.
  CrashCsiClient(Parts parts, Hooks hooks);
  ~CrashCsiClient() override;

  CsiDrivers& drivers() { return drivers_; }
  DriverLanes& lanes() { return lanes_; }
  const SharedCsiPluginSettings& settings() const { return settings_; }
  void SetCalls(CrashCsiCalls& calls) { calls_ = &calls; }

  void Restore(const LoadedRecords& rows);
  // The driver registers, if somebody has started it.
  void Start();
  // Its world has changed: it has come, has gone, or is another release.
  void Hear();

  // ---- CsiDialer
  Result<std::shared_ptr<const CsiSocket>> Open(const SafePath& place, Deadline deadline) override;
  Result<std::shared_ptr<CsiCaller>> Dial(const std::string& driver,
                                          std::shared_ptr<const CsiSocket> socket,
                                          StateSeen state_seen) override;

  // ---- CrashCsiCalls: the real ones, watched.
  CsiChannel::AnyAnswer Do(const google::protobuf::Message& request) override;
  // Through what stands between.
  CsiChannel::AnyAnswer Call(const google::protobuf::Message& request) {
    return calls_->Do(request);
  }
  bool IsAt(uint64_t inode) const;

 private:
  friend class CrashCsiCaller;
  void Comes();
  void Goes();
  void EndAgent();
  CsiHow HowOf(const CsiAbout& about);
  CsiChannel::AnyAnswer Make(const google::protobuf::Message& request, const CsiAbout& about,
                             CsiHow how);
  CsiChannel::AnyAnswer DriverDied(const google::protobuf::Message& request);

  const Parts parts_;
  PlainDomains domains_;
  CrashCsiCalls* calls_ = this;
  std::vector<std::weak_ptr<CrashCsiCaller>> callers_;
  uint64_t told_release_ = 0;
  bool is_told_away_ = true;
  bool is_started_ = false;
  SharedCsiPluginSettings settings_;
  CsiDrivers drivers_;
  DriverLanes lanes_;
  AliveGuard alive_;
};

}  // namespace volumed
