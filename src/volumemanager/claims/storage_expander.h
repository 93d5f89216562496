// StorageExpander: makes the storage of volumes larger whose claims ask for more than they have,
// where this node can do it and nobody else does: the part of a controller. The growth of the
// filesystem follows on the node (volume_expander.h).
//
// How far a growth is stands in the claim's status, which is on record before the plugin is called,
// with the size that is asked for: so after a restart the same call is made again. The size of the
// PersistentVolume and what is to follow are one row too.
//  - A growth goes on to its size until its outcome is known, also if the claim is changed
//    meanwhile.
//  - A size that the driver calls impossible (ControllerResizeInfeasible) is not asked for again
//    before the claim asks for another one.
//  - Storage that grows only unused waits until nothing of the volume is on the node.
// Source: external-resizer@v2.1 pkg/controller/{resize_status,expand_and_recover}.go.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/alive_guard.h"
#include "base/ids.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/expand_storage_operations.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/storage_growth.h"
#include "volumehost/volume_host.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconcile_queue.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none; a failure is kept and shown, and is an
// event and a condition of the claim.
class StorageExpander {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const ObjectCatalog& catalog;
    const Readiness& readiness;
    const VolumePluginMgr& plugins;
    const ActualStateOfWorld& actual;
    Claims& claims;
    Provisioning& provisioning;
    VolumeOperations& operations;
    HostEvents& events;
  };
  explicit StorageExpander(Parts parts);
  StorageExpander(const StorageExpander&) = delete;
  StorageExpander& operator=(const StorageExpander&) = delete;

  // No operation is started before this is called.
  void Start() { queue_.Start(); }
  // It was decided which claim has which volume: those whose claims may ask for more are looked at.
  void ClaimsDecided();
  // The status of the volume's claim is on record, or nothing of the volume is on the node any
  // more. `volume` is the name of the PersistentVolume.
  void MarkDirty(const std::string& volume) { queue_.MarkDirty(volume); }
  // What kept the volume from growing may be gone, as its driver is back: the back-off is
  // forgotten. An infeasible size still waits for a change of the claim.
  void Retry(const std::string& volume);
  // The same for all volumes of a plugin's fault domain ("csi:<driver>").
  void RetryDomain(const std::string& fault_domain);
  // The same for all volumes that could not be made larger and name this Secret.
  void RetryWith(const ObjectKey& secret);

  // The last failure since the last success; null if there is none. The pointer is valid until the
  // next change.
  const FailureHistory* Failure(const std::string& volume) const;
  // What its growth waits for, for people: its class, its pods, its driver; "" if for nothing.
  std::string WaitsFor(const std::string& volume) const;
  // The operation that makes the storage larger; nullopt if none was started.
  std::optional<OperationKey> Growing(const std::string& volume) const;
  // Who can let it grow, if its class does not; "" otherwise.
  std::string WhoLetsGrow(const std::string& volume) const;

 private:
  // What is known of a volume whose claim asks for more.
  struct Known {
    UniqueVolumeName unique_name;
    bool in_flight = false;
    std::string waits_for;
    std::string who_lets_grow;
    bool told_of_users = false;  // the claim has the event that it waits until they have gone
    std::optional<FailureHistory> failure;
  };
  // A volume that may be made larger here.
  struct Case {
    PersistentVolumePtr volume;
    PersistentVolumeClaimPtr claim;
    ClaimResizeState state;
    VolumeSpec spec;
    UniqueVolumeName unique_name;
    ExpandableVolumePlugin* plugin = nullptr;
    bool class_allows = false;
  };

  // Whether there is anything to decide about it; cheap.
  bool MayHaveToGrow(const VolumeDecision& volume) const;
  std::optional<Case> CaseOf(const std::string& volume) const;
  void Reconcile(const std::string& volume, Wake& wake);
  void Act(const Case& now, const StorageGrowth& growth, Known& known, Wake& wake);
  // Its class has to allow it first.
  void TellNotAllowed(const Case& now, Known& known);
  // Its pods have to leave first.
  void TellOfUsers(const Case& now, Known& known);
  void Expand(const Case& now, const StorageGrowth& growth, Known& known, Wake& wake);
  void Expanded(const std::string& volume, const OperationOutcome<ExpandedStorage>& outcome);
  void Failed(const std::string& volume, const OperationFailure& failure, Known& known);
  // Whether anything of the volume is, or may be, on the node.
  bool IsOnNode(const UniqueVolumeName& name) const;

  const Parts parts_;
  std::map<std::string, Known> known_;  // by the PersistentVolume's name
  ReconcileQueue<std::string> queue_;
  AliveGuard alive_;
};

}  // namespace volumed
