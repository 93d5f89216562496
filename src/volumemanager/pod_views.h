// PodViews: what is shown of pods and volumes: the state, and for what is not as it should be, the
// first blocking step, since when, who must act, and when the next try is.
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
#include "volumemanager/consumers.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/device_reconciler.h"
#include "volumemanager/domain_health.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/size_limits.h"
#include "volumemanager/volume_expander.h"
#include "volumemanager/volume_manager.h"
#include "volumemanager/volume_stats.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class PodViews {
 public:
  // All outlive this.
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
    const DomainHealth& health;
    const SizeLimits& size_limits;
    const VolumeExpander& expander;
    std::function<bool(const std::string& key)> is_stuck;  // may be empty
    // Since when an object is being deleted by command, in Unix milliseconds; nothing if it is not.
    std::function<std::optional<int64_t>(const ObjectKey& object)> deleted_since;
    const std::map<std::string, int64_t>& vanished_devices;  // path: when it went
  };

  explicit PodViews(Parts parts) : parts_(std::move(parts)) {}

  // A pod of the actual state. REQUIRES: it is there.
  PodView Build(const PodUid& uid) const;
  // A pod that only the sources know, and why nothing is done for it.
  PodView BuildRefused(const Pod& pod, const std::string& phase, ProblemView problem) const;

  // Of a volume that is on the node while its device is not; nothing for others.
  std::optional<ProblemView> VanishedDevice(const PodVolumeKey& key,
                                            const WantedVolume& wanted) const;

 private:
  VolumeView BuildVolume(const PodVolumeKey& key, const ActualPod& pod, const WantedVolume* wanted,
                         const ActualVolume* actual) const;
  // Of a volume whose server does not answer, whatever else is wrong with it.
  ProblemView SilentProblem(const DomainState& silent, const PodVolumeKey& key,
                            const ActualPod& pod, const ActualVolume* actual) const;
  // Of a volume that is not mounted from its server: what is known of that. In pod_views_server.cc,
  // as the one before.
  std::optional<ProblemView> ServerProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume& wanted,
                                           const ActualVolume* actual) const;
  // Says for what the operation of a volume or device waits that has not begun, because its
  // filesystem, server or driver has no room; and how it failed before, if `failure` is given.
  std::optional<ProblemView> LaneProblem(const OperationKey& key,
                                         const std::optional<FailureHistory>& failure) const;
  bool IsServerSilent(const WantedVolume& wanted, const ActualVolume* actual) const;
  std::optional<ProblemView> VolumeProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume* wanted,
                                           const ActualVolume* actual) const;
  void AddShared(const WantedVolume* wanted, const ActualVolume* actual, VolumeView& view) const;
  std::optional<ProblemView> SharedProblem(const PodVolumeKey& key, const ActualPod& pod,
                                           const WantedVolume& wanted) const;
  // In pod_views_attach.cc: what keeps a volume from being attached, but for failures of its own;
  // and what is wrong with one that is mounted.
  std::optional<ProblemView> AttachProblem(const WantedVolume& wanted, const ActualPod& pod,
                                           const ActualDevice* device) const;
  ProblemView FromFailure(const FailureHistory& failure, const OperationKey& key,
                          const ActualPod& pod, const WantedVolume* wanted) const;
  std::string WhoMustAct(const Error& error, const ActualPod& pod,
                         const WantedVolume* wanted) const;
  void AddPodProblems(const PodUid& uid, const ActualPod& pod, const WantedPod* wanted,
                      PodView& view) const;
  std::optional<ProblemView> WaitProblem(const PodUid& uid, const ActualPod& pod) const;
  void AddLeavingClaims(const WantedPod& wanted, PodView& view) const;
  void AddSourceProblems(const ObjectKey& key, PodView& view) const;
  int64_t ToWall(TimePoint when) const;

  const Parts parts_;
};

inline constexpr const char* kNobodyMustAct = "nobody: retried";
inline constexpr const char* kAdministratorMustAct = "an administrator";

// "Pending", "Ready", "Terminating", "Held", "Refused"; see PodView.
std::string PhaseOf(const ActualPod& pod, const WantedPod* wanted);

}  // namespace volumed
