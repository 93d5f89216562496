// VolumeExpander: makes volumes larger that are on the node and smaller than their PersistentVolume
// says. It updates the claim before and after, starts the operation, and lets only DecideExpansion
// decide. It runs for volumes to which something happened.
//
// A volume that cannot be made larger keeps no pod from running: its claim's conditions and
// `volumectl explain` say why, and when the next try is.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconciler_common.go@v1.36.2
// (expandVolume), pkg/volume/util/operationexecutor/node_expander.go.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/alive_guard.h"
#include "base/ids.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/expansion_decision.h"
#include "volumehost/volume_host.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/reconcile_queue.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none; a failure is kept, and is an event of
// the pods and the claim.
class VolumeExpander {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const ObjectCatalog& catalog;
    const VolumePluginMgr& plugins;
    const DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    Claims& claims;
    VolumeOperations& operations;
    HostEvents& events;
    const KubeletPaths& paths;
  };
  struct Hooks {
    // An operation on this volume has ended, whatever the result.
    std::function<void(const UniqueVolumeName&)> ended;
    // The volume is larger. Called before `ended`. May be empty.
    std::function<void(const UniqueVolumeName&)> grown = {};
  };
  VolumeExpander(Parts parts, Hooks hooks);
  VolumeExpander(const VolumeExpander&) = delete;
  VolumeExpander& operator=(const VolumeExpander&) = delete;

  // No operation is started before this is called.
  void Start() { queue_.Start(); }
  // The volume has come, is to have another size, or its claim's status is on record.
  void MarkDirty(const UniqueVolumeName& volume) { queue_.MarkDirty(volume); }
  // The reason why the volume was not made larger may be gone: the back-off is forgotten, and so is
  // that the volume could not be made larger in use. A growth that the claim's status calls
  // infeasible still waits for a change of the claim. Has no effect for an empty name.
  void Retry(const UniqueVolumeName& volume);
  // The volume is not on the node any more: when it comes again, its past does not count.
  void Forget(const UniqueVolumeName& volume) { known_.erase(volume); }

  // The sizes for the mount of a device: the one that its claim says, and the one that it is to
  // have.
  struct Sizes {
    Quantity now;  // zero: not known
    std::optional<Quantity> grow_to;
  };
  Sizes SizesForMount(const WantedVolume& wanted) const;

  // The last failure since the last success; null if there is none. The pointer is valid until the
  // next change.
  const FailureHistory* Failure(const UniqueVolumeName& volume) const;

 private:
  // What is known of a volume on the node.
  struct Known {
    Quantity size;  // the size that is proven
    bool in_flight = false;
    bool in_use = false;                            // it cannot be made larger in use
    std::optional<Quantity> failed = std::nullopt;  // making it this large has failed for good
    // This size was refused, since all uses only read.
    std::optional<Quantity> refused = std::nullopt;
    std::optional<FailureHistory> failure = std::nullopt;
  };
  // All that a decision needs.
  struct Case {
    const WantedVolume* wanted = nullptr;
    std::vector<PodUid> pods;
    ClaimResizeState claim;
    ExpansionDecision decision;
  };

  void Reconcile(const UniqueVolumeName& name, Wake& wake);
  bool IsExpandable(const WantedVolume& wanted) const;
  // Whether it is made larger where a pod has it.
  bool NeedsPod(const WantedVolume& wanted) const;
  bool IsOnNode(const UniqueVolumeName& name, const WantedVolume& wanted) const;
  // A pod that has the volume set up, one that may write if there is one; null if none has it.
  PodPtr PodThatHas(const UniqueVolumeName& name) const;
  ExpansionQuestion QuestionOf(const WantedVolume& wanted, const ClaimResizeState& claim) const;
  void Act(const UniqueVolumeName& name, const Case& now, Known& known, Wake& wake);
  void RefuseReadOnly(const Case& now, Known& known);
  void Expand(const UniqueVolumeName& name, const Case& now, Known& known, Wake& wake);
  void Expanded(const UniqueVolumeName& name, const std::string& volume,
                const ExpansionDecision& decision, const OperationOutcome<ExpandedVolume>& outcome);
  void Failed(const std::string& volume, const ExpansionDecision& decision,
              const OperationFailure& failure, Known& known);

  Parts parts_;
  const Hooks hooks_;
  std::map<UniqueVolumeName, Known> known_;
  ReconcileQueue<UniqueVolumeName> queue_;
  AliveGuard alive_;
};

}  // namespace volumed
