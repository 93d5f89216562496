// KubeletVolumeManager: the VolumeManager of the agent, made of its parts.
//
//   ObjectCatalog --changes--> DesiredStateOfWorld --+
//   Reconstructor --at start-> ActualStateOfWorld ---+--> Reconciler --operations-->
//   VolumeOperations ConsumerWatch --gone-----> Consumers ------------+
//
// Source: kubernetes pkg/kubelet/volumemanager/volume_manager.go@v1.36.2.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "records/record_store.h"
#include "volumehost/volume_host.h"
#include "volumemanager/attach_verifier.h"
#include "volumemanager/consumer_watch.h"
#include "volumemanager/domain_health.h"
#include "volumemanager/size_limits.h"
#include "volumemanager/take_over.h"
#include "volumemanager/volume_manager.h"
#include "volumemanager/volume_stats.h"

namespace volumed {

// All members outlive the manager.
struct VolumeManagerParts {
  Scheduler& scheduler;
  ObjectCatalog& catalog;
  VolumePluginMgr& plugins;
  VolumeOperations& operations;
  RecordStore& store;
  Kernel& kernel;
  VolumeHost& host;
  ConsumerWatch& consumer_watch;
  Logger& log;
};

struct VolumeManagerSettings {
  // A kubelet made the root (--adopt-root): pods that are found in it belong to this agent now.
  bool adopt_root = false;
  // Where the kubelet of an adopted root kept the logs of its pods.
  std::string pod_logs_directory = "/var/log/pods";
  VolumeStatsSettings stats;
  DomainHealthSettings health;
  // How often plugins are asked which volumes are attached. Zero: only about devices that were
  // found at the start.
  Duration verify_attached_period = kVerifyAttachedPeriod;
  // How long an edit of the volumes must last before the pod is replaced. This is for pods whose
  // manifests name no uid.
  Duration replace_settle = kRemovalSettle;
  // The time from one decision about claims to the next. Each decision reads all claims and
  // volumes, so everything that happens in between is decided together.
  Duration decide_claims_period = std::chrono::milliseconds(50);
  // What becomes of a pod with an emptyDir that holds more than its sizeLimit.
  SizeLimitAction size_limit_action = SizeLimitAction::kEvict;
  // Called in parts, before the first operation, with the volumes that the last agent left in the
  // store: the operation layer keeps the states of their records (NodeVolumeOperations::Restore).
  std::function<void(const std::vector<PodVolumeRecord>&, const std::vector<DeviceRecord>&)>
      restore_operations;
  // Says whether a worker for this key (OperationKey::ToString()) could not be ended. Optional.
  std::function<bool(const std::string& key)> is_stuck;
  // Called with what the start found, for metrics. Optional; called on the control thread.
  std::function<void(const TakeOver&)> taken_over;
  // Removes an object that a command with this number has ended from the source that volumectl
  // fills, unless a later command has given the object. Called again until it is gone.
  std::function<void(const ObjectKey&, uint64_t number)> remove_object;
  // Sources in which the removal of an object that outlives pods deletes it.
  std::set<std::string> removal_deletes;
  // Makes a uid for an object whose manifest names none. If this is empty, uids are random.
  std::function<std::string(const ObjectKey&)> new_uid;
  // Starts the sources, with what the last agent knew of each. Called once, when everything that
  // the last agent left is loaded: a source that starts sooner could not tell what it has lost.
  // Optional.
  std::function<void(std::map<std::string, SourceMemory>)> start_sources;
  // Called when a first volume is made from a Secret or ConfigMap, and when no volume is made from
  // it any more.
  std::function<void(const ObjectKey& object, bool is_named)> object_named;
  // Called with the volumes of a pod that the last process left here and that no source has, before
  // the pod leaves. Optional.
  std::function<void(const std::set<PodVolumeKey>&)> orphan_found;
};

// How far a count of the volumes has come; a new object has counted none.
struct VolumeCounting {
  struct OfPlugin {
    int64_t desired = 0;
    int64_t actual = 0;
  };
  std::map<std::string, OfPlugin> counts;  // by plugin
  bool desired_done = false;
  PodUid last;  // the last pod that was counted, of the desired or of the actual ones

  // The counts in the form of KubeletVolumeManager::VolumeCounts().
  std::map<std::pair<std::string, std::string>, int64_t> Figures() const;
};

// Threads: the control thread. Blocks: never. REQUIRES: it is made before the catalog's first
// change, since it listens to the catalog, and destroyed after the catalog's last change.
class KubeletVolumeManager final : public VolumeManager {
 public:
  KubeletVolumeManager(VolumeManagerParts parts, const BootId& boot_id,
                       VolumeManagerSettings settings);
  ~KubeletVolumeManager() override;

  // Begins to load what the last agent left; nothing is mounted or unmounted before that is done. A
  // store or kernel that does not answer is asked again. REQUIRES: it is called once.
  void Start();

  void ObjectsChanged() override;
  // Records how the directory of a source is recognised at the next start.
  void NoteDirectory(const std::string& source, const KnownDirectory& directory,
                     const UnprovenAbsences& unproven = {});
  // A command has made the agent forget the source; its directory is forgotten too.
  void SourceForgotten(const std::string& source);
  // A plugin came, changed or went: pods that wait for it are tried again at once.
  void PluginChanged(const std::string& plugin_name);
  // A device with these names has appeared, or has another size: what failed for lack of it is
  // tried again.
  void DeviceAppeared(const std::vector<std::string>& paths);
  // The device with these names has gone: the pods that have it are told.
  void DeviceVanished(const std::vector<std::string>& paths);
  // Mounts at these paths went. A pod that leaves, and could not because of such a mount, is tried
  // again at once.
  void MountsGone(const std::vector<std::string>& mount_points);
  // Mounts came or went at these paths, which are not below the root's pods: what failed for lack
  // of a directory there is tried again.
  void MountsChangedElsewhere(const std::vector<std::string>& mount_points);
  // Sets how volumes are measured from now on (VolumeStats::SetTimes).
  void SetStatsTimes(Duration period, Duration deadline);
  // Sets how often servers are looked at from now on (DomainHealth::SetPeriod).
  void SetServerLookPeriod(Duration period);
  // The held pods of an adopted root may go.
  void AcceptAdoptedPods();
  // Sets how long an edit of a static pod's volumes must last, from now on, before the pod is
  // replaced.
  void SetReplaceSettle(Duration settle);
  // Sets how often plugins are asked, from now on, which volumes are attached. Zero: only about
  // devices that were found at the start.
  void SetVerifyAttachedPeriod(Duration period);
  // What kept the storage of this volume from being made, deleted or recycled may be gone. `name`
  // is that of its PersistentVolume, or its unique name.
  void RetryStorage(const std::string& name);
  // Looks again at everything that depends on the wall time, such as tokens that are not valid yet
  // or not any more.
  void WallClockWasSet();
  // GetVolumeLimits may have other answers from now on: volumes that wait for a slot are looked at
  // again.
  void AttachLimitsChanged();
  void DeletePod(const PodUid& pod, bool force, std::function<void(Status)> done) override;
  void Hold(HoldRequest request, std::function<void(Status)> done) override;
  void ReleaseHold(HoldRequest request, std::function<void(Status)> done) override;
  Status Retry(const PodUid& pod) override;
  Status RetryVolume(const PodVolumeKey& key) override;
  bool IsBeingDeleted(const ObjectKey& object) const override;
  bool HasEnded(const ObjectKey& object, const std::string& uid) const override;
  bool IsBound(const ObjectKey& object) const override;
  PodUid PodOfClaim(const ObjectKey& claim) const override;
  std::string UidOnRecord(const ObjectKey& object) const override;
  std::optional<int64_t> ReplacedAtUnixMillis(const ObjectKey& pod) const override;
  std::vector<HeldPodView> HeldAdoptedPods() const override;
  std::optional<StorageStatus> StorageStatusOf(const ObjectKey& object) const override;
  void DeleteObject(const ObjectKey& object, std::function<void(Status)> done) override;
  void NumberCommand(std::function<void(Result<uint64_t>)> done) override;
  PersistentVolumeClaimStatus ClaimStatus(const PersistentVolumeClaim& claim) const override;
  std::vector<PodView> Pods() const override;
  std::vector<PodName> PodNames(const PodName& after, size_t limit) const override;
  bool HasPod(const PodUid& pod) const override;
  std::vector<PodView> PodsNamed(const std::string& name_space,
                                 const std::string& name) const override;
  std::optional<PodView> FindPod(const PodUid& pod) const override;
  PodOnNode FindOnNode(const PodUid& pod) const override;
  std::vector<PersistentVolumeView> PersistentVolumes() const override;
  std::vector<PersistentVolumeClaimView> PersistentVolumeClaims() const override;
  bool Ready() const override;
  std::string NotReadyReason() const override;
  uint64_t AddObserver(std::function<void(const PodUid&)> observer) override;
  void RemoveObserver(uint64_t id) override;

  // The part of a pod's view that costs only a look at the pod's volumes.
  struct VolumeProgress {
    SpecName spec;
    bool wanted = false;
    bool set_up = false;
  };
  std::vector<VolumeProgress> VolumesOf(const PodUid& pod) const;

  // For volume_manager_total_volumes: (plugin name, "desired_state_of_world" or
  // "actual_state_of_world") -> number of volumes. Source: kubernetes
  // pkg/kubelet/volumemanager/metrics.
  std::map<std::pair<std::string, std::string>, int64_t> VolumeCounts() const;
  // The same in parts: counts the volumes of some more pods. Returns true if these were the last.
  bool CountVolumes(VolumeCounting& counting) const;
  // Servers on which volumes depend, and whether they answer.
  std::map<std::string, bool> DomainsAnswering() const;
  // claim_decisions: how often it was decided which claim has which volume, for tests that count
  // work. quarantined_pods: how many pods were found at the start whose records could not be read.
  uint64_t claim_decisions() const;
  size_t quarantined_pods() const;
  // Mounts below the root that were found at the start and that no record knows: "volume data of
  // pod UID".
  const std::vector<std::string>& unrecorded_mounts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace volumed
