#include "volumemanager/kubelet_volume_manager.h"

#include <algorithm>
#include <optional>

#include "base/backoff.h"
#include "base/strings.h"
#include "volume/unique_name.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims.h"
#include "volumemanager/consumers.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/device_reconciler.h"
#include "volumemanager/failed_mount_text.h"
#include "volumemanager/pod_views.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/reconstructor.h"
#include "volumemanager/record_writer.h"

namespace volumed {
namespace {

constexpr const char* kCommandReason = "deleted by command";
// Source: kubernetes pkg/kubelet/eviction/eviction_manager.go@v1.36.2 (immediate eviction).
constexpr int64_t kEvictionGraceSeconds = 1;

Error NoSuchPod(const PodUid& pod) {
  return Error::NotApplied(Code::kNotFound, "no pod with uid " + pod.str() + " is known");
}

Error NotLoaded() {
  return Error::NotApplied(Code::kUnavailable, "the records of the last run are not loaded yet");
}

// Why a pod that a source has is not to have volumes any more, and how long it keeps them.
struct Ending {
  std::string reason;
  int64_t grace_seconds = 0;
};

std::optional<Ending> EndingOf(const Pod& pod) {
  if (pod.status.phase == PodPhase::kSucceeded) return Ending{"it has ended (Succeeded)", 0};
  if (pod.status.phase == PodPhase::kFailed) return Ending{"it has ended (Failed)", 0};
  if (!pod.deletion_requested()) return std::nullopt;
  // From the moment we hear of it, as kubelet does: the timestamp is of another machine's clock.
  return Ending{"its deletion was requested", pod.metadata.deletion_grace_period_seconds.value_or(
                                                  pod.spec.termination_grace_period_seconds)};
}

}  // namespace

class KubeletVolumeManager::Impl {
 public:
  using Done = std::function<void(Status)>;

  Impl(VolumeManagerParts parts, BootId boot_id, VolumeManagerSettings settings);

  void Start();
  void CheckReady();
  void DeletePod(const PodUid& uid, bool force, Done done);
  void Hold(HoldRequest request, std::function<void(Status)> done);
  void ReleaseHold(HoldRequest request, std::function<void(Status)> done);
  Status Retry(const PodUid& uid);
  Status RetryVolume(const PodVolumeKey& key);
  std::vector<PodView> Pods() const;
  std::optional<PodView> FindPod(const PodUid& uid) const;
  void SetStatsTimes(Duration period, Duration deadline) { stats_.SetTimes(period, deadline); }
  bool Ready() const { return loaded_ && NotReadyReason().empty(); }
  std::string NotReadyReason() const;

  std::map<std::pair<std::string, std::string>, int64_t> VolumeCounts() const;

  uint64_t next_observer_ = 1;
  std::map<uint64_t, std::function<void(const PodUid&)>> observers_;
  size_t quarantined_pods_ = 0;
  size_t unknown_mounts_ = 0;

 private:
  VolumeStatsSettings StatsSettings();
  Reconciler::Hooks MakeHooks();
  DeviceReconciler::Hooks MakeDeviceHooks();
  Claims::Hooks MakeClaimHooks();
  std::vector<ClaimPod> ClaimPods() const;
  // The answers for these claims may be others: the pods that name them are built anew.
  void ObjectChanged(const ObjectKey& key);
  // Nothing has to be known of the volume any more.
  void ForgetVolume(const PersistentVolume& volume);
  void ForgetDevice(const UniqueVolumeName& device);
  // Rows of devices whose volume is no more.
  void ForgetRestingDevices();
  void Load();
  void Loaded(const Result<FoundAtStart>& found);
  void CatalogChanged(const std::vector<ObjectChange>& changes);
  void PodSourceChanged(const ObjectChange& change);
  void StorageChanged(const ObjectChange& change);
  // Decides whether the pod is wanted, from what the sources and commands say now.
  void EvaluatePod(const PodUid& uid);
  PodIdentity IdentityOf(const Pod& pod) const;  // of a pod that a source has
  void Want(const PodPtr& pod);
  void Unwant(const PodUid& uid);
  void Evict(const PodUid& uid, const std::string& message);
  // Tells those who count, before the orphans are marked as leaving.
  void ReportOrphans() const;
  void MarkLeaving(ActualPod& pod, const std::string& reason, std::optional<int64_t> grace_seconds);
  void PodRemoved(const PodUid& uid, const ActualPod& last);
  void Changed(const PodUid& uid) const;

  // A pod that was deleted by command and is still in a source, or may be: its record is kept, so
  // that neither this agent nor the next one makes its volumes again.
  void KeepTombstone(const PodUid& uid, const ActualPod& last);
  void WriteTombstone(const PodUid& uid, const PodIdentity& identity);
  void DropTombstone(const PodUid& uid);
  PodView TombstoneView(const Pod& pod) const;

  // Why the command cannot be taken, if so.
  std::optional<Error> RefuseDelete(const PodUid& uid) const;
  // Later, on the control thread.
  void PostAnswer(const Done& done, const Status& status);
  // Answers those who wait until the command to delete this pod is durable.
  void AnswerDeletes(const PodUid& uid, const Status& written);

  const VolumeManagerParts parts_;
  const BootId boot_id_;
  const VolumeManagerSettings settings_;

  bool loaded_ = false;
  bool was_ready_ = false;
  std::optional<Error> load_error_;
  Backoff load_backoff_;
  std::map<PodUid, int64_t> tombstones_;         // since, unix milliseconds
  std::map<PodUid, std::vector<Done>> deletes_;  // whose command is not durable yet

  RecordWriter records_;
  Consumers consumers_;
  ActualStateOfWorld actual_;
  Claims claims_;
  DesiredStateOfWorld desired_;
  SizeLimits size_limits_;
  VolumeStats stats_;
  DeviceReconciler devices_;
  Reconciler reconciler_;
  // Devices at rest whose rows are left for what they tell of a filesystem -> the volume's name.
  std::map<UniqueVolumeName, std::string> resting_devices_;
  PodViews views_;
  // Last, so that it goes first: what comes later finds nobody.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

KubeletVolumeManager::Impl::Impl(VolumeManagerParts parts, BootId boot_id,
                                 VolumeManagerSettings settings)
    : parts_(parts),
      boot_id_(boot_id),
      settings_(std::move(settings)),
      load_backoff_(parts.scheduler.clock()),
      records_(parts.scheduler, parts.store),
      consumers_({parts.scheduler, records_, parts.consumer_watch, parts.log}, boot_id,
                 [this](const PodUid& uid) { reconciler_.MarkDirty(uid); }),
      actual_(parts.scheduler.clock()),
      claims_(
          {parts.scheduler, parts.catalog, parts.host.node, records_, parts.operations, parts.log},
          MakeClaimHooks()),
      desired_(parts.catalog, parts.plugins, parts.host.node, claims_),
      size_limits_(parts.host.events, parts.scheduler.clock(), settings_.size_limit_action,
                   [this](const PodUid& uid, const std::string& message) { Evict(uid, message); }),
      stats_(parts.scheduler, parts.plugins, parts.log, StatsSettings()),
      devices_({parts.scheduler, desired_, actual_, parts.operations}, MakeDeviceHooks()),
      reconciler_({parts.scheduler, desired_, actual_, consumers_, parts.operations, records_,
                   devices_, parts.log},
                  MakeHooks()),
      views_({parts.scheduler.clock(), parts.catalog, desired_, actual_, consumers_, reconciler_,
              parts.operations, stats_, size_limits_, settings_.is_stuck}) {
  parts_.catalog.AddListener(
      [this, alive = std::weak_ptr<bool>(alive_)](const std::vector<ObjectChange>& changes) {
        if (!alive.expired()) CatalogChanged(changes);
      });
}

VolumeStatsSettings KubeletVolumeManager::Impl::StatsSettings() {
  VolumeStatsSettings stats = settings_.stats;
  stats.measured = [this](const PodVolumeKey& key, const VolumeSpec& spec, const Metrics& metrics) {
    size_limits_.Measured(key, spec, metrics);
    Changed(key.pod);
  };
  return stats;
}

Reconciler::Hooks KubeletVolumeManager::Impl::MakeHooks() {
  Reconciler::Hooks hooks;
  hooks.ready = [this] { return Ready(); };
  hooks.changed = [this](const PodUid& uid) { Changed(uid); };
  hooks.set_up = [this](const PodVolumeKey& key) {
    const WantedPod* pod = desired_.Find(key.pod);
    const WantedVolume* volume = desired_.Find(key);
    if (volume != nullptr) stats_.Track(key, volume->spec, pod->pod);
  };
  hooks.gone = [this](const PodVolumeKey& key) {
    stats_.Forget(key);
    size_limits_.Forget(key);
    claims_.MarkDirty();
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
    resting_devices_[device] = volume.str();
    ForgetRestingDevices();
    claims_.MarkDirty();
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
  hooks.volume_gone = [this](const PersistentVolume& volume) { ForgetVolume(volume); };
  return hooks;
}

std::vector<ClaimPod> KubeletVolumeManager::Impl::ClaimPods() const {
  std::vector<ClaimPod> pods;
  for (const auto& [uid, pod] : actual_.pods()) {
    if (pod.object == nullptr) continue;
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

void KubeletVolumeManager::Impl::ForgetVolume(const PersistentVolume& volume) {
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(volume, false);
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
  if (!plugin.ok() || (*plugin)->AsDeviceMountable() == nullptr) return;
  const Result<std::string> name = (*plugin)->GetVolumeName(spec);
  if (name.ok()) ForgetDevice(GetUniqueVolumeName((*plugin)->GetPluginName(), *name));
}

void KubeletVolumeManager::Impl::ForgetDevice(const UniqueVolumeName& device) {
  if (actual_.FindDevice(device) != nullptr) return;  // its unmount is followed by this
  resting_devices_.erase(device);
  parts_.operations.ForgetDevice(device, [](const OperationOutcome<Unit>&) {});
}

void KubeletVolumeManager::Impl::Changed(const PodUid& uid) const {
  const auto observers = observers_;  // one may remove itself
  for (const auto& [id, observer] : observers) observer(uid);
}

// ---- start --------------------------------------------------------------------------------------

void KubeletVolumeManager::Impl::Start() { Load(); }

void KubeletVolumeManager::Impl::Load() {
  FindOptions options;
  options.all_directories = settings_.adopt_root;
  parts_.scheduler.RunBlocking([this, options, alive = std::weak_ptr<bool>(alive_),
                                parts = parts_] {
    Result<FoundAtStart> found = LoadFoundAtStart(
        parts.store, parts.kernel, parts.scheduler.clock(), parts.host.paths, parts.log, options);
    parts.scheduler.Post([this, alive, found] {
      if (!alive.expired()) Loaded(found);
    });
  });
}

void KubeletVolumeManager::Impl::Loaded(const Result<FoundAtStart>& found) {
  if (!found.ok()) {
    load_error_ = found.error();
    const Duration delay = load_backoff_.RecordFailure("records", "load", "");
    parts_.log.Error("what the last run left could not be read; trying again",
                     {{"error", found.error()}});
    parts_.scheduler.PostAfter(delay, [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) Load();
    });
    return;
  }
  load_error_.reset();
  const ReconstructResult result =
      Reconstruct(*found, boot_id_, settings_.adopt_root, parts_.host.paths, actual_, consumers_);
  quarantined_pods_ = result.quarantined_pods;
  unknown_mounts_ = result.unknown_mounts.size();
  for (const KubeletPaths::PodVolume& mount : result.unknown_mounts) {
    parts_.log.LogLimited("unknown mount", LogLevel::kWarning,
                          "a mount below the root has no record; it is left alone",
                          {{"pod", mount.pod}, {"volume", mount.spec}});
  }
  for (const KubeletPaths::DeviceMount& mount : result.unknown_device_mounts) {
    parts_.log.LogLimited("unknown mount", LogLevel::kWarning,
                          "a device mounted below the root has no record; it is left alone",
                          {{"plugin", mount.plugin}, {"volume", mount.volume}});
  }
  unknown_mounts_ += result.unknown_device_mounts.size();
  for (const DeviceRecord& device : result.devices) {
    if (device.format) resting_devices_[device.key] = device.spec.str();
  }
  if (settings_.restore_operations) settings_.restore_operations(result.volumes, result.devices);
  if (settings_.taken_over) settings_.taken_over(result.take_over);
  claims_.Restore(found->bindings, found->quarantined);
  loaded_ = true;
  parts_.log.Info("records loaded", {{"pods", found->pods.size()},
                                     {"volumes", found->volumes.size()},
                                     {"quarantined", found->quarantined.size()}});
  for (const auto& [uid, pod] : actual_.pods()) reconciler_.MarkDirty(uid);
  claims_.Start();
  for (const PodPtr& pod : parts_.catalog.Pods()) EvaluatePod(pod->uid());
  CheckReady();
  devices_.Start();
  reconciler_.Start();
}

std::string KubeletVolumeManager::Impl::NotReadyReason() const {
  if (!loaded_) {
    return load_error_ ? "the records cannot be loaded: " + load_error_->ToString()
                       : "the records are being loaded";
  }
  const std::vector<std::string> missing = parts_.catalog.IncompleteSources();
  if (!missing.empty()) return "no complete list yet from: " + Join(missing, ", ");
  // Without a source every pod would look deleted.
  if (parts_.catalog.Sources().empty()) return "no source of pods is configured";
  return "";
}

void KubeletVolumeManager::Impl::CheckReady() {
  const bool ready = Ready();
  if (std::exchange(was_ready_, ready) == ready || !ready) return;
  // From now on absence means something: all that is not in a source is looked at, once.
  ReportOrphans();
  std::vector<PodUid> uids;
  for (const auto& [uid, pod] : actual_.pods()) uids.push_back(uid);
  for (const auto& [uid, since] : tombstones_) uids.push_back(uid);
  for (const PodUid& uid : uids) EvaluatePod(uid);
  claims_.MarkDirty();
  devices_.MarkAllDirty();
  ForgetRestingDevices();
}

void KubeletVolumeManager::Impl::ForgetRestingDevices() {
  if (!Ready()) return;
  const std::map<UniqueVolumeName, std::string> resting = resting_devices_;
  for (const auto& [device, volume] : resting) {
    const bool known = parts_.catalog.FindPersistentVolume(volume) != nullptr ||
                       claims_.FindVolume(volume) != nullptr;
    if (!known) ForgetDevice(device);
  }
}

void KubeletVolumeManager::Impl::ReportOrphans() const {
  if (!settings_.orphans_found) return;
  std::set<PodVolumeKey> orphans;
  for (const auto& [uid, pod] : actual_.pods()) {
    const bool commanded = pod.leaving && pod.leaving->commanded;
    if (commanded || parts_.catalog.FindPod(uid) != nullptr) continue;
    for (const auto& [spec, volume] : pod.volumes) {
      if (MayBePresent(volume)) orphans.insert({uid, spec});
    }
  }
  settings_.orphans_found(orphans);
}

// ---- events -------------------------------------------------------------------------------------

void KubeletVolumeManager::Impl::CatalogChanged(const std::vector<ObjectChange>& changes) {
  if (loaded_) {
    for (const ObjectChange& change : changes) {
      if (change.key.kind == ObjectKind::kPod) {
        PodSourceChanged(change);
        continue;
      }
      ObjectChanged(change.key);
      StorageChanged(change);
    }
  }
  CheckReady();
}

void KubeletVolumeManager::Impl::ObjectChanged(const ObjectKey& key) {
  for (const PodUid& uid : desired_.ObjectChanged(key)) {
    for (const auto& [spec, volume] : desired_.Find(uid)->volumes) {
      if (!volume.objects.contains(key)) continue;
      reconciler_.ResetBackoff(PodVolumeKey{uid, spec});
      if (volume.has_device) parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
    }
    reconciler_.MarkDirty(uid);
  }
}

void KubeletVolumeManager::Impl::StorageChanged(const ObjectChange& change) {
  switch (change.key.kind) {
    case ObjectKind::kPersistentVolume:
      claims_.ResetBackoff(change.key.name);
      if (change.what == ObjectChange::What::kRemoved &&
          claims_.FindVolume(change.key.name) == nullptr) {
        ForgetVolume(std::get<PersistentVolume>(*change.before));
      }
      return;
    case ObjectKind::kPersistentVolumeClaim:
    case ObjectKind::kStorageClass:
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

void KubeletVolumeManager::Impl::PodSourceChanged(const ObjectChange& change) {
  if (change.what == ObjectChange::What::kRemoved) {
    ActualPod* pod = actual_.FindPod(change.uid);
    if (pod != nullptr && pod->leaving) pod->leaving->left_sources = true;
  }
  reconciler_.ResetBackoff(change.uid);
  EvaluatePod(change.uid);
}

void KubeletVolumeManager::Impl::EvaluatePod(const PodUid& uid) {
  const PodPtr pod = parts_.catalog.FindPod(uid);
  const std::optional<Ending> ending = pod == nullptr ? std::nullopt : EndingOf(*pod);
  if (tombstones_.contains(uid)) {
    if (pod == nullptr && Ready()) DropTombstone(uid);
    Changed(uid);
    return;
  }
  ActualPod* actual = actual_.FindPod(uid);
  const bool commanded = actual != nullptr && actual->leaving && actual->leaving->commanded &&
                         !(pod != nullptr && actual->leaving->left_sources);
  if (pod != nullptr && !ending && !commanded) {
    Want(pod);
  } else {
    Unwant(uid);
    if (actual != nullptr && !commanded) {
      if (ending) {
        MarkLeaving(*actual, ending->reason, ending->grace_seconds);
      } else if (Ready()) {
        MarkLeaving(*actual, "removed from its sources", std::nullopt);
      }
    }
  }
  reconciler_.MarkDirty(uid);
}

// The devices of its volumes, and their claims, may be without a pod now.
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
  return {key.name_space, key.name, origin ? origin->source : ""};
}

void KubeletVolumeManager::Impl::Want(const PodPtr& pod) {
  const PodIdentity identity = IdentityOf(*pod);
  ActualPod& actual = actual_.AddPod(pod->uid(), identity);
  actual.identity = identity;
  actual.object = pod;
  claims_.MarkDirty();
  if (actual.leaving) {
    actual.leaving.reset();
    actual.teardown_begun = false;
    actual.remove_failure.reset();
    actual.record_outdated = actual.record_durable || actual.record_writing;
    AnswerDeletes(pod->uid(), OkStatus());  // it had left every source; this is a new wish
  }
  desired_.SetPod(pod);
  if (const auto text = FailedMountText(*desired_.Find(pod->uid()), actual)) {
    parts_.host.events.RecordPodEvent(pod->uid(), EventType::kWarning, kFailedMount, *text);
  }
}

void KubeletVolumeManager::Impl::MarkLeaving(ActualPod& pod, const std::string& reason,
                                             std::optional<int64_t> grace_seconds) {
  const bool is_new = !pod.leaving;
  if (is_new) {
    pod.leaving = Leaving{};
    pod.leaving->since_unix_ms = parts_.scheduler.clock().WallUnixMillis();
  }
  pod.leaving->reason = reason;
  if (grace_seconds) pod.leaving->grace_seconds = *grace_seconds;
  // A restart must not begin the grace period anew.
  if (is_new && pod.leaving->grace_seconds > 0) {
    pod.record_outdated = pod.record_durable || pod.record_writing;
  }
}

// As if it had been deleted by command: its source still has it, and must not bring it back.
void KubeletVolumeManager::Impl::Evict(const PodUid& uid, const std::string& message) {
  ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr || pod->leaving) return;
  MarkLeaving(*pod, "evicted: " + message, kEvictionGraceSeconds);
  pod->leaving->commanded = true;
  pod->record_outdated = true;
  Unwant(uid);
  reconciler_.MarkDirty(uid);
}

std::optional<Error> KubeletVolumeManager::Impl::RefuseDelete(const PodUid& uid) const {
  if (!loaded_) return NotLoaded();
  const ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr) {
    if (parts_.catalog.FindPod(uid) == nullptr) return NoSuchPod(uid);
    return std::nullopt;
  }
  if (pod->quarantine_reason.empty()) return std::nullopt;
  return Error::NotApplied(Code::kFailedPrecondition,
                           "pod " + uid.str() + " is left alone: " + pod->quarantine_reason);
}

void KubeletVolumeManager::Impl::DeletePod(const PodUid& uid, bool force, Done done) {
  if (const std::optional<Error> refused = RefuseDelete(uid)) {
    PostAnswer(done, *refused);
    return;
  }
  ActualPod* pod = actual_.FindPod(uid);
  if (pod == nullptr) {
    if (!tombstones_.contains(uid)) {
      PostAnswer(done, OkStatus());  // it has ended: nothing of it is here, and nothing will be
      return;
    }
    // The row may have been refused by the disk when the pod went; it is written again.
    deletes_[uid].push_back(std::move(done));
    WriteTombstone(uid, IdentityOf(*parts_.catalog.FindPod(uid)));
    return;
  }
  MarkLeaving(*pod, kCommandReason, std::nullopt);
  if (!pod->leaving->commanded) pod->record_outdated = true;
  pod->leaving->commanded = true;
  pod->leaving->force = pod->leaving->force || force;
  pod->leaving->left_sources =
      parts_.catalog.FindPod(uid) == nullptr && parts_.catalog.AllSourcesComplete();
  Unwant(uid);
  if (pod->record_durable && !pod->record_outdated && !pod->record_writing) {
    PostAnswer(done, OkStatus());
  } else {
    deletes_[uid].push_back(std::move(done));
  }
  reconciler_.ResetBackoff(uid);
  reconciler_.MarkDirty(uid);
}

void KubeletVolumeManager::Impl::PostAnswer(const Done& done, const Status& status) {
  parts_.scheduler.Post([done, status] { done(status); });
}

void KubeletVolumeManager::Impl::AnswerDeletes(const PodUid& uid, const Status& written) {
  auto waiting = deletes_.extract(uid);
  if (waiting.empty()) return;
  Status answer = written;
  const ActualPod* pod = actual_.FindPod(uid);
  // What no source has any more comes back from none, with or without a record.
  const bool left_sources = pod != nullptr && pod->leaving && pod->leaving->left_sources;
  if (!written.ok() && left_sources) {
    answer = OkStatus();
  } else if (!written.ok()) {
    const Error& cause = written.error();
    answer = Error::FromParts(cause.code(), Outcome::kMaybeApplied, cause.sys_errno(),
                              "pod " + uid.str() +
                                  " leaves, but may come back at the next start: the command "
                                  "could not be recorded: " +
                                  cause.message());
  }
  for (const Done& done : waiting.mapped()) PostAnswer(done, answer);
}

Status KubeletVolumeManager::Impl::Retry(const PodUid& uid) {
  if (!loaded_) return NotLoaded();
  if (actual_.FindPod(uid) == nullptr) return NoSuchPod(uid);
  reconciler_.ResetBackoff(uid);
  EvaluatePod(uid);
  return OkStatus();
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
  EvaluatePod(key.pod);
  return OkStatus();
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

// ---- the end of a pod ---------------------------------------------------------------------------

void KubeletVolumeManager::Impl::PodRemoved(const PodUid& uid, const ActualPod& last) {
  consumers_.ForgetPod(uid);
  claims_.MarkDirty();
  const bool commanded = last.leaving && last.leaving->commanded && !last.leaving->left_sources;
  const PodPtr pod = parts_.catalog.FindPod(uid);
  if (commanded && (pod != nullptr || !Ready())) {
    KeepTombstone(uid, last);
    return;
  }
  AnswerDeletes(uid, OkStatus());
  if (last.keeps_record) records_.Remove(kPodRecordKind, uid.str(), kPodRecordDurability, nullptr);
  parts_.host.tokens.DeleteServiceAccountTokens(uid);
  if (pod != nullptr) EvaluatePod(uid);  // it came back while it was leaving
}

void KubeletVolumeManager::Impl::KeepTombstone(const PodUid& uid, const ActualPod& last) {
  parts_.host.tokens.DeleteServiceAccountTokens(uid);
  tombstones_[uid] = last.leaving->since_unix_ms;
  WriteTombstone(uid, last.identity);
}

void KubeletVolumeManager::Impl::WriteTombstone(const PodUid& uid, const PodIdentity& identity) {
  PodRecord record;
  record.uid = uid;
  record.ns = identity.name_space;
  record.name = identity.name;
  record.source = identity.source;
  record.terminating = true;
  record.terminating_since_unix_ms = tombstones_.at(uid);
  records_.Put(EncodeRecord(record), kPodRecordDurability, [this, uid](const Status& written) {
    AnswerDeletes(uid, written);
    if (written.ok()) return;
    parts_.log.Warning("a pod deleted by command may come back at the next start",
                       {{"pod", uid}, {"error", written.error()}});
  });
}

void KubeletVolumeManager::Impl::DropTombstone(const PodUid& uid) {
  tombstones_.erase(uid);
  AnswerDeletes(uid, OkStatus());  // it has left its sources
  records_.Remove(kPodRecordKind, uid.str(), kPodRecordDurability, nullptr);
}

PodView KubeletVolumeManager::Impl::TombstoneView(const Pod& pod) const {
  ProblemView problem;
  problem.step = "Deleted";
  problem.message = "it was deleted by command and a source still has it";
  problem.who_must_act = "the owner of its manifest: remove it there";
  problem.since_unix_ms = tombstones_.at(pod.uid());
  return views_.BuildRefused(pod, "Refused", std::move(problem));
}

// ---- views --------------------------------------------------------------------------------------

std::vector<PodView> KubeletVolumeManager::Impl::Pods() const {
  std::vector<PodView> all;
  const PodViews::Running running = views_.TakeRunning();
  for (const auto& [uid, pod] : actual_.pods()) all.push_back(views_.Build(uid, running));
  if (loaded_) {
    for (const auto& [uid, since] : tombstones_) {
      if (const PodPtr pod = parts_.catalog.FindPod(uid)) all.push_back(TombstoneView(*pod));
    }
  } else {
    for (const PodPtr& pod : parts_.catalog.Pods()) {
      if (auto view = FindPod(pod->uid())) all.push_back(std::move(*view));
    }
  }
  return all;
}

std::optional<PodView> KubeletVolumeManager::Impl::FindPod(const PodUid& uid) const {
  if (actual_.FindPod(uid) != nullptr) return views_.Build(uid, views_.TakeRunning());
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

std::map<std::pair<std::string, std::string>, int64_t> KubeletVolumeManager::Impl::VolumeCounts()
    const {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const auto& [uid, pod] : desired_.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (volume.mountable()) ++counts[{volume.plugin_name, "desired_state_of_world"}];
    }
  }
  for (const auto& [uid, pod] : actual_.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (MayBePresent(volume)) ++counts[{volume.plugin_name, "actual_state_of_world"}];
    }
  }
  return counts;
}

// ---- the face -----------------------------------------------------------------------------------

KubeletVolumeManager::KubeletVolumeManager(VolumeManagerParts parts, BootId boot_id,
                                           VolumeManagerSettings settings)
    : impl_(std::make_unique<Impl>(parts, std::move(boot_id), std::move(settings))) {}
KubeletVolumeManager::~KubeletVolumeManager() = default;

void KubeletVolumeManager::Start() { impl_->Start(); }
void KubeletVolumeManager::SetStatsTimes(Duration period, Duration deadline) {
  impl_->SetStatsTimes(period, deadline);
}
void KubeletVolumeManager::ObjectsChanged() { impl_->CheckReady(); }
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
Status KubeletVolumeManager::Retry(const PodUid& pod) { return impl_->Retry(pod); }
Status KubeletVolumeManager::RetryVolume(const PodVolumeKey& key) {
  return impl_->RetryVolume(key);
}
std::vector<PodView> KubeletVolumeManager::Pods() const { return impl_->Pods(); }
std::optional<PodView> KubeletVolumeManager::FindPod(const PodUid& pod) const {
  return impl_->FindPod(pod);
}
bool KubeletVolumeManager::Ready() const { return impl_->Ready(); }
std::string KubeletVolumeManager::NotReadyReason() const { return impl_->NotReadyReason(); }
uint64_t KubeletVolumeManager::AddObserver(std::function<void(const PodUid&)> observer) {
  impl_->observers_[impl_->next_observer_] = std::move(observer);
  return impl_->next_observer_++;
}
void KubeletVolumeManager::RemoveObserver(uint64_t id) { impl_->observers_.erase(id); }
std::map<std::pair<std::string, std::string>, int64_t> KubeletVolumeManager::VolumeCounts() const {
  return impl_->VolumeCounts();
}
size_t KubeletVolumeManager::quarantined_pods() const { return impl_->quarantined_pods_; }
size_t KubeletVolumeManager::unknown_mounts() const { return impl_->unknown_mounts_; }

}  // namespace volumed
