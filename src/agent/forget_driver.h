// `volumectl delete driver`: a CSI driver that has left for good is as one that was never seen
// here. What keeps it known is named, with the command that ends that. There is no way to forget
// its volumes together: a pod, a mount and an attached device are proven by the node, whoever has
// left. What it is owed is a promise to the driver alone, and of a call by hand it alone knows the
// outcome: these may be given up with it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/look_limit.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_command.h"
#include "csi/csi_debts.h"
#include "csi/csi_drivers.h"
#include "operation/node_volume_operations.h"
#include "os/kernel.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// What is here of a driver.
struct DriverTraces {
  std::string driver;
  std::vector<VolumeOnRecord> volumes;  // of which something is on record on this node
  std::vector<std::string> open_calls;
  std::vector<std::string> owed_calls;
  std::vector<std::string> begun;  // StorageViews::BegunBy
  std::set<PodUid> leaving = {};   // of the volumes' pods: they are being deleted already
};
// For CsiDriversHooks::what_is_here: each with the command that ends it, if there is one; "" if
// there is nothing. Pure; threads: any.
std::string TextOf(const DriverTraces& traces);

// What the PersistentVolumes of a driver that is forgotten have lost; "" if it has none.
// Threads: control. Blocks: never.
std::string WarningOfForget(const VolumeManager& manager, const std::string& driver);

// What ForgetAndOweNothing works on; all outlive it.
struct ForgettingParts {
  Scheduler& scheduler;
  CsiDrivers& drivers;
  CsiDebts& debts;
  CsiCommands& commands;
  Kernel& kernel;
  LookLimit limit;
};

// For people.
struct GivenUp {
  std::vector<std::string> owed_calls;
  std::vector<std::string> open_calls;  // by hand, whose outcome nobody knows
};
// What it means, as a warning; "" if nothing was given up. Pure.
std::string TextOf(const GivenUp& given_up);

// Gives up what the driver is owed and what is open of calls by hand to it, and forgets it: of
// `traces`, which is what is here of it, these alone keep it from neither. `done` is called once on
// the control thread, with what was given up. Threads: control. Blocks: never. Errors, not applied:
// those of CsiDrivers::CheckAway; FailedPrecondition for what else is here, and while anything is
// mounted at the path of an open call. Those of CsiCommands::PathsToGiveUp, GiveUpCsiDebts and
// CsiCommands::GiveUp, and of CsiDrivers::Forget, maybe applied once something is given up.
void ForgetAndOweNothing(const ForgettingParts& parts, DriverTraces traces,
                         std::function<void(const Result<GivenUp>&)> done);

}  // namespace volumed
