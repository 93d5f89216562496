#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <utility>

#include "base/strings.h"
#include "operation/storage_operations.h"
#include "volumemanager/kubelet_volume_manager_impl.h"

namespace volumed {

void KubeletVolumeManager::Impl::Start() { Load(); }

// All of this may be as large as what the node has, so the control thread neither makes, copies nor
// destroys it.
struct KubeletVolumeManager::Impl::Loading {
  explicit Loading(const Clock& clock) : actual(clock) {}

  std::optional<Error> error;
  FoundAtStart found;
  std::atomic<int> under_way{2};  // decoding the pods' objects, and looking at the node
  ActualStateOfWorld actual;      // made from what was found
  ReconstructResult result;
  size_t restored = 0;  // how many volumes of `result` the operations know
};

void KubeletVolumeManager::Impl::Load() {
  FindOptions options;
  options.all_directories = settings_.adopt_root;
  options.pod_logs_directory = settings_.pod_logs_directory;
  // Two tasks run beside each other, and the last to end goes on here. It uses only the copies made
  // here, and nothing of *this.
  const auto reconstruct = [this, options, boot_id = boot_id_, alive = std::weak_ptr<bool>(alive_),
                            parts = parts_](const std::shared_ptr<Loading>& loading) {
    if (!loading->error) {
      loading->result = Reconstruct(loading->found, boot_id, options.all_directories,
                                    parts.host.paths, loading->actual);
    }
    parts.scheduler.Post([this, alive, loading] {
      if (!alive.expired()) Loaded(loading);
    });
  };
  parts_.scheduler.RunBlocking([options, reconstruct, parts = parts_] {
    auto loading = std::make_shared<Loading>(parts.scheduler.clock());
    Result<FoundAtStart> found = LoadRecordsAtStart(parts.store);
    if (!found.ok()) {
      loading->error = found.error();
      return reconstruct(loading);
    }
    loading->found = *std::move(found);
    const auto part_done = [reconstruct, loading] {
      if (--loading->under_way == 0) reconstruct(loading);
    };
    parts.scheduler.RunBlocking([loading, part_done] {
      DecodePodObjects(loading->found);
      part_done();
    });
    const Status on_node = LookAtNode(
        {parts.kernel, parts.plugins, parts.scheduler.clock(), parts.host.paths, parts.log},
        options, loading->found);
    if (!on_node.ok()) loading->error = on_node.error();
    part_done();
  });
}

void KubeletVolumeManager::Impl::Loaded(const std::shared_ptr<Loading>& loading) {
  if (loading->error) return LoadAgain(*loading->error);
  load_error_.reset();
  const auto restore = [this, loading](TaskLimit& limit) { return RestoreSome(*loading, limit); };
  loading_.Start(
      {restore, [this, loading](TaskLimit&) {
         TakeOverFound(*loading);
         parts_.scheduler.RunBlocking(
             [found = std::make_shared<FoundAtStart>(std::move(loading->found)),
              result = std::make_shared<ReconstructResult>(std::move(loading->result))] {});
         return true;
       }});
}

bool KubeletVolumeManager::Impl::RestoreSome(Loading& loading, TaskLimit& limit) {
  constexpr size_t kTogether = 64;
  const std::vector<PodVolumeRecord>& volumes = loading.result.volumes;
  if (!settings_.restore_operations) return true;
  // The operations get the devices as they were recorded, since only that tells what a reboot has
  // taken from them.
  if (loading.restored == 0) settings_.restore_operations({}, loading.found.devices);
  while (loading.restored < volumes.size() && limit.TakeOne()) {
    const auto first = volumes.begin() + static_cast<ptrdiff_t>(loading.restored);
    const size_t count = std::min(kTogether, volumes.size() - loading.restored);
    settings_.restore_operations({first, first + static_cast<ptrdiff_t>(count)}, {});
    loading.restored += count;
  }
  return loading.restored == volumes.size();
}

void KubeletVolumeManager::Impl::TakeOverFound(Loading& loading) {
  const FoundAtStart& found = loading.found;
  const ReconstructResult& result = loading.result;
  actual_.TakeOver(loading.actual);
  for (const HoldRecord& hold : found.holds) consumers_.Restore(hold);
  quarantined_pods_ = result.quarantined_pods;
  if (parts_.host.irreversible.InDoubt()) {
    DoubtCommands();
    actual_.DoubtFoundVolumes();
  }
  TellOfUnrecordedMounts(result);
  HoldAdoptedPods(found);
  for (const auto& [uid, cover] : found.covered) {
    parts_.log.Warning(
        "somebody has mounted something over a pod's directory; it is left alone",
        {{"pod_uid", uid}, {"mount_point", cover.mount_point}, {"fs_type", cover.fs_type}});
  }
  for (const DeviceRecord& device : result.devices) {
    if (device.format) resting_devices_[device.key] = device.spec.str();
  }
  if (settings_.taken_over) settings_.taken_over(result.take_over);
  known_.Restore(found);
  deleted_.Restore(found.deleted, found.command_numbers, found.quarantined);
  parts_.catalog.SetEndedListener(
      [this, alive = std::weak_ptr<bool>(alive_)](const ObjectKey& key) {
        if (!alive.expired()) ForgetDeleted(key);
      });
  parts_.catalog.SetBoundCheck([this, alive = std::weak_ptr<bool>(alive_)](const ObjectKey& key) {
    return !alive.expired() && claims_.IsBound(key);
  });
  std::map<std::string, SourceMemory> memories = known_.TakeMemories();
  SeedCatalog(memories);
  provisioning_.Restore(found.provisioned);
  claims_.Restore(found.bindings, found.quarantined);
  NoteUnknownVolumes();
  loaded_ = true;
  // Nothing that the sources deliver is heard before this function returns.
  if (settings_.start_sources) settings_.start_sources(std::move(memories));
  // Repeats what the last agent was told to do and may not have done.
  for (const DeletedObjectRecord& deleted : deleted_.All()) {
    if (deleted.ended) TakeAway(deleted);
  }
  parts_.log.Info("records loaded", {{"pods", found.pods.size()},
                                     {"volumes", found.volumes.size()},
                                     {"quarantined", found.quarantined.size()}});
  for (const auto& [uid, pod] : actual_.pods()) {
    if (pod.object != nullptr) NoteClaims(uid, *pod.object);
    reconciler_.MarkDirtyWithMany(uid);
  }
  // This comes before the first decision: a claim that has left must not be taken for the next one
  // of its name.
  known_.FollowAll(parts_.catalog);
  claims_.Start();
  for (const PodPtr& pod : parts_.catalog.Pods()) EvaluatePod(pod->uid());
  const std::set<std::string> gone = std::exchange(gone_while_loading_, {});
  for (const auto& [uid, cover] : found.covered) {
    Uncover(uid, std::vector<std::string>(gone.begin(), gone.end()));
  }
  CheckReady();
  devices_.Start();
  expander_.Start();
  reconciler_.Start();
}

void KubeletVolumeManager::Impl::HoldAdoptedPods(const FoundAtStart& found) {
  std::set<PodUid> without_record(found.pod_directories.begin(), found.pod_directories.end());
  for (const PodRecord& pod : found.pods) without_record.erase(pod.uid);
  adopted_.Restore(found.adopted, without_record);
  for (const auto& [uid, held] : adopted_.Held()) {
    actual_.SetIdentity(uid, {held.pod.name_space, held.pod.name, kAdoptedRootSource, ""});
  }
}

// The catalog does not know these pods; as soon as every source has delivered, their absence means
// something.
std::vector<HeldPodView> KubeletVolumeManager::Impl::HeldAdoptedPods() const {
  std::vector<HeldPodView> held;
  if (!Ready()) return held;
  for (const auto& [uid, pod] : adopted_.Held()) {
    held.push_back({uid, pod.pod.name_space, pod.pod.name, pod.disk_data});
  }
  return held;
}

void KubeletVolumeManager::Impl::AcceptAdoptedPods() {
  for (const PodUid& uid : adopted_.Accept()) EvaluatePod(uid);
}

// If the records may be older than the disks, a command in them may have been carried out long ago,
// and what is here now may be a later pod. The command has to be given again. A pod that no source
// has leaves without a command, and a pod of which nothing is here is refused as before.
void KubeletVolumeManager::Impl::DoubtCommands() {
  for (const auto& [uid, there] : actual_.pods()) {
    ActualPod& pod = *actual_.FindPod(uid);
    const bool is_here = !pod.volumes.empty() || pod.has_directories;
    if (!pod.leaving || !pod.leaving->commanded || !is_here) continue;
    parts_.log.Warning(
        "a pod's deletion by command is not gone on with: the records may be older than "
        "the disks; delete it again if it is to go",
        {{"pod_uid", uid}, {"pod", pod.identity.name}});
    pod.leaving->commanded = pod.leaving->evicted = pod.leaving->left_sources = false;
    pod.leaving->reason = "it was leaving";
    pod.record_outdated = true;
  }
}

void KubeletVolumeManager::Impl::SeedCatalog(const std::map<std::string, SourceMemory>& memories) {
  ObjectCatalog& catalog = parts_.catalog;
  catalog.IdentifyBy(&known_);
  std::set<std::string> configured;
  for (const SourceStatus& source : catalog.Sources()) configured.insert(source.name);
  for (const auto& [name, memory] : memories) {
    std::vector<KnownObject> objects = memory.objects;
    // The source names a pod by the present name of the node; in the records the pod has the name
    // that it got.
    for (KnownObject& object : objects) object.key.name = known_.NameOnRecord(object);
    if (configured.contains(name)) {
      catalog.Remember(name, std::move(objects));
    } else {
      catalog.HoldUnconfigured(name, objects);
      parts_.log.Warning("a source that had objects is not configured any more; they stay",
                         {{"source", name}, {"objects", objects.size()}});
    }
  }
  for (const KnownObjects::MissingObject& missing : known_.Missing()) {
    catalog.RememberMissing(missing.source, missing.object, missing.since_unix_millis);
  }
}

void KubeletVolumeManager::Impl::LoadAgain(const Error& error) {
  load_error_ = error;
  const Duration delay = load_backoff_.RecordFailure("records", "load", "");
  parts_.log.Error("what the last run left could not be read; trying again", {{"error", error}});
  parts_.scheduler.PostAfter(delay, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) Load();
  });
}

void KubeletVolumeManager::Impl::TellOfUnrecordedMounts(const ReconstructResult& result) {
  unrecorded_mounts_.clear();
  for (const KubeletPaths::PodVolume& mount : result.unknown_mounts) {
    parts_.log.LogLimited("unknown mount", LogLevel::kWarning,
                          "a mount below the root has no record; it is left alone",
                          {{"pod", mount.pod}, {"volume", mount.spec}});
    unrecorded_mounts_.push_back("volume " + mount.spec.str() + " of pod " + mount.pod.str());
  }
  for (const KubeletPaths::DeviceMount& mount : result.unknown_device_mounts) {
    parts_.log.LogLimited("unknown mount", LogLevel::kWarning,
                          "a device mounted below the root has no record; it is left alone",
                          {{"plugin", mount.plugin}, {"volume", mount.volume}});
    unrecorded_mounts_.push_back("device of volume " + mount.volume.str() + " of " + mount.plugin);
  }
}

std::string KubeletVolumeManager::Impl::NotReadyReason() const {
  if (!loaded_) {
    return load_error_ ? "the records cannot be loaded: " + load_error_->ToString()
                       : "the records are being loaded";
  }
  const std::vector<std::string> missing = parts_.catalog.IncompleteSources();
  if (!missing.empty()) return "no complete list yet from: " + Join(missing, ", ");
  // Without a source every pod would look deleted; the source of provisioned volumes has no pods.
  if (!parts_.catalog.HasSourceBut(Provisioning::kSourceName))
    return "no source of pods is configured";
  return "";
}

void KubeletVolumeManager::Impl::CheckReady() {
  const bool ready = Ready();
  if (std::exchange(was_ready_, ready) == ready || !ready) return;
  // From now on absence means something: everything that is in no source is looked at once.
  known_.FollowAll(parts_.catalog);
  const auto left = std::make_shared<std::deque<PodUid>>();
  for (const auto& [uid, pod] : actual_.pods()) left->push_back(uid);
  for (const auto& [uid, tombstone] : tombstones_) left->push_back(uid);
  const auto evaluate = [this, left](TaskLimit& limit) {
    while (!left->empty() && limit.TakeOne()) {
      const PodUid uid = std::move(left->front());
      left->pop_front();
      EvaluatePod(uid);
    }
    return left->empty();
  };
  became_ready_.Start({evaluate, [this](TaskLimit&) {
                         // A source that was added meanwhile may have what looks removed; all of
                         // this is then done again once it has delivered.
                         was_ready_ = Ready();
                         if (was_ready_) AllAreEvaluated();
                         return true;
                       }});
}

void KubeletVolumeManager::Impl::AllAreEvaluated() {
  replacements_.FollowAll();
  DeleteWhatWasRemoved();
  claims_.MarkDirty();
  devices_.MarkAllDirty();
  ForgetRestingDevices();
  ForgetRestingStorage();
  Changed(PodUid());  // callers that wait for a pod that no source has can be told so now
}

void KubeletVolumeManager::Impl::ForgetRestingDevices() {
  if (!Ready()) return;
  const std::map<UniqueVolumeName, std::string> resting = resting_devices_;
  for (const auto& [device, volume] : resting) {
    const bool known = parts_.catalog.FindPersistentVolume(volume) != nullptr ||
                       parts_.catalog.MayBeThere({ObjectKind::kPersistentVolume, "", volume}) ||
                       claims_.FindVolume(volume) != nullptr;
    if (!known) ForgetDevice(device);
  }
}

// Forgets the records of storage that the last agent did not come to forget.
void KubeletVolumeManager::Impl::ForgetRestingStorage() {
  std::set<std::string> known;
  for (const PersistentVolumePtr& volume : parts_.catalog.PersistentVolumes()) {
    known.insert(volume->metadata.name);
  }
  // These volumes are known only by what is on record, so that is kept.
  for (const UnknownObject& unknown : parts_.catalog.UnknownOf(ObjectKind::kPersistentVolume)) {
    known.insert(unknown.key.name);
  }
  for (const std::string& volume : claims_.BoundVolumes()) known.insert(volume);
  parts_.operations.Start(ForgetStorageBut(std::move(known)), [](const OperationOutcome<Unit>&) {});
}

void KubeletVolumeManager::Impl::NoteUnknownVolumes() {
  std::vector<UnknownVolume> unknown;
  for (UnknownObject& object : parts_.catalog.UnknownOf(ObjectKind::kPersistentVolume)) {
    UnknownVolume& volume = unknown.emplace_back(
        UnknownVolume{object.key.name, std::move(object.file), std::move(object.reason)});
    const PersistentVolumePtr bound = claims_.FindVolumeObject(volume.volume);
    if (bound == nullptr) continue;
    volume.name = StorageNameOf(VolumeSpec::FromPersistentVolume(*bound, false));
    // The record of this volume says what it has, and no path of this node could lead there.
    if (!volume.name) unknown.pop_back();
  }
  if (unknown == unknown_volumes_) return;
  for (const UnknownVolume& before : std::exchange(unknown_volumes_, unknown)) {
    const ObjectKey key{ObjectKind::kPersistentVolume, "", before.volume};
    const bool is_gone = parts_.catalog.LookUp(key).answer == ObjectLookup::Answer::kAbsent;
    if (is_gone && Ready() && !claims_.BoundVolumes().contains(before.volume)) {
      parts_.operations.Start(ForgetStorage(before.volume), [](const OperationOutcome<Unit>&) {});
    }
  }
  for (const std::string& held : parts_.operations.SetUnknownVolumes(std::move(unknown))) {
    RetryStorage(held);
  }
}

void KubeletVolumeManager::Impl::ReportOrphan(const PodUid& uid, const ActualPod& pod) const {
  if (!settings_.orphan_found) return;
  std::set<PodVolumeKey> volumes;
  for (const auto& [spec, volume] : pod.volumes) {
    if (MayBePresent(volume)) volumes.insert({uid, spec});
  }
  settings_.orphan_found(volumes);
}

}  // namespace volumed
