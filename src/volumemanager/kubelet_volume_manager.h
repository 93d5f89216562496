// KubeletVolumeManager: the VolumeManager of the agent, put together from its parts.
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

// Everything outlives the manager.
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
  // The root was made by somebody else (--adopt-root): pods found in it are ours to clean.
  bool adopt_root = false;
  // Where the kubelet that had the root kept the logs of its pods.
  std::string pod_logs_directory = "/var/log/pods";
  VolumeStatsSettings stats;
  DomainHealthSettings health;
  // How often plugins are asked which volumes are attached; zero: only at start.
  Duration verify_attached_period = kVerifyAttachedPeriod;
  // How long an edit of the volumes of a pod without a uid in its manifest must last, before the
  // pod is replaced.
  Duration replace_settle = kRemovalSettle;
  // How soon after a decision about claims the next one is made. Each reads all claims and volumes:
  // what happens meanwhile is decided together.
  Duration decide_claims_period = std::chrono::milliseconds(50);
  // What becomes of a pod with an emptyDir that holds more than its sizeLimit.
  SizeLimitAction size_limit_action = SizeLimitAction::kEvict;
  // Told in parts, before the first operation, what volumes the last agent left in the store: the
  // operation layer keeps the states of their records (NodeVolumeOperations::Restore).
  std::function<void(const std::vector<PodVolumeRecord>&, const std::vector<DeviceRecord>&)>
      restore_operations;
  // Answers whether a worker for this key (OperationKey::ToString()) could not be ended. Optional.
  std::function<bool(const std::string& key)> is_stuck;
  // What the start found, for whoever counts it. Optional; each is called on the control thread.
  std::function<void(const TakeOver&)> taken_over;
  // Takes an object that a command with this number has ended out of the source that volumectl
  // fills, unless a later command has given it. Called again until it is gone.
  std::function<void(const ObjectKey&, uint64_t number)> remove_object;
  // Sources of which an object that outlives a pod is deleted by taking it away.
  std::set<std::string> removal_deletes;
  // A uid for an object whose manifest names none. Without: random ones.
  std::function<std::string(const ObjectKey&)> new_uid;
  // Starts the sources, with what the last agent knew of each: called once, when what the last
  // agent left is loaded. A source that starts sooner could not tell what it has lost. Optional.
  std::function<void(std::map<std::string, SourceMemory>)> start_sources;
  // A Secret or ConfigMap that a first volume is made from, or that none is made from any more.
  std::function<void(const ObjectKey& object, bool is_named)> object_named;
  // The volumes of a pod that the last process left here, and that no source has: told before it
  // leaves. Optional.
  std::function<void(const std::set<PodVolumeKey>&)> orphan_found;
};

// How far a count of the volumes has come. Begins empty.
struct VolumeCounting {
  struct OfPlugin {
    int64_t desired = 0;
    int64_t actual = 0;
  };
  std::map<std::string, OfPlugin> counts;  // by plugin
  bool desired_done = false;
  PodUid last;  // that was counted, of the desired ones or of the actual ones

  // As KubeletVolumeManager::VolumeCounts() answers it.
  std::map<std::pair<std::string, std::string>, int64_t> Figures() const;
};

// Threads: the control thread. Blocks: never. REQUIRES: made before the catalog's first change, as
// it listens to it; destroyed only when the catalog changes no more.
class KubeletVolumeManager final : public VolumeManager {
 public:
  KubeletVolumeManager(VolumeManagerParts parts, const BootId& boot_id,
                       VolumeManagerSettings settings);
  ~KubeletVolumeManager() override;

  // Begins to load what the last agent left; nothing is mounted or unmounted before that is done.
  // A store or kernel that does not answer is asked again. Called once.
  void Start();

  void ObjectsChanged() override;
  // What the directory of a source is recognised by at the next start.
  void NoteDirectory(const std::string& source, const KnownDirectory& directory,
                     const UnprovenAbsences& unproven = {});
  // The source is forgotten by command, with its directory.
  void SourceForgotten(const std::string& source);
  // A plugin came, changed or went: what waits for it is tried at once.
  void PluginChanged(const std::string& plugin_name);
  // A device is there now, by these names, or has another size: what failed for want of it is
  // tried again.
  void DeviceAppeared(const std::vector<std::string>& paths);
  // It is not there any more: the pods that have it are told.
  void DeviceVanished(const std::vector<std::string>& paths);
  // Mounts at these paths went: a pod that leaves, and could not because of one, is tried at once.
  void MountsGone(const std::vector<std::string>& mount_points);
  // Mounts came or went at these paths, which are not below the root's pods: what failed for want
  // of a directory there is tried again.
  void MountsChangedElsewhere(const std::vector<std::string>& mount_points);
  // How volumes are measured from now on (VolumeStats::SetTimes).
  void SetStatsTimes(Duration period, Duration deadline);
  // How often servers are looked at from now on (DomainHealth::SetPeriod).
  void SetServerLookPeriod(Duration period);
  // The pods of an adopted root that are held may go.
  void AcceptAdoptedPods();
  // How long an edit of a static pod's volumes must last from now on, before the pod is replaced.
  void SetReplaceSettle(Duration settle);
  // How often plugins are asked from now on which volumes are attached; zero: never.
  void SetVerifyAttachedPeriod(Duration period);
  // What kept the storage of this volume from being made, deleted or recycled may be gone. `name`:
  // of its PersistentVolume, or its unique name.
  void RetryStorage(const std::string& name);
  // What depends on the wall time (tokens that are not valid yet or not any more) is looked at.
  void WallClockWasSet();
  // GetVolumeLimits may answer something else from now on: who waits for a slot is looked at again.
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

  // What of a pod's views an observer may follow at the price of its volumes alone.
  struct VolumeProgress {
    SpecName spec;
    bool wanted = false;
    bool set_up = false;
  };
  std::vector<VolumeProgress> VolumesOf(const PodUid& pod) const;

  // For volume_manager_total_volumes: (plugin name, "desired_state_of_world" or
  // "actual_state_of_world") -> volumes. Source: kubernetes pkg/kubelet/volumemanager/metrics.
  std::map<std::pair<std::string, std::string>, int64_t> VolumeCounts() const;
  // The same in parts: counts the volumes of some more pods; true: these were the last.
  bool CountVolumes(VolumeCounting& counting) const;
  // Servers that volumes hang with: whether they answer.
  std::map<std::string, bool> DomainsAnswering() const;
  // Pods found at start whose records could not be read.
  // How often it was decided anew which claim has which volume, for tests that count work.
  uint64_t claim_decisions() const;
  size_t quarantined_pods() const;
  // What was mounted below the root at the start and has no record: "volume data of pod UID".
  const std::vector<std::string>& unrecorded_mounts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace volumed
