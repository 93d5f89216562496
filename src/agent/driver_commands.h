// Calls to CSI drivers that an administrator makes by hand and that change something.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/csi_client.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_methods.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// What such calls work on. All outlive the calls; used on the control thread.
struct DriverCommands {
  Scheduler& scheduler;
  CsiClient& csi;
  VolumeOperations& operations;
  // Why no call by hand may be made about this volume, beyond what its records say: who has it by
  // what the node shows, or what its deletion would take from a claim. Empty: nothing speaks
  // against it. This is asked when the call is asked for, so that nobody waits in vain; the call
  // asks anew, once it has waited for its lane (CallByHand::Run).
  std::function<std::string(const CsiMethod& method, const CsiVolumeId& volume)> who_needs;
  // Something of the driver's volumes that a call by hand kept from operations, or from claims, is
  // not kept any more.
  std::function<void(const std::string& driver)> settled = {};
  // Why nothing may be deleted by hand yet: a source may have a PersistentVolume of the handle that
  // nobody knows (VolumeManager::WhyUnseen). Empty: nothing speaks against it, from then on.
  std::function<std::string()> why_unseen = {};
};

// Makes the call as an operation (csi/csi_call_by_hand.h). `done` is called once on the control
// thread, with the answer as JSON. REQUIRES: the method is a mutating one, and the message its
// request. Threads: control. Blocks: never. Errors: InvalidArgument, not applied, for a request
// that names nothing; Unavailable, not applied, if the driver may not be asked, if an operation is
// at the volume, or if a source was not looked into yet that may have what DeleteVolume deletes;
// FailedPrecondition, not applied, with the name of who has the volume; those of CallByHand.
void CommandDriver(const DriverCommands& parts, const std::shared_ptr<CsiDriver>& driver,
                   const CsiMethod& method,
                   std::shared_ptr<const google::protobuf::Message> request, Duration patience,
                   const std::function<void(const Result<std::string>&)>& done);

// For DriverCommands::who_needs. Threads: control. Blocks: never. The cost of DeleteVolume depends
// on all PersistentVolumes.
std::string WhoNeedsVolume(const VolumeManager& manager, const ObjectCatalog& catalog,
                           const CsiMethod& method, const CsiVolumeId& volume);

// Threads: control. Blocks: never. The cost depends on all PersistentVolumes.
std::vector<SpecName> PersistentVolumesOf(const VolumeManager& manager,
                                          const ObjectCatalog& catalog, const CsiVolumeId& volume);

// "a, b and 3 more", with so many of them. Pure; threads: any.
std::string FirstOf(const std::vector<std::string>& texts, size_t shown = 3);

}  // namespace volumed
