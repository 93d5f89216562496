#include "volumemanager/kubelet_volume_manager.h"
#include "kube/ephemeral_claim.h"

#include <algorithm>

#include "base/random.h"
#include "kube/storage_enums.h"
#include "operation/device_operations.h"
#include "operation/storage_operations.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"
#include "volume/unique_name.h"
#include "volumemanager/kubelet_volume_manager_impl.h"

namespace volumed {
namespace {

// Reasons of events that kubelet does not have.
constexpr const char* kVolumeStuck = "VolumeStuck";
constexpr const char* kVolumeAnswers = "VolumeAnswers";

}  // namespace

KubeletVolumeManager::Impl::Impl(VolumeManagerParts parts, const BootId& boot_id,
                                 VolumeManagerSettings settings)
    : parts_(parts),
      boot_id_(boot_id),
      settings_(std::move(settings)),
      load_backoff_(parts.scheduler.clock()),
      records_(parts.scheduler, parts.store),
      consumers_({parts.scheduler, records_, parts.consumer_watch, parts.log}, boot_id,
                 [this](const PodUid& uid) { reconciler_.MarkDirty(uid); }),
      actual_(parts.scheduler.clock()),
      known_({parts.scheduler, records_, parts.log}, parts.host.node.GetNodeName(),
             MakeKnownHooks()),
      deleted_({parts.scheduler, records_, parts.log},
               [this](const DeletedObjects::Id& object) { DeletionChanged(object); }),
      replacements_(
          {parts.scheduler, parts.catalog, parts.log}, [this] { return Ready(); },
          settings_.replace_settle),
      provisioning_(
          {{parts.scheduler, records_, parts.log},
           parts.catalog,
           parts.plugins,
           parts.operations,
           parts.host.events},
          {[this] { claims_.MarkDirty(); }, [this](TimePoint when) { claims_.WakeAt(when); }}),
      claims_({parts.scheduler, parts.catalog, parts.host.node, parts.host.events, records_,
               parts.operations, known_, deleted_, provisioning_, parts.log,
               settings_.decide_claims_period},
              MakeClaimHooks()),
      desired_(parts.catalog, parts.plugins, parts.host.node, claims_),
      size_limits_(parts.host.events, parts.scheduler.clock(), settings_.size_limit_action,
                   [this](const PodUid& uid, const std::string& message) { Evict(uid, message); }),
      stats_(parts.scheduler, parts.plugins, parts.host.paths, parts.log, StatsSettings()),
      health_(parts.scheduler, parts.kernel, parts.log, HealthSettings()),
      expander_({parts.scheduler, parts.catalog, parts.plugins, desired_, actual_, claims_,
                 parts.operations, parts.host.events, parts.host.paths},
                [this](const UniqueVolumeName& volume) {
                  devices_.MarkDirty(volume);
                  devices_.TellUsers(volume);
                }),
      devices_({parts.scheduler, desired_, actual_, parts.operations, parts.plugins},
               MakeDeviceHooks()),
      reconciler_({parts.scheduler, desired_, actual_, consumers_, parts.operations, records_,
                   devices_, parts.host.paths, parts.log},
                  MakeHooks()),
      views_({parts.scheduler.clock(), parts.catalog, desired_, actual_, consumers_, reconciler_,
              devices_, parts.operations, stats_, health_, size_limits_, expander_,
              settings_.is_stuck, [this](const ObjectKey& object) { return DeletedSince(object); },
              vanished_devices_}) {
  devices_.SetVerifyAttachedPeriod(settings_.verify_attached_period);
  desired_.SetObjectNamed([this](const ObjectKey& object, bool is_named) {
    const bool is_read_by_name =
        object.kind == ObjectKind::kSecret || object.kind == ObjectKind::kConfigMap;
    if (is_read_by_name && settings_.object_named) settings_.object_named(object, is_named);
  });
  parts_.catalog.AddListener(
      [this, alive = std::weak_ptr<bool>(alive_)](const std::vector<ObjectChange>& changes) {
        if (!alive.expired()) CatalogChanged(changes);
      });
}

KubeletVolumeManager::Impl::~Impl() { parts_.catalog.IdentifyBy(nullptr); }

VolumeStatsSettings KubeletVolumeManager::Impl::StatsSettings() {
  VolumeStatsSettings stats = settings_.stats;
  stats.kernel = &parts_.kernel;
  stats.measured = [this, told = settings_.stats.measured](
                       const PodVolumeKey& key, const VolumeSpec& spec, const Metrics& metrics) {
    size_limits_.Measured(key, spec, metrics);
    if (told) told(key, spec, metrics);
  };
  return stats;
}

DomainHealthSettings KubeletVolumeManager::Impl::HealthSettings() {
  DomainHealthSettings health = settings_.health;
  health.changed = [this](const DomainState& domain, const std::set<PodVolumeKey>& volumes) {
    DomainChanged(domain, volumes);
  };
  return health;
}

// The agent writes a volume that pods may only read and that the agent owns.
VolumeStats::Writer KubeletVolumeManager::Impl::WriterOf(const PodVolumeKey& key) const {
  const ActualVolume* volume = actual_.FindVolume(key);
  const bool is_content = volume != nullptr && volume->mounted &&
                          volume->mounted->attributes.read_only &&
                          volume->mounted->attributes.managed;
  return is_content ? VolumeStats::Writer::kAgent : VolumeStats::Writer::kPod;
}

void KubeletVolumeManager::Impl::TrackHealth(const PodVolumeKey& key, const VolumeSpec& spec,
                                             const PodPtr& pod) {
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
  if (!plugin.ok() || IsBlockVolume(spec)) return;
  const std::string name = (*plugin)->FaultDomainName(spec);
  if (name.empty()) return;
  const Result<std::unique_ptr<Mounter>> mounter = (*plugin)->NewMounter(
      spec, PodVolumeTarget(parts_.host.paths, pod, (*plugin)->GetPluginName(), spec.name()));
  if (!mounter.ok()) return;
  health_.Track(key, (*plugin)->FaultDomain(spec), name, (*mounter)->GetSafePath());
}

void KubeletVolumeManager::Impl::DomainChanged(const DomainState& domain,
                                               const std::set<PodVolumeKey>& volumes) {
  for (const PodVolumeKey& key : volumes) {
    const std::string volume = "volume \"" + key.spec.str() + "\": ";
    if (domain.silent) {
      parts_.host.events.RecordPodEvent(key.pod, EventType::kWarning, kVolumeStuck,
                                        volume + domain.Text());
    } else {
      parts_.host.events.RecordPodEvent(key.pod, EventType::kNormal, kVolumeAnswers,
                                        volume + domain.name + " answers again");
      // What failed for lack of an answer need not wait any longer. It does not matter if the
      // volume is gone by now.
      (void)RetryVolume(key).ok();
    }
    Changed(key.pod);
  }
}

void KubeletVolumeManager::Impl::SetServerLookPeriod(Duration period) {
  health_.SetPeriod(period);
  for (const auto& [uid, pod] : actual_.pods()) Changed(uid);  // it may not be Stuck any more
}

Reconciler::Hooks KubeletVolumeManager::Impl::MakeHooks() {
  Reconciler::Hooks hooks;
  hooks.ready = [this] { return Ready(); };
  hooks.changed = [this](const PodUid& uid) { Changed(uid); };
  hooks.set_up = [this](const PodVolumeKey& key) {
    const WantedPod* pod = desired_.Find(key.pod);
    const WantedVolume* volume = desired_.Find(key);
    if (volume == nullptr) return;
    stats_.Track(key, volume->spec, pod->pod, WriterOf(key));
    TrackHealth(key, volume->spec, pod->pod);
    if (!volume->unique_name.empty()) expander_.MarkDirty(volume->unique_name);
  };
  hooks.gone = [this](const PodVolumeKey& key) {
    stats_.Forget(key);
    health_.Forget(key);
    size_limits_.Forget(key);
    MarkClaimsDirty(key.pod);
  };
  hooks.removed = [this](const PodUid& uid, const ActualPod& last) { PodRemoved(uid, last); };
  hooks.command_recorded = [this](const PodUid& uid, const Status& written) {
    AnswerDeletes(uid, written);
  };
  return hooks;
}

DeviceReconciler::Hooks KubeletVolumeManager::Impl::MakeDeviceHooks() {
  DeviceReconciler::Hooks hooks;
  hooks.ready = [this] { return Ready(); };
  hooks.changed = [this](const PodUid& uid) { reconciler_.MarkDirty(uid); };
  hooks.gone = [this](const UniqueVolumeName& device, const SpecName& volume) {
    expander_.Forget(device);
    resting_devices_[device] = volume.str();
    ForgetRestingDevices();
    claims_.MarkDirty();
  };
  hooks.set_sizes = [this](const WantedVolume& wanted, MountDeviceRequest& request) {
    const VolumeExpander::Sizes sizes = expander_.SizesForMount(wanted);
    request.size = sizes.now;
    request.grow_to = sizes.grow_to;
  };
  hooks.mounted = [this](const UniqueVolumeName& device) { expander_.MarkDirty(device); };
  hooks.event = [this](const PodUid& uid, const std::string& reason, const std::string& message) {
    parts_.host.events.RecordPodEvent(uid, EventType::kWarning, reason, message);
  };
  return hooks;
}

Claims::Hooks KubeletVolumeManager::Impl::MakeClaimHooks() {
  Claims::Hooks hooks;
  hooks.ready = [this] { return Ready(); };
  hooks.pods = [this] { return ClaimPods(); };
  hooks.has_volume = [this](const PodVolumeKey& key) {
    const ActualVolume* volume = actual_.FindVolume(key);
    return volume != nullptr && !volume->unique_name.empty();
  };
  hooks.changed = [this](const std::set<ObjectKey>& claims) {
    for (const ObjectKey& claim : claims) ObjectChanged(claim);
  };
  hooks.resize_recorded = [this](const PersistentVolume& volume) {
    const UniqueVolumeName device = DeviceNameOf(volume);
    if (!device.empty()) expander_.MarkDirty(device);
  };
  hooks.volume_gone = [this](const PersistentVolume& volume) { ForgetVolume(volume); };
  hooks.has_pod = [this](const PodUid& uid) { return actual_.FindPod(uid) != nullptr; };
  hooks.why_not_reclaimed = [this](const PersistentVolume& volume, ReclaimAction action) {
    return WhyNotReclaimed(volume, action);
  };
  hooks.decided = [this] { ForgetUnlisted(); };
  hooks.may_go = [this](const DeletedObjects::Id& object) { LetObjectGo(object); };
  hooks.storage_gone = [this](const DeletedObjects::Id& volume) { EndWithStorage(volume); };
  return hooks;
}

KnownObjects::Hooks KubeletVolumeManager::Impl::MakeKnownHooks() {
  KnownObjects::Hooks hooks;
  hooks.new_uid = [this](const ObjectKey& object) {
    std::string uid = adopted_.TakeUid(object);
    if (!uid.empty()) return uid;
    return settings_.new_uid ? settings_.new_uid(object) : NewUuid();
  };
  hooks.settled = [this] { claims_.MarkDirty(); };
  hooks.find_on_node = [this](const PodUid& uid) { return FindOnNode(uid); };
  return hooks;
}

PodOnNode KubeletVolumeManager::Impl::FindOnNode(const PodUid& uid) const {
  const ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr) return PodOnNode();
  return PodOnNode{pod->object, pod->leaving && pod->leaving->left_sources, /*is_here=*/true};
}

std::string KubeletVolumeManager::Impl::WhyNotReclaimed(const PersistentVolume& volume,
                                                        ReclaimAction action) const {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(volume, false);
  const auto why_not = [](const auto& found) {
    return found.ok() ? std::string() : found.error().message();
  };
  if (action == ReclaimAction::kNone) return "";
  if (action == ReclaimAction::kRecycle) {
    const auto plugin = parts_.plugins.FindRecyclablePluginBySpec(spec);
    return plugin.ok() ? why_not((*plugin)->CanRecycle(spec)) : why_not(plugin);
  }
  const auto plugin = parts_.plugins.FindDeletablePluginBySpec(spec);
  return plugin.ok() ? why_not((*plugin)->NewDeleter(spec)) : why_not(plugin);
}

std::optional<StorageStatus> KubeletVolumeManager::Impl::StorageStatusOf(
    const ObjectKey& object) const {
  StorageStatus status;
  const Protection* protection = nullptr;
  if (object.kind == ObjectKind::kPersistentVolumeClaim) {
    const ClaimDecision* claim = claims_.FindClaim({object.name_space, object.name});
    if (claim == nullptr) return std::nullopt;
    status.phase = EnumText(claim->phase);
    status.reason = claim->reason;
    status.other = claim->volume_name;
    protection = &claim->protection;
  } else if (object.kind == ObjectKind::kPersistentVolume) {
    const VolumeDecision* volume = claims_.FindVolume(object.name);
    if (volume == nullptr) return std::nullopt;
    status.phase = EnumText(volume->phase);
    status.reason = volume->reason;
    if (volume->claim) status.other = ToString(*volume->claim);
    protection = &volume->protection;
    status.claim_goes = claims_.ClaimGoes(object.name);
    status.is_missing = volume->missing && !protection->deletion_requested;
    if (const auto known = parts_.catalog.FindPersistentVolume(object.name)) {
      status.unreclaimable = WhyNotReclaimed(*known, ReclaimActionOf(known->spec.reclaim_policy));
    }
  } else {
    return std::nullopt;
  }
  status.held_by = protection->held_by;
  if (protection->deletion_requested) status.phase = "Terminating";
  return status;
}

void KubeletVolumeManager::Impl::NoteClaims(const PodUid& uid, const Pod& pod) {
  if (!ClaimsOfPod(pod).empty()) pods_with_claims_.insert(uid);
}

// Decisions about claims read nothing about a pod without claims.
void KubeletVolumeManager::Impl::MarkClaimsDirty(const PodUid& uid) {
  if (pods_with_claims_.contains(uid)) claims_.MarkDirty();
}

std::vector<ClaimPod> KubeletVolumeManager::Impl::ClaimPods() const {
  std::vector<ClaimPod> pods;
  for (const PodUid& uid : pods_with_claims_) {
    const ActualPod* const found = actual_.FindPod(uid);
    if (found == nullptr || found->object == nullptr) continue;
    const ActualPod& pod = *found;
    ClaimPod of{pod.object, desired_.Find(uid) != nullptr, {}};
    for (const auto& [spec, volume] : pod.volumes) {
      if (!volume.unique_name.empty() && (volume.in_flight || MayBePresent(volume))) {
        of.present.insert(spec);
      }
    }
    pods.push_back(std::move(of));
  }
  return pods;
}

UniqueVolumeName KubeletVolumeManager::Impl::DeviceNameOf(const PersistentVolume& volume) const {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(volume, false);
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
  if (!plugin.ok() || (*plugin)->AsDeviceMountable() == nullptr) return UniqueVolumeName();
  const Result<std::string> name = (*plugin)->GetVolumeName(spec);
  return name.ok() ? GetUniqueVolumeName((*plugin)->GetPluginName(), *name) : UniqueVolumeName();
}

void KubeletVolumeManager::Impl::ForgetVolume(const PersistentVolume& volume) {
  if (const UniqueVolumeName device = DeviceNameOf(volume); !device.empty()) ForgetDevice(device);
  parts_.operations.Start(ForgetStorage(volume.metadata.name),
                          [](const OperationOutcome<Unit>&) {});
}

void KubeletVolumeManager::Impl::ForgetDevice(const UniqueVolumeName& device) {
  if (actual_.FindDevice(device) != nullptr) return;  // the end of its unmount calls this again
  resting_devices_.erase(device);
  parts_.operations.Start(volumed::ForgetDevice(device), [](const OperationOutcome<Unit>&) {});
}

void KubeletVolumeManager::Impl::Changed(const PodUid& uid) const {
  const auto observers = observers_;  // an observer may remove itself
  for (const auto& [id, observer] : observers) observer(uid);
}

// ---- views --------------------------------------------------------------------------------------

std::vector<PodView> KubeletVolumeManager::Impl::PodsNamed(const std::string& name_space,
                                                           const std::string& name) const {
  std::vector<PodView> named;
  for (const PodUid& uid : actual_.PodsNamed(name_space, name)) named.push_back(views_.Build(uid));
  // Adds a pod that was deleted by command and that a source still has; before the records are
  // loaded, any pod of the name.
  const ObjectPtr object = parts_.catalog.FindObject({ObjectKind::kPod, name_space, name});
  if (object == nullptr) return named;
  const PodUid uid = std::get<Pod>(*object).uid();
  if (actual_.FindPod(uid) != nullptr) return named;
  if (auto view = FindPod(uid)) named.push_back(std::move(*view));
  return named;
}

std::vector<PodView> KubeletVolumeManager::Impl::Pods() const {
  std::vector<PodView> all;
  for (const auto& [uid, pod] : actual_.pods()) all.push_back(views_.Build(uid));
  if (loaded_) {
    for (const auto& [uid, tombstone] : tombstones_) {
      if (const PodPtr pod = parts_.catalog.FindPod(uid)) all.push_back(TombstoneView(*pod));
    }
  } else {
    for (const PodPtr& pod : parts_.catalog.Pods()) {
      if (auto view = FindPod(pod->uid())) all.push_back(std::move(*view));
    }
  }
  return all;
}

std::vector<PodName> KubeletVolumeManager::Impl::PodNames(const PodName& after,
                                                          size_t limit) const {
  std::vector<PodName> found;
  const auto& names = actual_.names();
  for (auto at = names.lower_bound({after.ns, after.name});
       at != names.end() && found.size() < limit; ++at) {
    for (const PodUid& uid : at->second) {
      PodName pod{at->first.first, at->first.second, uid};
      if (pod > after) found.push_back(std::move(pod));
    }
  }
  const auto add = [&](const PodPtr& pod) {
    if (pod == nullptr || actual_.FindPod(pod->uid()) != nullptr || !HasPod(pod->uid())) return;
    PodName name{pod->metadata.name_space, pod->metadata.name, pod->uid()};
    if (name > after) found.push_back(std::move(name));
  };
  if (loaded_) {
    for (const auto& [uid, tombstone] : tombstones_) add(parts_.catalog.FindPod(uid));
  } else {
    for (const PodPtr& pod : parts_.catalog.Pods()) add(pod);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > limit) found.resize(limit);
  return found;
}

bool KubeletVolumeManager::Impl::HasPod(const PodUid& uid) const {
  if (actual_.FindPod(uid) != nullptr) return true;
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (pod == nullptr) return false;
  return tombstones_.contains(uid) || !(loaded_ || EndingOf(*pod));
}

std::optional<PodView> KubeletVolumeManager::Impl::FindPod(const PodUid& uid) const {
  if (actual_.FindPod(uid) != nullptr) return views_.Build(uid);
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (pod == nullptr) return std::nullopt;
  if (tombstones_.contains(uid)) return TombstoneView(*pod);
  if (loaded_ || EndingOf(*pod)) return std::nullopt;
  ProblemView problem;
  problem.step = "LoadRecords";
  problem.message = NotReadyReason();
  problem.who_must_act = load_error_ ? "an administrator" : "nobody: retried";
  return views_.BuildRefused(*pod, "Pending", std::move(problem));
}

std::vector<KubeletVolumeManager::VolumeProgress> KubeletVolumeManager::Impl::VolumesOf(
    const PodUid& uid) const {
  std::vector<VolumeProgress> volumes;
  const ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr) return volumes;
  const WantedPod* wanted = desired_.Find(uid);
  for (const auto& [spec, volume] : pod->volumes) {
    volumes.push_back({spec, wanted != nullptr && wanted->volumes.contains(spec),
                       volume.state == VolumeState::kSetUp});
  }
  if (wanted == nullptr) return volumes;
  for (const auto& [spec, volume] : wanted->volumes) {
    if (!pod->volumes.contains(spec)) volumes.push_back({spec, true, false});
  }
  return volumes;
}

bool KubeletVolumeManager::Impl::CountVolumes(VolumeCounting& counting) const {
  constexpr size_t kPodsInATask = 1000;
  size_t left = kPodsInATask;
  auto& counts = counting.counts;
  if (!counting.desired_done) {
    auto at = desired_.pods().upper_bound(counting.last);
    for (; left > 0 && at != desired_.pods().end(); ++at, --left) {
      for (const auto& [spec, volume] : at->second.volumes) {
        if (volume.mountable()) ++counts[volume.plugin_name].desired;
      }
      counting.last = at->first;
    }
    if (at != desired_.pods().end()) return false;
    counting.desired_done = true;
    counting.last = PodUid();
  }
  auto at = actual_.pods().upper_bound(counting.last);
  for (; left > 0 && at != actual_.pods().end(); ++at, --left) {
    for (const auto& [spec, volume] : at->second.volumes) {
      if (MayBePresent(volume)) ++counts[volume.plugin_name].actual;
    }
    counting.last = at->first;
  }
  return at == actual_.pods().end();
}

// ---- the face -----------------------------------------------------------------------------------

KubeletVolumeManager::KubeletVolumeManager(VolumeManagerParts parts, const BootId& boot_id,
                                           VolumeManagerSettings settings)
    : impl_(std::make_unique<Impl>(parts, boot_id, std::move(settings))) {}
KubeletVolumeManager::~KubeletVolumeManager() = default;

void KubeletVolumeManager::Start() { impl_->Start(); }
void KubeletVolumeManager::SetStatsTimes(Duration period, Duration deadline) {
  impl_->SetStatsTimes(period, deadline);
}
void KubeletVolumeManager::DeviceAppeared(const std::vector<std::string>& paths) {
  impl_->DeviceAppeared(paths);
}
void KubeletVolumeManager::DeviceVanished(const std::vector<std::string>& paths) {
  impl_->DeviceVanished(paths);
}

void KubeletVolumeManager::MountsGone(const std::vector<std::string>& mount_points) {
  impl_->MountsGone(mount_points);
}

void KubeletVolumeManager::MountsChangedElsewhere(const std::vector<std::string>& mount_points) {
  impl_->MountsChangedElsewhere(mount_points);
}

void KubeletVolumeManager::WallClockWasSet() { impl_->WallClockWasSet(); }

void KubeletVolumeManager::AttachLimitsChanged() { impl_->AttachLimitsChanged(); }

void KubeletVolumeManager::SetServerLookPeriod(Duration period) {
  impl_->SetServerLookPeriod(period);
}
void KubeletVolumeManager::AcceptAdoptedPods() { impl_->AcceptAdoptedPods(); }
std::vector<HeldPodView> KubeletVolumeManager::HeldAdoptedPods() const {
  return impl_->HeldAdoptedPods();
}
void KubeletVolumeManager::SetReplaceSettle(Duration settle) { impl_->SetReplaceSettle(settle); }
std::optional<int64_t> KubeletVolumeManager::ReplacedAtUnixMillis(const ObjectKey& pod) const {
  return impl_->ReplacedAtUnixMillis(pod);
}
void KubeletVolumeManager::SetVerifyAttachedPeriod(Duration period) {
  impl_->SetVerifyAttachedPeriod(period);
}
void KubeletVolumeManager::ObjectsChanged() {
  impl_->CheckReady();
  impl_->DeleteWhatHasMovedNowhere();
}
void KubeletVolumeManager::NoteDirectory(const std::string& source, const KnownDirectory& directory,
                                         const UnprovenAbsences& unproven) {
  impl_->NoteDirectory(source, directory, unproven);
}
void KubeletVolumeManager::SourceForgotten(const std::string& source) {
  impl_->SourceForgotten(source);
}
void KubeletVolumeManager::PluginChanged(const std::string& plugin_name) {
  impl_->PluginChanged(plugin_name);
}
void KubeletVolumeManager::RetryStorage(const std::string& name) { impl_->RetryStorage(name); }
void KubeletVolumeManager::DeletePod(const PodUid& pod, bool force,
                                     std::function<void(Status)> done) {
  impl_->DeletePod(pod, force, std::move(done));
}
void KubeletVolumeManager::Hold(HoldRequest request, std::function<void(Status)> done) {
  impl_->Hold(std::move(request), std::move(done));
}
void KubeletVolumeManager::ReleaseHold(HoldRequest request, std::function<void(Status)> done) {
  impl_->ReleaseHold(std::move(request), std::move(done));
}
std::map<std::string, bool> KubeletVolumeManager::DomainsAnswering() const {
  return impl_->DomainsAnswering();
}
Status KubeletVolumeManager::Retry(const PodUid& pod) { return impl_->Retry(pod); }
Status KubeletVolumeManager::RetryVolume(const PodVolumeKey& key) {
  return impl_->RetryVolume(key);
}
bool KubeletVolumeManager::IsBeingDeleted(const ObjectKey& object) const {
  return impl_->DeletedSince(object).has_value();
}
bool KubeletVolumeManager::HasEnded(const ObjectKey& object, const std::string& uid) const {
  return impl_->HasEnded(object, uid);
}
bool KubeletVolumeManager::IsBound(const ObjectKey& object) const {
  impl_->DecideClaimsNow();
  return impl_->IsBound(object);
}
PodUid KubeletVolumeManager::PodOfClaim(const ObjectKey& claim) const {
  return impl_->PodOfClaim(claim);
}
std::string KubeletVolumeManager::UidOnRecord(const ObjectKey& object) const {
  return impl_->UidOnRecord(object);
}
std::optional<StorageStatus> KubeletVolumeManager::StorageStatusOf(const ObjectKey& object) const {
  impl_->DecideClaimsNow();
  return impl_->StorageStatusOf(object);
}
void KubeletVolumeManager::DeleteObject(const ObjectKey& object, std::function<void(Status)> done) {
  impl_->DecideClaimsNow();
  impl_->DeleteObject(object, std::move(done));
}
void KubeletVolumeManager::NumberCommand(std::function<void(Result<uint64_t>)> done) {
  impl_->NumberCommand(done);
}
PersistentVolumeClaimStatus KubeletVolumeManager::ClaimStatus(
    const PersistentVolumeClaim& claim) const {
  return impl_->ClaimStatus(claim);
}
std::vector<PodView> KubeletVolumeManager::Pods() const { return impl_->Pods(); }
std::vector<PodName> KubeletVolumeManager::PodNames(const PodName& after, size_t limit) const {
  return impl_->PodNames(after, limit);
}
std::vector<PodView> KubeletVolumeManager::PodsNamed(const std::string& name_space,
                                                     const std::string& name) const {
  return impl_->PodsNamed(name_space, name);
}
PodOnNode KubeletVolumeManager::FindOnNode(const PodUid& pod) const {
  return impl_->FindOnNode(pod);
}
bool KubeletVolumeManager::HasPod(const PodUid& pod) const { return impl_->HasPod(pod); }

std::vector<KubeletVolumeManager::VolumeProgress> KubeletVolumeManager::VolumesOf(
    const PodUid& pod) const {
  return impl_->VolumesOf(pod);
}

std::optional<PodView> KubeletVolumeManager::FindPod(const PodUid& pod) const {
  return impl_->FindPod(pod);
}
std::vector<PersistentVolumeView> KubeletVolumeManager::PersistentVolumes() const {
  impl_->DecideClaimsNow();
  return impl_->storage().PersistentVolumes();
}
std::vector<PersistentVolumeClaimView> KubeletVolumeManager::PersistentVolumeClaims() const {
  impl_->DecideClaimsNow();
  return impl_->storage().PersistentVolumeClaims();
}
bool KubeletVolumeManager::Ready() const { return impl_->Ready(); }
std::string KubeletVolumeManager::NotReadyReason() const { return impl_->NotReadyReason(); }
uint64_t KubeletVolumeManager::AddObserver(std::function<void(const PodUid&)> observer) {
  impl_->observers_[impl_->next_observer_] = std::move(observer);
  return impl_->next_observer_++;
}
void KubeletVolumeManager::RemoveObserver(uint64_t id) { impl_->observers_.erase(id); }
std::map<std::pair<std::string, std::string>, int64_t> VolumeCounting::Figures() const {
  std::map<std::pair<std::string, std::string>, int64_t> figures;
  for (const auto& [plugin, count] : counts) {
    if (count.desired > 0) figures[{plugin, "desired_state_of_world"}] = count.desired;
    if (count.actual > 0) figures[{plugin, "actual_state_of_world"}] = count.actual;
  }
  return figures;
}

std::map<std::pair<std::string, std::string>, int64_t> KubeletVolumeManager::VolumeCounts() const {
  VolumeCounting counting;
  while (!CountVolumes(counting)) {
  }
  return counting.Figures();
}
bool KubeletVolumeManager::CountVolumes(VolumeCounting& counting) const {
  return impl_->CountVolumes(counting);
}
uint64_t KubeletVolumeManager::claim_decisions() const { return impl_->claim_decisions(); }
size_t KubeletVolumeManager::quarantined_pods() const { return impl_->quarantined_pods_; }
const std::vector<std::string>& KubeletVolumeManager::unrecorded_mounts() const {
  return impl_->unrecorded_mounts_;
}

}  // namespace volumed
