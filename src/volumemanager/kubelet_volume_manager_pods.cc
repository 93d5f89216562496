// KubeletVolumeManager: which pods are wanted, by what sources, commands and limits say.
#include <algorithm>
#include <utility>

#include "kube/decode.h"
#include "operation/attach_operations.h"
#include "volumemanager/failed_mount_text.h"
#include "volumemanager/kubelet_volume_manager_impl.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/kubelet/server/stats/volume_stat_calculator.go@v1.36.2.
constexpr const char* kVolumeConditionAbnormal = "VolumeConditionAbnormal";

bool Contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool HasVolumeOf(const WantedPod& pod, const std::string& plugin_name) {
  return std::any_of(pod.volumes.begin(), pod.volumes.end(),
                     [&](const auto& volume) { return volume.second.plugin_name == plugin_name; });
}

}  // namespace

std::optional<Ending> EndingOf(const Pod& pod) {
  if (pod.status.phase == PodPhase::kSucceeded) return Ending{"it has ended (Succeeded)", 0};
  if (pod.status.phase == PodPhase::kFailed) return Ending{"it has ended (Failed)", 0};
  if (!pod.deletion_requested()) return std::nullopt;
  // The time counts from when this agent hears of the deletion, as in kubelet: the timestamp comes
  // from another machine's clock.
  return Ending{"its deletion was requested", pod.metadata.deletion_grace_period_seconds.value_or(
                                                  pod.spec.termination_grace_period_seconds)};
}

// ---- events -------------------------------------------------------------------------------------

void KubeletVolumeManager::Impl::CatalogChanged(const std::vector<ObjectChange>& changes) {
  if (loaded_) {
    known_.Follow(parts_.catalog, changes);
    constexpr int kFewPods = 3;  // of many changes the catalog tells a few at a time
    with_many_ = std::count_if(changes.begin(), changes.end(), [](const ObjectChange& change) {
                   return change.key.kind == ObjectKind::kPod;
                 }) > kFewPods;
    for (const ObjectChange& change : changes) {
      if (change.key.kind == ObjectKind::kPod) {
        PodSourceChanged(change);
        continue;
      }
      // An object that is unknown, or that has only moved, changes nothing.
      if (change.what == ObjectChange::What::kUnknown ||
          change.what == ObjectChange::What::kMoved) {
        continue;
      }
      ObjectChanged(change.key);
      // An object that the last agent knew, and that the first list lacks, is added as Missing.
      const bool may_be_missing =
          change.what == ObjectChange::What::kMissing || change.what == ObjectChange::What::kAdded;
      if (may_be_missing) DeleteIfRemoved(change.key);
      StorageChanged(change);
    }
    with_many_ = false;
  }
  NoteUnknownVolumes();
  CheckReady();
}

void KubeletVolumeManager::Impl::ObjectChanged(const ObjectKey& key) {
  for (const PodUid& uid : desired_.ObjectChanged(key)) {
    for (const auto& [spec, volume] : desired_.Find(uid)->volumes) {
      if (!volume.objects.contains(key)) continue;
      reconciler_.ResetBackoff(PodVolumeKey{uid, spec});
      if (volume.has_device) parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
      expander_.Retry(volume.unique_name);
    }
    reconciler_.MarkDirty(uid);
  }
}

std::set<PodUid> KubeletVolumeManager::Impl::PodsOfPlugin(const std::string& plugin_name) const {
  std::set<PodUid> pods;
  for (const auto& [uid, pod] : desired_.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      const bool waits = volume.spec.KubeletExpandablePluginName() == plugin_name;
      if (waits || volume.plugin_name == plugin_name) pods.insert(uid);
    }
  }
  for (const auto& [uid, pod] : actual_.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (volume.plugin_name == plugin_name) pods.insert(uid);
    }
  }
  return pods;
}

void KubeletVolumeManager::Impl::PluginChanged(const std::string& plugin_name) {
  if (!loaded_) return;  // nothing has been looked up yet
  const bool is_there = parts_.plugins.FindPluginByName(plugin_name).ok();
  for (const PodUid& uid : PodsOfPlugin(plugin_name)) {
    const WantedPod* wanted = desired_.Find(uid);
    // What was built with a plugin that is gone stays as it is: its pods keep what they have.
    if (wanted != nullptr && (is_there || !HasVolumeOf(*wanted, plugin_name))) {
      desired_.SetPod(PodPtr(wanted->pod));
    }
    reconciler_.ResetBackoff(uid);
    if (wanted = desired_.Find(uid); wanted != nullptr) {
      for (const auto& [spec, volume] : wanted->volumes) expander_.Retry(volume.unique_name);
    }
    reconciler_.MarkDirty(uid);
  }
  parts_.operations.ResetBackoff(VerifyAttachedKey(plugin_name));
  for (const auto& [name, device] : actual_.devices()) {
    if (device.plugin_name != plugin_name) continue;
    parts_.operations.ResetBackoff(OperationKey(name));
    devices_.MarkDirty(name);
  }
}

void KubeletVolumeManager::Impl::DeviceAppeared(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    vanished_devices_.erase(path);
    for (const PodUid& uid : desired_.PodsWithDevicePath(path)) {
      for (const auto& [spec, volume] : desired_.Find(uid)->volumes) {
        if (!Contains(volume.device_paths, path)) continue;
        reconciler_.ResetBackoff(PodVolumeKey{uid, spec});
        expander_.Retry(volume.unique_name);  // it may be possible to make it larger now
        if (!volume.has_device) continue;
        parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
        devices_.MarkDirty(volume.unique_name);
      }
      reconciler_.MarkDirty(uid);
      Changed(uid);
    }
  }
}

void KubeletVolumeManager::Impl::DeviceVanished(const std::vector<std::string>& paths) {
  const int64_t now = parts_.scheduler.clock().WallUnixMillis();
  std::set<PodUid> pods;
  for (const std::string& path : paths) {
    const std::set<PodUid>& users = desired_.PodsWithDevicePath(path);
    if (!users.empty()) vanished_devices_.emplace(path, now);
    pods.insert(users.begin(), users.end());
  }
  // These are the devices whose path is known because an operation has waited for them.
  for (const auto& [name, device] : actual_.devices()) {
    if (device.device_path.empty() || !Contains(paths, device.device_path)) continue;
    vanished_devices_.emplace(device.device_path, now);
    const std::set<PodUid>& users = desired_.UsersOf(name);
    pods.insert(users.begin(), users.end());
  }
  for (const PodUid& uid : pods) {
    for (const auto& [spec, volume] : desired_.Find(uid)->volumes) {
      if (const auto gone = views_.VanishedDevice({uid, spec}, volume)) {
        parts_.host.events.RecordPodEvent(uid, EventType::kWarning, kVolumeConditionAbnormal,
                                          "volume \"" + spec.str() + "\": " + gone->message);
      }
    }
    Changed(uid);
  }
}

void KubeletVolumeManager::Impl::StorageChanged(const ObjectChange& change) {
  switch (change.key.kind) {
    case ObjectKind::kPersistentVolume:
      claims_.ResetBackoff(change.key.name);
      if (change.what == ObjectChange::What::kRemoved && change.before != nullptr &&
          claims_.FindVolume(change.key.name) == nullptr) {
        ForgetVolume(std::get<PersistentVolume>(*change.before));
      }
      return;
    case ObjectKind::kPersistentVolumeClaim:
    case ObjectKind::kStorageClass:
      provisioning_.ResetBackoff();
      claims_.MarkDirty();
      return;
    case ObjectKind::kPod:
    case ObjectKind::kSecret:
    case ObjectKind::kConfigMap:
    case ObjectKind::kNode:
    case ObjectKind::kCsiDriver:
      return;
  }
}

void KubeletVolumeManager::Impl::PodSourceChanged(ObjectChange change) {
  // The catalog has no uid for a pod that was unknown.
  if (change.uid.empty()) change.uid = PodUid(known_.KnownUidOf(change.key));
  replacements_.Follow(change.key);
  if (change.uid.empty()) return;
  if (change.what == ObjectChange::What::kRemoved) {
    ActualPod* pod = actual_.FindPod(change.uid);
    if (pod != nullptr && pod->leaving) pod->leaving->left_sources = true;
    if (pod == nullptr && !tombstones_.contains(change.uid)) {
      ForgetPodIdentity(change.uid, {change.key.name_space, change.key.name, "", ""});
    }
  }
  reconciler_.ResetBackoff(change.uid);
  EvaluatePod(change.uid);
}

void KubeletVolumeManager::Impl::EvaluatePod(const PodUid& uid) {
  const PodPtr pod = parts_.catalog.FindPod(uid);
  const std::optional<Ending> ending = pod == nullptr ? std::nullopt : EndingOf(*pod);
  if (pod != nullptr) FollowFile(*pod);
  if (const auto tombstone = tombstones_.find(uid); tombstone != tombstones_.end()) {
    if (pod == nullptr && Ready() && !IsUnknown(tombstone->second.identity)) DropTombstone(uid);
    Changed(uid);
    return;
  }
  ActualPod* actual = actual_.FindPod(uid);
  if (pod == nullptr && adopted_.IsHeld(uid)) return;
  if (pod == nullptr && actual != nullptr && IsUnknown(actual->identity)) return;
  const bool commanded = actual != nullptr && actual->leaving && actual->leaving->commanded &&
                         !(pod != nullptr && actual->leaving->left_sources);
  if (pod != nullptr && !ending && !commanded) {
    Want(pod);
  } else {
    Unwant(uid);
    if (actual != nullptr && pod == nullptr && parts_.catalog.ReplacedByCommand().contains(uid)) {
      LeaveForSuccessor(*actual);
    } else if (actual != nullptr && !commanded) {
      if (ending) {
        MarkLeaving(*actual, ending->reason, ending->grace_seconds);
      } else if (Ready()) {
        if (!actual->leaving && !actual->delivered) ReportOrphan(uid, *actual);
        MarkLeaving(*actual, WhyItLeft(actual->identity), std::nullopt);
        const bool news = !std::exchange(actual->leaving->left_sources, true);
        if (news) actual->record_outdated = actual->record_durable || actual->record_writing;
      }
    }
  }
  MarkDirty(uid);
}

// Whether it is not known if a source has the pod; what the pod has then stays as it is.
bool KubeletVolumeManager::Impl::IsUnknown(const PodIdentity& identity) const {
  const ObjectKey key{ObjectKind::kPod, identity.name_space, identity.name};
  return Ready() && parts_.catalog.LookUp(key).answer == ObjectLookup::Answer::kUnknown;
}

std::string KubeletVolumeManager::Impl::WhyItLeft(const PodIdentity& identity) const {
  const ObjectKey key{ObjectKind::kPod, identity.name_space, identity.name};
  return parts_.catalog.Replaced().contains(key)
             ? "its manifest has other volumes: another pod replaces it"
             : "removed from its sources";
}

// The devices of the pod's volumes, and its claims, may have no pod any more after this.
void KubeletVolumeManager::Impl::Unwant(const PodUid& uid) {
  const WantedPod* wanted = desired_.Find(uid);
  if (wanted == nullptr) return;
  for (const auto& [spec, volume] : wanted->volumes) {
    if (volume.has_device) devices_.MarkDirty(volume.unique_name);
    if (volume.claim) claims_.MarkDirty();
  }
  desired_.RemovePod(uid);
}

PodIdentity KubeletVolumeManager::Impl::IdentityOf(const Pod& pod) const {
  const ObjectKey key{ObjectKind::kPod, pod.metadata.name_space, pod.metadata.name};
  const std::optional<ObjectOrigin> origin = parts_.catalog.OriginOf(key);
  return {key.name_space, key.name, origin ? origin->source : "", origin ? origin->file : ""};
}

void KubeletVolumeManager::Impl::Want(const PodPtr& pod) {
  adopted_.Release(pod->uid());
  const PodIdentity identity = IdentityOf(*pod);
  ActualPod& actual = actual_.AddPod(pod->uid(), identity);
  // From the record the next agent knows the pod if its file is in disorder.
  const bool is_on_record = actual.record_durable || actual.record_writing;
  if (is_on_record &&
      (actual.identity != identity ||
       (actual.object != pod && EncodeObjectJson(Object(*pod)) != actual.recorded_json))) {
    actual.record_outdated = true;
  }
  actual_.SetIdentity(pod->uid(), identity);
  actual.object = pod;
  NoteClaims(pod->uid(), *pod);
  const std::optional<ObjectStanding> standing =
      parts_.catalog.StandingOf({ObjectKind::kPod, identity.name_space, identity.name});
  if (standing && standing->presence == ObjectPresence::kPresent) actual.delivered = true;
  if (actual.leaving) {
    actual.leaving.reset();
    actual.teardown_begun = false;
    actual.remove_failure.reset();
    actual.record_outdated = actual.record_durable || actual.record_writing;
    AnswerDeletes(pod->uid(), OkStatus());  // no source had it any more, so it is wanted anew
  }
  desired_.SetPod(pod);
  MarkClaimsDirty(pod->uid());
  if (const auto text = FailedMountText(*desired_.Find(pod->uid()), actual)) {
    parts_.host.events.RecordPodEvent(pod->uid(), EventType::kWarning, kFailedMount, *text);
  }
}

Status KubeletVolumeManager::Impl::Retry(const PodUid& uid) {
  if (!loaded_) return NotLoaded();
  if (actual_.FindPod(uid) == nullptr) return NoSuchPod(uid);
  reconciler_.ResetBackoff(uid);
  if (const WantedPod* wanted = desired_.Find(uid)) {
    for (const auto& [spec, volume] : wanted->volumes) expander_.Retry(volume.unique_name);
  }
  EvaluatePod(uid);
  return OkStatus();
}

void KubeletVolumeManager::Impl::MountsGone(const std::vector<std::string>& mount_points) {
  const std::string pods = parts_.host.paths.root() + "/pods/";
  std::set<PodUid> concerned;
  for (const std::string& mount_point : mount_points) {
    if (!mount_point.starts_with(pods)) continue;
    concerned.emplace(
        mount_point.substr(pods.size(), mount_point.find('/', pods.size()) - pods.size()));
  }
  for (const PodUid& uid : concerned) {
    reconciler_.MountWent(uid);
    Uncover(uid, mount_points);
  }
  if (!loaded_) gone_while_loading_.insert(mount_points.begin(), mount_points.end());
}

void KubeletVolumeManager::Impl::MountsChangedElsewhere(
    const std::vector<std::string>& mount_points) {
  for (const std::string& mount_point : mount_points) {
    for (const PodUid& uid : desired_.PodsWithDevicePathBelow(mount_point)) {
      for (const auto& [spec, volume] : desired_.Find(uid)->volumes) {
        if (volume.device_paths.empty()) continue;
        reconciler_.SourceMayHaveChanged({uid, spec});
        if (!volume.has_device) continue;
        parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
        devices_.MarkDirty(volume.unique_name);
      }
    }
  }
}

void KubeletVolumeManager::Impl::Uncover(const PodUid& uid,
                                         const std::vector<std::string>& mount_points) {
  ActualPod* const pod = actual_.FindPod(uid);
  if (pod == nullptr || pod->covered_by.empty() ||
      std::find(mount_points.begin(), mount_points.end(), pod->covered_by) == mount_points.end()) {
    return;
  }
  parts_.log.Info("the mount over a pod's directory is gone",
                  {{"pod_uid", uid}, {"mount_point", pod->covered_by}});
  pod->covered_by.clear();
  pod->quarantine_reason.clear();
  EvaluatePod(uid);
}

Status KubeletVolumeManager::Impl::RetryVolume(const PodVolumeKey& key) {
  if (!loaded_) return NotLoaded();
  const ActualPod* pod = actual_.FindPod(key.pod);
  if (pod == nullptr) return NoSuchPod(key.pod);
  if (actual_.FindVolume(key) == nullptr && desired_.Find(key) == nullptr) {
    return Error::NotApplied(Code::kNotFound, "pod " + pod->identity.DisplayName() +
                                                  " has no volume \"" + key.spec.str() + "\"");
  }
  reconciler_.ResetBackoff(key);
  if (const WantedVolume* wanted = desired_.Find(key)) expander_.Retry(wanted->unique_name);
  EvaluatePod(key.pod);
  return OkStatus();
}

void KubeletVolumeManager::Impl::RetryStorage(const std::string& name) {
  if (!loaded_) return;  // nothing has been tried yet
  claims_.ResetBackoff(name);
  provisioning_.ResetBackoff();
  for (const auto& [uid, pod] : desired_.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (!volume.has_device) continue;
      if (volume.unique_name.str() != name && volume.spec.name().str() != name) continue;
      reconciler_.ResetBackoff(PodVolumeKey{uid, spec});
      parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
      devices_.MarkDirty(volume.unique_name);
      reconciler_.MarkDirty(uid);
    }
  }
}

void KubeletVolumeManager::Impl::Hold(HoldRequest request, std::function<void(Status)> done) {
  const ActualPod* pod = actual_.FindPod(request.pod);
  std::optional<Error> refused;
  if (!loaded_) {
    refused = NotLoaded();
  } else if (pod == nullptr) {
    refused = NoSuchPod(request.pod);
  } else if (pod->teardown_begun) {
    refused = Error::NotApplied(Code::kFailedPrecondition,
                                "pod " + pod->identity.DisplayName() + " is being torn down");
  }
  if (refused) {
    parts_.scheduler.Post([done, error = *refused] { done(error); });
    return;
  }
  consumers_.Hold(request, std::move(done));
  Changed(request.pod);
}

void KubeletVolumeManager::Impl::ReleaseHold(HoldRequest request,
                                             std::function<void(Status)> done) {
  consumers_.Release(request, std::move(done));
}

}  // namespace volumed
