// CsiContext: what every part of the csi plugin works with; and the one way in which they call a
// driver for a volume.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_capabilities.h"
#include "csi/csi_command.h"
#include "csi/csi_debts.h"
#include "csi/csi_drivers.h"
#include "csi/csi_settings.h"
#include "csi/rpc/csi_call.h"
#include "csi/rpc/csi_redact.h"
#include "operation/unrecorded_mounts.h"
#include "operation/volume_record_keeper.h"
#include "os/kernel.h"
#include "volumehost/volume_host.h"

namespace volumed {

// An RPC that a driver has answered.
struct CsiAnswered {
  std::string driver;
  std::string method;  // "NodePublishVolume"
  std::string key;  // what it was about: a volume's handle, or the name of one that is to be made
};

// What the plugin is made from. All outlive it.
struct CsiPluginParts {
  Scheduler& scheduler;
  CsiDrivers& drivers;
  // The rows of devices, for what must outlive the agent about a volume: see
  // DeviceRecordKeeper::SetAttachment() and SetStaged().
  DeviceRecordKeeper& devices;
  const SharedCsiPluginSettings& settings;
  Logger& log;
  // A driver has said of this RPC that it succeeded, and the node shows `found`. Called on any
  // thread; must not block. Empty: nobody counts.
  std::function<void(const CsiAnswered& call, const std::string& found)> lied = {};
  // The calls that people make by hand, which operations must not meet. Null: nobody makes any.
  CsiCommands* commands = nullptr;
  // The calls that drivers are owed. Null: no driver is ever done without.
  CsiDebts* debts = nullptr;
  // What was mounted at the start and is on no record. Null: nobody looks for it.
  UnrecordedMounts* unrecorded = nullptr;
  // The driver that this agent is itself: its volumes are another plugin's. Empty: it is none.
  std::string served_here = {};
};

// The parts, and the node. References; what they refer to outlives the plugin and all that it has
// made. Threads: any.
struct CsiContext {
  CsiPluginParts parts;
  VolumeHost& host;

  Kernel& kernel() const { return host.kernel; }
};

// Threads: any. Blocks: never. Errors, not applied: Unavailable, in kubelet's words, if the driver
// was never seen here; one that is gone is found.
Result<std::shared_ptr<CsiDriver>> FindDriver(const CsiContext& context, const std::string& driver);
Result<CsiDriverFacts> FactsOf(const CsiContext& context, const std::string& driver);

// What the driver's CSIDriver says; null if there certainly is none. Threads: any. Blocks: never.
// Errors, not applied: Unavailable, if that is not known yet.
Result<KubeletHost::CsiDriverPtr> CsiDriverObjectOf(const CsiContext& context,
                                                    const std::string& driver);

// The values of the Secret that a volume names for a call; none if it names none. `what` is what it
// is for, for people: "node stage secret". Threads: any. Blocks: never. Errors: Unavailable, not
// applied, if it is not there, for it may come (that is a MissingObject()), or not known yet.
Result<CsiSecretValues> ReadSecret(const CsiContext& context,
                                   const std::optional<SecretReference>& reference,
                                   const std::string& what);

// The options of an RPC that is made for an operation: its cancel token, and its deadline, but not
// later than the settings allow from now on. The token's hook is this object's as long as it lives,
// so no effect on the node is to be made meanwhile. Threads: one.
class CsiCallScope {
 public:
  CsiCallScope(const CsiContext& context, const CallOptions& call);
  ~CsiCallScope();
  CsiCallScope(const CsiCallScope&) = delete;
  CsiCallScope& operator=(const CsiCallScope&) = delete;

  const CsiCallOptions& options() const { return options_; }

 private:
  CancelToken* const token_;
  CsiCallOptions options_;
};

// Whether an operation may make this call now; what the driver is owed about the volume is made up
// for first, and nothing is put at a path about which anything is owed of another one. The pass is
// kept as long as the call lasts. Threads: any but control. Blocks: for what is owed. Errors: those
// of CsiCommands::AdmitOperation(); of DeliverCsiDebts() and CheckNothingIsOwedAt(), as not
// applied: of this call nothing was sent.
Result<CsiCommands::Pass> AdmitCall(const CsiContext& context, const std::string& driver,
                                    const google::protobuf::Message& request,
                                    const CallOptions& call);

// Whoever shows the operation is told that it waits for the driver, as long as this lives. The
// call's options outlive it. Threads: one.
class CsiAwaited {
 public:
  CsiAwaited(const std::string& driver, const google::protobuf::Message& request,
             const CallOptions& call);
  ~CsiAwaited();
  CsiAwaited(const CsiAwaited&) = delete;
  CsiAwaited& operator=(const CsiAwaited&) = delete;

 private:
  const CallOptions& call_;
};

// Makes the RPC that has this request: the one way of operations to a driver. Threads: any but
// control. Blocks: until the answer, the call's deadline or its cancel. Errors: those of
// FindDriver(), AdmitCall() and of CsiDriver::Call(); Cancelled and DeadlineExceeded, not applied,
// if it is too late before anything is sent. No error has a secret. `migrated`: as CsiCallOptions
// has it.
template <typename Response>
Result<Response> CallDriver(const CsiContext& context, const std::string& driver,
                            const google::protobuf::Message& request, const CallOptions& call,
                            bool migrated = false) {
  ASSIGN_OR_RETURN(const std::shared_ptr<CsiDriver> found, FindDriver(context, driver));
  ASSIGN_OR_RETURN(const CsiCommands::Pass pass, AdmitCall(context, driver, request, call));
  const CsiCallScope scope(context, call);
  const CsiAwaited awaited(driver, request, call);
  CsiCallOptions options = scope.options();
  options.migrated = migrated;
  return found->Call<Response>(request, options);
}

// The secrets that were sent to the driver, to be removed from what it has said. None if nobody
// knows it. Threads: any. Blocks: never.
CsiSecrets SecretsOf(const CsiContext& context, const std::string& driver);

// A driver has said that an RPC succeeded, and the node shows otherwise: counts it, logs it, and
// answers the error of it, which is Internal, maybe applied:
// "<driver>: <method>: driver <driver> said that <said>, and <found>". Both texts may have words of
// the driver: no secret that it was sent is in the error. Whoever cuts such a word before removes
// them from it himself, for a part of a secret is not found.
Error DriverLied(const CsiContext& context, const CsiAnswered& answered, const std::string& said,
                 const std::string& found);

}  // namespace volumed
