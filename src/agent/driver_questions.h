// What is asked about CSI drivers, and of them, over the control API.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "agent.pb.h"
#include "agent/csi_client.h"
#include "agent/driver_commands.h"
#include "agent/peer_role.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_debts.h"
#include "csi/csi_names.h"
#include "volumemanager/node_events.h"

namespace volumed {

// These two: threads: control. Blocks: never. Errors, not applied: NotFound for a driver that
// nobody knows; InvalidArgument for a time that is none.
//
// `waiting` has how many operations wait for each driver, by its lane.
// `debts`: null: there are none.
Status DescribeDrivers(const CsiClient& csi, const std::map<std::string, int>& waiting,
                       const Clock& clock, const v1::GetDriversRequest& request,
                       v1::GetDriversResponse* response, const CsiDebts* debts = nullptr);
Status DescribeTrace(const CsiClient& csi, const Clock& clock,
                     const v1::GetDriverTraceRequest& request,
                     v1::GetDriverTraceResponse* response);

// Tries at once what waits for the driver or has failed at it, and dials it if it is not there.
// Threads: control. Blocks: never. Errors, not applied: NotFound for a driver that nobody knows.
Status RetryDriver(CsiClient& csi, NodeEvents& events, const v1::RetryDriverRequest& request,
                   v1::RetryDriverResponse* response);

// Whoever may read may make an RPC that changes nothing; of paths of the node see
// DriverQuestion::may_look. Pure; threads: any.
PeerRole RoleToAskDriver(const v1::CallDriverRequest& request);

// All outlive the call.
struct DriverQuestion {
  Scheduler& scheduler;
  CsiClient& csi;
  Duration patience;  // the longest that the driver may take
  int& open;          // how many such calls there are
  // For an RPC that changes something. Null: none may be made.
  const DriverCommands* commands = nullptr;
  // Whether the peer may have the driver look at this path of the node for this volume, with the
  // driver's own rights, by an RPC that only asks. Such a peer may send no secrets either, and
  // leaves some of the places for calls to others. Empty: at any path.
  std::function<bool(const CsiVolumeId& volume, const std::string& path)> may_look = {};
};
// What the error of a question is about that only a peer with the role admin may ask.
inline constexpr std::string_view kAboutDriverPaths = "role for a driver's paths";

// Makes the RPC, on an executor thread. `done` is called once on the control thread with the answer
// as JSON, without the secrets that the driver was sent. REQUIRES: the request lives until then.
// Threads: control. Blocks: never. Errors, not applied: InvalidArgument for an RPC that there is
// not, NotFound for such a driver; Unavailable for one that changes something where none may be
// made; ResourceExhausted if there are as many calls as there may be; PermissionDenied, about
// kAboutDriverPaths, for a path at which the peer may not have the driver look, or for secrets of
// its own; those of CsiRequestFromJson(), of CsiDriver::Perform() and of CsiShownJsonOf(). Those of
// CommandDriver().
void AskDriver(DriverQuestion question, const v1::CallDriverRequest& request,
               std::function<void(const Result<std::string>&)> done);

}  // namespace volumed
