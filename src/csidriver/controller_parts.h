// What the files of the Controller service's handlers have in common. Private to controller_rpcs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "csi.pb.h"
#include "csidriver/controller_rpcs.h"
#include "csidriver/csi_volume_wish.h"

namespace volumed {

// Threads: any, as nothing of it changes.
struct ControllerParts {
  ControllerRpcParts parts;
  ControllerRpcSettings settings;
  CsiPlaces places;
  std::shared_ptr<PlaceLooks> looks;

  PoolVolumes& volumes() const { return parts.pools.volumes; }
};
using SharedControllerParts = std::shared_ptr<const ControllerParts>;

// The volume that a caller can name: it is there, and is not being made or deleted. Errors, not
// applied: those of PoolVolumes::Find and CheckNotInline; Aborted while it is made or deleted.
Result<PoolVolumeRecord> FindServedVolume(const ControllerParts& shared, const std::string& id);

inline Error BeingDone() {
  return Error::NotApplied(Code::kAborted, "the same is being done for somebody else");
}

// Starts what the call asks for, and finishes it when that is done; `answer` puts the result into
// the response. What it has waited for is over if the operation has failed before: the back-off is
// the caller's own. Threads: control. Blocks: never.
template <typename Op, typename Rpc, typename Answer>
void StartForCall(const ControllerParts& shared, Op operation, const Rpc& rpc, Answer answer) {
  shared.parts.operations.ResetBackoff(operation.key());
  const StartResult started = shared.parts.operations.Start(
      std::move(operation), typename VolumeOperations::Done<Op>(
                                [rpc, answer](const OperationOutcome<typename Op::Value>& outcome) {
                                  if (outcome.failure) return rpc.Finish(outcome.failure->error);
                                  answer(*outcome.value);
                                  rpc.Finish(OkStatus());
                                }));
  if (started == StartResult::kStarted) return;
  rpc.Finish(BeingDone());
}

// Runs what blocks beside the control thread, and finishes the call with its answer.
template <typename Rpc, typename Work>
void RunForCall(const ControllerParts& shared, const Rpc& rpc, Work work) {
  shared.parts.scheduler.RunBlocking([rpc, work] { rpc.Finish(work()); });
}

// The handlers by theme.
void AddMakingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared);
void AddAskingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared);
void AddPublishingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared);
void AddChangingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared);
void AddHealthRpcs(CsiHandlers& handlers, const SharedControllerParts& shared);

}  // namespace volumed
