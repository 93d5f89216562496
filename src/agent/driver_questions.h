// What is asked about CSI drivers, and of them, over the control API.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent.pb.h"
#include "agent/csi_client.h"
#include "agent/driver_commands.h"
#include "agent/peer_role.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "volumemanager/node_events.h"

namespace volumed {

// These two: threads: control. Blocks: never. Errors, not applied: NotFound for a driver that
// nobody knows; InvalidArgument for a time that is none.
//
// `waiting` has how many operations wait for each driver, by its lane.
Status DescribeDrivers(const CsiClient& csi, const std::map<std::string, int>& waiting,
                       const Clock& clock, const v1::GetDriversRequest& request,
                       v1::GetDriversResponse* response);
Status DescribeTrace(const CsiClient& csi, const Clock& clock,
                     const v1::GetDriverTraceRequest& request,
                     v1::GetDriverTraceResponse* response);

// Tries at once what waits for the driver or has failed at it, and dials it if it is not there.
// Threads: control. Blocks: never. Errors, not applied: NotFound for a driver that nobody knows.
Status RetryDriver(CsiClient& csi, NodeEvents& events, const v1::RetryDriverRequest& request,
                   v1::RetryDriverResponse* response);

// Whoever may read may make an RPC that changes nothing. Pure; threads: any.
PeerRole RoleToAskDriver(const v1::CallDriverRequest& request);

// All outlive the call.
struct DriverQuestion {
  Scheduler& scheduler;
  CsiClient& csi;
  Duration patience;  // the longest that the driver may take
  int& open;          // how many such calls there are
  // For an RPC that changes something. Null: none may be made.
  const DriverCommands* commands = nullptr;
};
// Makes the RPC, on an executor thread. `done` is called once on the control thread with the answer
// as JSON, without the secrets that the driver was sent. REQUIRES: the request lives until then.
// Threads: control. Blocks: never. Errors, not applied: NotFound for an RPC or driver that there is
// not; Unimplemented for an RPC that answers by a stream; Unavailable for one that changes
// something where none may be made; ResourceExhausted if there are as many calls as there may be;
// those of CsiRequestFromJson(), of CsiDriver::Perform() and of CsiShownJsonOf(). Those of
// CommandDriver().
void AskDriver(DriverQuestion question, const v1::CallDriverRequest& request,
               std::function<void(const Result<std::string>&)> done);

}  // namespace volumed
