// PodViews: makes the views of pods and volumes that are shown: the state and, if something is not
// as it should be, the first step that blocks it, since when, who must act, and when the next try
// is.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/object_commands.h"
#include "volumemanager/claims/storage_expander.h"
#include "volumemanager/claims/volume_expander.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/device_reconciler.h"
#include "volumemanager/failure_history.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/storage_trouble.h"
#include "volumemanager/views/view_types.h"
#include "volumemanager/watch/consumers.h"
#include "volumemanager/watch/server_health.h"
#include "volumemanager/watch/size_limits.h"
#include "volumemanager/watch/volume_stats.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: none. The cost of a view depends on the pod's
// volumes alone. Nothing is changed by making one.
class PodViews {
 public:
  // All members outlive this object.
  struct Parts {
    const Clock& clock;
    const ObjectCatalog& catalog;
    const DesiredStateOfWorld& desired;
    const ActualStateOfWorld& actual;
    const Consumers& consumers;
    const Reconciler& reconciler;
    const DeviceReconciler& devices;
    const VolumeOperations& operations;
    const VolumeStats& stats;
    const ServerHealth& health;
    const SizeLimits& size_limits;
    const VolumeExpander& expander;
    const StorageExpander& storage_expander;
    const ObjectCommands& commands;
    // VolumeManagerHooks::is_stuck; may be empty.
    std::function<bool(const std::string& key)> is_stuck;
    const std::map<std::string, int64_t>& vanished_devices;         // path -> when the device went
    const std::map<std::string, StorageTrouble>& storage_troubles;  // by path
  };

  explicit PodViews(Parts parts) : parts_(std::move(parts)) {}

  // The view of a pod of the actual state. REQUIRES: the pod exists there.
  PodView Build(const PodUid& uid) const;
  // The view of a pod that only the sources know, with the reason why nothing is done for it. The
  // view has no volumes. `phase` is "Pending" or "Refused".
  PodView BuildRefused(const Pod& pod, const std::string& phase, ProblemView problem) const;

  // The problem of a volume that is on the node while its device is not, or while what it lies on
  // is not well; nullopt for other volumes.
  std::optional<ProblemView> VanishedDevice(const PodVolumeKey& key,
                                            const WantedVolume& wanted) const;

 private:
  // Problems are in pod_views_problems.cc, unless it says otherwise.
  VolumeView BuildVolume(const PodVolumeKey& key, const ActualPod& pod, const WantedVolume* wanted,
                         const ActualVolume* actual) const;
  // The problem of a volume whose server does not answer, whatever else is wrong with the volume.
  ProblemView SilentProblem(const ServerState& silent, const PodVolumeKey& key,
                            const ActualPod& pod, const ActualVolume* actual) const;
  // What is known of the server of a volume that is not mounted. It is in pod_views_server.cc, like
  // SilentProblem.
  std::optional<ProblemView> ServerProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume& wanted,
                                           const ActualVolume* actual) const;
  // Says what the operation of a volume or device waits for, if it has not begun because its
  // filesystem, server or driver has no room; and how it failed before, if `failure` is given.
  std::optional<ProblemView> LaneProblem(const OperationKey& key,
                                         const std::optional<FailureHistory>& failure) const;
  // Of a volume whose operation cannot begin because another one, as of another pod, has the device
  // and waits for its lane.
  std::optional<ProblemView> OwnerProblem(const PodVolumeKey& key,
                                          const WantedVolume& wanted) const;
  // What is being done for the volume now, on the node or by a controller; nullopt: nothing is.
  std::optional<RunningOperation> RunningFor(const PodVolumeKey& key, const WantedVolume* wanted,
                                             const UniqueVolumeName& shared, bool has_device) const;
  bool IsServerSilent(const WantedVolume& wanted, const ActualVolume* actual) const;
  std::optional<ProblemView> VolumeProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume* wanted,
                                           const ActualVolume* actual) const;
  // The pod has its volume, which is only smaller than it should be.
  std::optional<ProblemView> GrowthProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume& wanted) const;
  void AddShared(const WantedVolume* wanted, const ActualVolume* actual, VolumeView& view) const;
  std::optional<ProblemView> SharedProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume& wanted) const;
  // Of a volume whose device has to leave the place first that it has for another one.
  std::optional<ProblemView> OtherVolumeProblem(const WantedVolume& wanted, const ActualPod& pod,
                                                const ActualDevice* device) const;
  // What keeps a volume from being attached, except failures of its own, and what is wrong with a
  // device that is mounted. It is in pod_views_attach.cc.
  std::optional<ProblemView> AttachProblem(const WantedVolume& wanted, const ActualPod& pod,
                                           const ActualDevice* device) const;
  ProblemView FromFailure(const FailureHistory& failure, const OperationKey& key,
                          const ActualPod& pod, const WantedVolume* wanted) const;
  std::string WhoMustAct(const FailureHistory& failure, const ActualPod& pod,
                         const WantedVolume* wanted) const;
  void AddPodProblems(const PodUid& uid, const ActualPod& pod, const WantedPod* wanted,
                      PodView& view) const;
  std::optional<ProblemView> WaitProblem(const PodUid& uid, const ActualPod& pod) const;
  void AddLeavingClaims(const WantedPod& wanted, PodView& view) const;
  // Warnings of volumes whose device is mounted as another PersistentVolume asks. In
  // pod_views_attach.cc.
  void AddOtherFsTypes(const WantedPod& wanted, const ActualPod& pod, PodView& view) const;
  void AddSourceProblems(const ObjectKey& key, PodView& view) const;
  int64_t ToWall(TimePoint when) const;

  const Parts parts_;
};

// "Pending", "Ready", "Terminating", "Held", "Refused"; see PodView. `wanted` is null if the pod is
// not wanted.
std::string PhaseOf(const ActualPod& pod, const WantedPod* wanted);

// Whether nothing of what the pod wants of the volume is missing; `actual` is null if nothing of
// the volume is known.
bool IsSetUpFully(const WantedVolume& wanted, const ActualVolume* actual);

// A problem that is no failure: something is waited for, or has to be known.
ProblemView Waiting(std::string step, std::string message, std::string who_must_act,
                    int64_t since_unix_ms);

}  // namespace volumed
