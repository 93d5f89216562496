// KubeletVolumeManager::Impl: the parts of the manager; only its own source files include this
// header. kubelet_volume_manager.cc puts the parts together and shows what they know;
// kubelet_volume_manager_start.cc loads what the last agent left, until absence means something;
// kubelet_volume_manager_pods.cc decides which pods are wanted; kubelet_volume_manager_leaving.cc
// follows pods to their end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/work_in_steps.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/adopted_pods.h"
#include "volumemanager/claims.h"
#include "volumemanager/consumers.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/device_reconciler.h"
#include "volumemanager/domain_health.h"
#include "volumemanager/known_objects.h"
#include "volumemanager/kubelet_volume_manager.h"
#include "volumemanager/pod_replacements.h"
#include "volumemanager/pod_views.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/storage_views.h"
#include "volumemanager/volume_expander.h"

namespace volumed {

// Why a pod that a source has is to lose its volumes, and how long it keeps them.
struct Ending {
  std::string reason;
  int64_t grace_seconds = 0;
};
// nullopt if the pod goes on.
std::optional<Ending> EndingOf(const Pod& pod);

// Errors by which a command on a pod is refused.
Error NoSuchPod(const PodUid& pod);
Error NotLoaded();

class KubeletVolumeManager::Impl {
 public:
  using Done = std::function<void(Status)>;

  Impl(VolumeManagerParts parts, const BootId& boot_id, VolumeManagerSettings settings);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Start();
  void CheckReady();
  void AllAreEvaluated();
  // To be called whenever one more source may have been in order for the first time.
  void DeleteWhatHasMovedNowhere();
  void NoteDirectory(const std::string& source, const KnownDirectory& directory,
                     const UnprovenAbsences& unproven = {}) {
    known_.NoteDirectory(source, directory, unproven);
  }
  void SourceForgotten(const std::string& source) { known_.ForgetSource(source); }
  void PluginChanged(const std::string& plugin_name);
  void DeletePod(const PodUid& uid, bool force, Done done);
  void Hold(HoldRequest request, std::function<void(Status)> done);
  void ReleaseHold(HoldRequest request, std::function<void(Status)> done);
  Status Retry(const PodUid& uid);
  Status RetryVolume(const PodVolumeKey& key);
  void RetryStorage(const std::string& name);
  // In Unix milliseconds; nullopt if the object is not being deleted.
  std::optional<int64_t> DeletedSince(const ObjectKey& object) const;
  bool HasEnded(const ObjectKey& object, const std::string& uid) const {
    return deleted_.HasEnded({object, uid});
  }
  bool IsBound(const ObjectKey& object) const { return claims_.IsBound(object); }
  PodUid PodOfClaim(const ObjectKey& claim) const { return claims_.PodOfClaim(claim); }
  std::string UidOnRecord(const ObjectKey& object) const;
  bool HasReleased(const DeletedObjects::Id& claim) const;
  std::optional<StorageStatus> StorageStatusOf(const ObjectKey& object) const;
  void DeleteObject(const ObjectKey& object, Done done);
  void NumberCommand(const std::function<void(Result<uint64_t>)>& done);
  PersistentVolumeClaimStatus ClaimStatus(const PersistentVolumeClaim& claim) const {
    return claims_.ShownStatus(claim);
  }
  std::vector<PodView> Pods() const;
  std::vector<PodName> PodNames(const PodName& after, size_t limit) const;
  std::vector<PodView> PodsNamed(const std::string& name_space, const std::string& name) const;
  std::optional<PodView> FindPod(const PodUid& uid) const;
  PodOnNode FindOnNode(const PodUid& uid) const;
  bool HasPod(const PodUid& uid) const;
  std::vector<VolumeProgress> VolumesOf(const PodUid& uid) const;
  StorageViews storage() const { return StorageViews(parts_.catalog, claims_); }
  void SetStatsTimes(Duration period, Duration deadline) { stats_.SetTimes(period, deadline); }
  void DeviceAppeared(const std::vector<std::string>& paths);
  void DeviceVanished(const std::vector<std::string>& paths);
  void MountsGone(const std::vector<std::string>& mount_points);
  void MountsChangedElsewhere(const std::vector<std::string>& mount_points);
  // Takes up the pod if it was left alone because of one of these mounts.
  void Uncover(const PodUid& uid, const std::vector<std::string>& mount_points);
  void WallClockWasSet() {
    for (const auto& [uid, pod] : actual_.pods()) reconciler_.MarkDirty(uid, /*with_many=*/true);
  }
  void AttachLimitsChanged() { devices_.AttachLimitsChanged(); }
  void SetServerLookPeriod(Duration period);
  void SetReplaceSettle(Duration settle) { replacements_.SetSettle(settle); }
  std::optional<int64_t> ReplacedAtUnixMillis(const ObjectKey& pod) const {
    return replacements_.BeginsAtUnixMillis(pod);
  }
  std::vector<HeldPodView> HeldAdoptedPods() const;
  // For a volume whose claim is gone; "" if something on this node can do what the policy asks.
  std::string WhyNotReclaimed(const PersistentVolume& volume, ReclaimAction action) const;
  void AcceptAdoptedPods();
  void SetVerifyAttachedPeriod(Duration period) { devices_.SetVerifyAttachedPeriod(period); }
  uint64_t claim_decisions() const { return claims_.decisions(); }
  // To be called before claims and volumes are shown.
  void DecideClaimsNow() { claims_.DecideNow(); }
  bool Ready() const { return loaded_ && NotReadyReason().empty(); }
  std::string NotReadyReason() const;

  bool CountVolumes(VolumeCounting& counting) const;
  std::map<std::string, bool> DomainsAnswering() const { return health_.Answering(); }

  uint64_t next_observer_ = 1;
  std::map<uint64_t, std::function<void(const PodUid&)>> observers_;
  size_t quarantined_pods_ = 0;
  // Mount points that went during loading; what was found may still name them.
  std::set<std::string> gone_while_loading_;
  std::vector<std::string> unrecorded_mounts_;
  bool all_were_in_order_ = false;  // each source was so once since the start

 private:
  VolumeStatsSettings StatsSettings();
  DomainHealthSettings HealthSettings();
  VolumeStats::Writer WriterOf(const PodVolumeKey& key) const;
  void TrackHealth(const PodVolumeKey& key, const VolumeSpec& spec, const PodPtr& pod);
  // A server fell silent, or answers again.
  void DomainChanged(const DomainState& domain, const std::set<PodVolumeKey>& volumes);
  Reconciler::Hooks MakeHooks();
  DeviceReconciler::Hooks MakeDeviceHooks();
  Claims::Hooks MakeClaimHooks();
  KnownObjects::Hooks MakeKnownHooks();
  // Ends a deleted object that nothing protects any more, or records the command to delete it.
  void DeleteByCommand(const DeletedObjects::Id& object, bool at_once, DeletedObjects::Done done);
  void LetObjectGo(const DeletedObjects::Id& object);
  void EndWithStorage(const DeletedObjects::Id& volume);
  // What is on record of the deletion has changed.
  void DeletionChanged(const DeletedObjects::Id& object);
  // The object has ended: removes it wherever it is.
  void TakeAway(const DeletedObjectRecord& deleted);
  // No source has the object any more, which a command has ended.
  void ForgetDeleted(const ObjectKey& key);
  // The records of claims may be about fewer of the ended objects now.
  void ForgetUnlisted();
  std::set<std::string> UidsOf(const ObjectKey& key) const;
  // Deletes the object if it has left a source in which that is the command to delete it.
  void DeleteIfRemoved(const ObjectKey& key);
  void DeleteWhatWasRemoved();
  // nullopt if a command can be taken.
  std::optional<Error> WhyNoCommand() const;
  // Notes, for a pod on the node, whether decisions about claims read it.
  void NoteClaims(const PodUid& uid, const Pod& pod);
  // Something about the pod has changed that decisions about claims may read.
  void MarkClaimsDirty(const PodUid& uid);
  std::vector<ClaimPod> ClaimPods() const;
  // The answers for these claims may have changed: the pods that name them are built again.
  void ObjectChanged(const ObjectKey& key);
  // The name of a volume whose plugin mounts devices; empty for other volumes.
  UniqueVolumeName DeviceNameOf(const PersistentVolume& volume) const;
  // Nothing has to be known of the volume any more.
  void ForgetVolume(const PersistentVolume& volume);
  void ForgetDevice(const UniqueVolumeName& device);
  void ForgetRestingStorage();
  // Tells the operations which PersistentVolumes are known by name only, and lets what was refused
  // because of others be tried again.
  void NoteUnknownVolumes();
  // Removes rows of devices whose volume has ended.
  void ForgetRestingDevices();
  void Load();
  struct Loading;  // what was read, and how far it was taken over
  void Loaded(const std::shared_ptr<Loading>& loading);
  // Tells the operations what they have to know. Returns true when that is all.
  bool RestoreSome(Loading& loading, TaskLimit& limit);
  // Runs in one task, so that nobody sees a part of it.
  void TakeOverFound(Loading& loading);
  void LoadAgain(const Error& error);  // after a while
  // Holds the pods of an adopted root that have data and may have no source.
  void HoldAdoptedPods(const FoundAtStart& found);
  // Tells the catalog what the sources had, and lets the sources start.
  void SeedCatalog(const std::map<std::string, SourceMemory>& memories);
  void TellOfUnrecordedMounts(const ReconstructResult& result);
  void DoubtCommands();
  void CatalogChanged(const std::vector<ObjectChange>& changes);
  void PodSourceChanged(ObjectChange change);
  void StorageChanged(const ObjectChange& change);
  // The pods that want a volume of the plugin, or have one.
  std::set<PodUid> PodsOfPlugin(const std::string& plugin_name) const;
  // Decides whether the pod is wanted, from what the sources and commands say now.
  void EvaluatePod(const PodUid& uid);
  void MarkDirty(const PodUid& uid) {
    with_many_ ? reconciler_.MarkDirtyWithMany(uid) : reconciler_.MarkDirty(uid);
  }
  bool IsUnknown(const PodIdentity& identity) const;
  // Why a pod leaves that no source has any more.
  std::string WhyItLeft(const PodIdentity& identity) const;
  // Nothing of the pod is on the node, and no source has it: the next pod of its name is another
  // one.
  void ForgetPodIdentity(const PodUid& uid, const PodIdentity& identity);
  void PostToCatalog(void (ObjectCatalog::*tell)(const ObjectKey&), const PodIdentity& pod);
  // Lets the pod leave if a command has put another pod in its place.
  void LeaveForSuccessor(ActualPod& pod);
  PodIdentity IdentityOf(const Pod& pod) const;  // for a pod that a source has
  void Want(const PodPtr& pod);
  void Unwant(const PodUid& uid);
  void Evict(const PodUid& uid, const std::string& message);
  // Tells the metrics, before the pod is marked as leaving.
  void ReportOrphan(const PodUid& uid, const ActualPod& pod) const;
  void MarkLeaving(ActualPod& pod, const std::string& reason, std::optional<int64_t> grace_seconds);
  void PodRemoved(const PodUid& uid, const ActualPod& last);
  void Changed(const PodUid& uid) const;

  // Keeps the record of a pod that was deleted by command and that a source still has, or may have,
  // so that neither this agent nor the next one makes its volumes again.
  void KeepTombstone(const PodUid& uid, const ActualPod& last);
  void WriteTombstone(const PodUid& uid);
  void FollowFile(const Pod& pod);
  void DropTombstone(const PodUid& uid);
  PodView TombstoneView(const Pod& pod) const;

  // Why the command cannot be taken; nullopt if it can.
  std::optional<Error> RefuseDelete(const PodUid& uid) const;
  // Answers later, on the control thread.
  void PostAnswer(const Done& done, const Status& status);
  // Answers the callers that wait until the command to delete this pod is durable.
  void AnswerDeletes(const PodUid& uid, const Status& written);

  struct PodTombstone {
    int64_t since_unix_ms = 0;
    std::string evicted;  // why; "" if a person has deleted the pod
    PodIdentity identity;
    std::string pod_json;
  };

  const VolumeManagerParts parts_;
  const BootId boot_id_;
  const VolumeManagerSettings settings_;

  bool loaded_ = false;
  bool with_many_ = false;  // the catalog's present change is about many pods
  WorkInSteps loading_{parts_.scheduler};
  bool was_ready_ = false;
  WorkInSteps became_ready_{parts_.scheduler};  // work to be done after that
  std::optional<Error> load_error_;
  Backoff load_backoff_;
  // Pods that were deleted by command and that a source still has, or may have.
  std::map<PodUid, PodTombstone> tombstones_;
  std::map<PodUid, std::vector<Done>> deletes_;  // of commands that are not durable yet

  RecordWriter records_;
  Consumers consumers_;
  ActualStateOfWorld actual_;
  std::set<PodUid> pods_with_claims_;  // pods of the node
  AdoptedPods adopted_;
  KnownObjects known_;
  DeletedObjects deleted_;
  std::set<ObjectKey> unlisted_;  // ended and in no source, but records are still about them
  PodReplacements replacements_;
  Provisioning provisioning_;
  Claims claims_;
  // Paths of devices of wanted volumes that have gone -> when each went.
  std::map<std::string, int64_t> vanished_devices_;
  DesiredStateOfWorld desired_;
  SizeLimits size_limits_;
  VolumeStats stats_;
  DomainHealth health_;
  VolumeExpander expander_;
  DeviceReconciler devices_;
  Reconciler reconciler_;
  std::vector<UnknownVolume> unknown_volumes_;  // as the operations were told last
  // Devices at rest whose rows stay because they tell of a filesystem -> the volume's name.
  std::map<UniqueVolumeName, std::string> resting_devices_;
  PodViews views_;
  // This member is the last, so it is destroyed first: tasks that come later find the object gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
