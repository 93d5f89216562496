#include "volumemanager/reconciler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/decode.h"
#include "operation/device_operations.h"
#include "operation/map_operations.h"
#include "operation/mount_operations.h"
#include "operation/volume_record.h"

namespace volumed {
namespace {

constexpr const char* kRecordOperation = "pod_record";

}  // namespace

Reconciler::Reconciler(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      record_backoff_(parts.scheduler.clock()),
      queue_(parts.scheduler, [this](const PodUid& uid, Wake& wake) { ReconcilePod(uid, wake); }) {}

void Reconciler::ResetBackoff(const PodUid& pod) {
  record_backoff_.Reset(pod.str());
  parts_.operations.ResetBackoff({pod, SpecName()});
  if (const WantedPod* wanted = parts_.desired.Find(pod)) {
    for (const auto& [spec, volume] : wanted->volumes) RetryDevice(volume);
  }
  if (const ActualPod* actual = parts_.actual.FindPod(pod)) {
    for (const auto& [spec, volume] : actual->volumes) parts_.operations.ResetBackoff({pod, spec});
  }
}

void Reconciler::RetryDevice(const WantedVolume& volume) {
  if (!volume.has_device) return;
  parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
  parts_.devices.MarkDirty(volume.unique_name);
}

void Reconciler::MountWent(const PodUid& uid) {
  ActualPod* pod = parts_.actual.FindPod(uid);
  if (pod == nullptr || !pod->leaving) return;
  if (pod->removing) pod->mount_went_during.insert(SpecName());
  bool failed = pod->remove_failure.has_value();
  for (const auto& [spec, volume] : pod->volumes) {
    if (volume.in_flight) pod->mount_went_during.insert(spec);
    failed = failed || volume.failure;
  }
  if (!failed) return;
  ResetBackoff(uid);
  MarkDirty(uid);
}

void Reconciler::SourceMayHaveChanged(const PodVolumeKey& key) {
  const ActualVolume* volume = parts_.actual.FindVolume(key);
  if (volume == nullptr) return;
  if (volume->in_flight) parts_.actual.FindPod(key.pod)->mount_went_during.insert(key.spec);
  if (!volume->failure) return;
  ResetBackoff(key);
  MarkDirty(key.pod);
}

void Reconciler::OperationEnded(const PodVolumeKey& key, bool failed) {
  ActualPod* pod = parts_.actual.FindPod(key.pod);
  if (pod == nullptr || pod->mount_went_during.erase(key.spec) == 0 || !failed) return;
  parts_.operations.ResetBackoff(key);
}

std::optional<TimePoint> Reconciler::NextRecordTry(const PodUid& pod) const {
  return record_backoff_.BlockedUntil(pod.str(), kRecordOperation);
}

int64_t Reconciler::GraceEnd(const Leaving& leaving) {
  return leaving.since_unix_ms + leaving.grace_seconds * 1000;
}

Reconciler::Wait Reconciler::WaitsFor(const PodUid& uid, const ActualPod& pod) const {
  const bool commanded = pod.leaving && pod.leaving->commanded;
  if (!commanded && !parts_.readiness.Ready()) return Wait::kSources;
  const bool forced = pod.leaving && pod.leaving->force;
  if (!forced && parts_.consumers.HasConsumers(uid)) return Wait::kConsumers;
  if (!forced && pod.leaving && !parts_.consumers.EverHadConsumers(uid) &&
      parts_.scheduler.clock().WallUnixMillis() < GraceEnd(*pod.leaving)) {
    return Wait::kGrace;
  }
  return pod.record_writing ? Wait::kRecord : Wait::kNothing;
}

void Reconciler::ReconcilePod(const PodUid& uid, Wake& wake) {
  ActualPod* pod = parts_.actual.FindPod(uid);
  const WantedPod* wanted = parts_.desired.Find(uid);
  if (pod != nullptr && !pod->quarantine_reason.empty()) {
    // It is not known what the pod has. It is shown, and left alone.
  } else if (wanted != nullptr && pod != nullptr) {
    ReconcileWanted(uid, *wanted, wake);
  } else if (pod != nullptr) {
    ReconcileUnwanted(uid, *pod, wake);
  }
  hooks_.changed(uid);
}

// ---- the pod's record ---------------------------------------------------------------------------

bool Reconciler::EnsureRecord(const PodUid& uid, ActualPod& pod, Wake& wake) {
  if (pod.record_writing) return false;
  if (pod.record_durable && !pod.record_outdated) return true;
  if (const std::optional<TimePoint> next = NextRecordTry(uid)) {
    wake.At(*next);
    return false;
  }
  WriteRecord(uid, pod);
  return false;
}

void Reconciler::WriteRecord(const PodUid& uid, ActualPod& pod) {
  PodRecord record;
  record.uid = uid;
  record.ns = pod.identity.name_space;
  record.name = pod.identity.name;
  record.source = pod.identity.source;
  record.file = pod.identity.file;
  record.known_since_unix_ms = pod.created_unix_ms;
  if (pod.leaving) {
    record.left_source = pod.leaving->left_sources;
    record.terminating = pod.leaving->commanded;
    record.terminating_since_unix_ms = pod.leaving->since_unix_ms;
    record.deletion_grace_seconds = pod.leaving->grace_seconds;
    if (pod.leaving->evicted) record.reason = pod.leaving->reason;
  }
  if (const WantedPod* wanted = parts_.desired.Find(uid)) {
    pod.recorded_json = EncodeObjectJson(Object(*wanted->pod));
  }
  record.pod_json = pod.recorded_json;
  pod.record_writing = true;
  pod.record_outdated = false;
  parts_.records.Put(EncodeRecord(record), kPodRecordDurability,
                     [this, uid, commanded = record.terminating](const Status& written) {
                       RecordWritten(uid, written);
                       if (commanded) hooks_.command_recorded(uid, written);
                     });
}

void Reconciler::RecordWritten(const PodUid& uid, const Status& written) {
  ActualPod* pod = parts_.actual.FindPod(uid);
  if (pod == nullptr) return;
  pod->record_writing = false;
  if (written.ok()) {
    pod->record_durable = true;
    pod->record_failure.reset();
    record_backoff_.Reset(uid.str());
  } else {
    pod->record_outdated = true;
    const OperationFailure failure{kRecordOperation, "WriteRecord", written.error()};
    NoteFailure(pod->record_failure, failure, parts_.scheduler.clock());
    record_backoff_.RecordFailure(uid.str(), kRecordOperation, CodeName(written.error().code()));
    parts_.log.LogLimited("record " + uid.str(), LogLevel::kWarning,
                          "record of the pod could not be written",
                          {{"pod", uid}, {"error", written.error()}});
  }
  MarkDirty(uid);
}

// ---- a pod that is wanted -----------------------------------------------------------------------

void Reconciler::ReconcileWanted(const PodUid& uid, const WantedPod& wanted, Wake& wake) {
  ActualPod& pod = *parts_.actual.FindPod(uid);
  if (pod.removing) return;  // it came back while its directories go; the end of that is an event
  UnmountStale(uid, wanted, pod, wake);
  std::vector<SpecName> mounts;
  for (const auto& [spec, volume] : wanted.volumes) {
    if (!volume.mountable() || ExcludedBy(uid, volume)) continue;
    const ActualVolume* actual = parts_.actual.FindVolume({uid, spec});
    if (NeedsMount(volume, actual, wake)) mounts.push_back(spec);
  }
  // A pod without volumes is recorded too: its uid, and that its source has it.
  if (mounts.empty() && pod.record_durable && !pod.record_outdated) return;
  if (!EnsureRecord(uid, pod, wake)) return;
  std::vector<SpecName> plain;
  for (const SpecName& spec : mounts) {
    const WantedVolume& volume = wanted.volumes.at(spec);
    if (!DeviceIsMounted(volume)) {
      parts_.devices.MarkDirty(volume.unique_name);  // the end of its operation is an event
    } else if (volume.is_block) {
      StartMap({uid, spec}, wanted, volume, wake);
    } else {
      plain.push_back(spec);
    }
  }
  if (!plain.empty()) StartMounts(uid, wanted, plain, wake);
}

std::optional<PodUid> Reconciler::ExcludedBy(const PodUid& pod, const WantedVolume& wanted) const {
  if (!wanted.one_pod_only) return std::nullopt;
  for (const PodVolumeKey& user : parts_.actual.UsersOf(wanted.unique_name)) {
    if (user.pod != pod) return user.pod;
  }
  // After a power loss the record of the device alone may say who has the volume.
  const ActualDevice* device = parts_.actual.devices().Find(wanted.unique_name);
  if (device == nullptr || device->only_pod.empty() || device->only_pod == pod) return std::nullopt;
  if (parts_.actual.FindPod(device->only_pod) == nullptr) return std::nullopt;
  return device->only_pod;
}

bool Reconciler::DeviceIsMounted(const WantedVolume& wanted) const {
  if (!wanted.has_device) return true;
  const ActualDevice* device = parts_.actual.devices().Find(wanted.unique_name);
  return device != nullptr && IsMounted(*device) && device->is_block == wanted.is_block;
}

void Reconciler::SharedVolumeChanged(const UniqueVolumeName& volume, bool has_device) {
  if (volume.empty()) return;
  if (has_device) {
    const ActualDevice* device = parts_.actual.devices().Find(volume);
    // What a pod had of it may have been in its way.
    if (device != nullptr && device->failure && device->failure->last.step == kCheckPlaceStep) {
      parts_.operations.ResetBackoff(OperationKey(volume));
    }
    parts_.devices.MarkDirty(volume);
  }
  parts_.devices.TellUsers(volume);
}

bool Reconciler::NeedsMount(const WantedVolume& wanted, const ActualVolume* actual,
                            Wake& wake) const {
  if (actual == nullptr) return true;
  if (actual->in_flight) return false;
  if (MayBePresent(*actual) && !IsSameKind(*actual, wanted)) return false;
  if (!IsSetUp(*actual) || actual->uncertain) return true;
  if (actual->applied_generation != wanted.generation) return true;
  if (!actual->mounted || !actual->mounted->freshness) return false;
  const Freshness& fresh = *actual->mounted->freshness;
  const int64_t now = wake.clock().WallUnixMillis();
  if (now >= fresh.until_unix_ms || now < fresh.from_unix_ms) return true;
  wake.AtWall(fresh.until_unix_ms);
  return false;
}

MountRequest Reconciler::RequestFor(const PodVolumeKey& key, const WantedPod& pod,
                                    const WantedVolume& wanted) const {
  const ActualVolume* found = parts_.actual.FindVolume(key);
  MountRequest request{PodVolumeTarget(parts_.paths, pod.pod, wanted.plugin_name, key.spec),
                       wanted.spec,
                       wanted.sub_paths,
                       wanted.nested_mount_points,
                       found != nullptr && found->state == VolumeState::kSetUp,
                       found != nullptr && found->reconstructed,
                       wanted.unique_name,
                       wanted.has_device,
                       wanted.claim_uid,
                       found != nullptr && found->reconstructed ? found->found_as : std::nullopt};
  request.one_pod_only = wanted.one_pod_only;
  request.selinux_label = wanted.selinux_label;
  return request;
}

void Reconciler::MountStarted(const PodVolumeKey& key, const WantedVolume& wanted,
                              StartResult result, Wake& wake) {
  if (result == StartResult::kStarted) {
    parts_.actual.MountStarted(key, {wanted.plugin_name, wanted.generation, wanted.unique_name,
                                     wanted.has_device, wanted.is_block, wanted.driver_domain});
  } else {
    wake.AfterRefusal(result, parts_.operations, key);
  }
}

void Reconciler::MountDone(const PodVolumeKey& key,
                           const OperationOutcome<MountedVolume>& outcome) {
  parts_.actual.MountDone(key, outcome);
  if (outcome.value) hooks_.set_up(key);
  OperationEnded(key, !outcome.value);
  MarkDirty(key.pod);
  const ActualVolume& volume = *parts_.actual.FindVolume(key);
  SharedVolumeChanged(volume.unique_name, volume.has_device);
}

void Reconciler::StartMap(const PodVolumeKey& key, const WantedPod& pod, const WantedVolume& wanted,
                          Wake& wake) {
  const StartResult result = parts_.operations.Start(
      MapVolume(RequestFor(key, pod, wanted)),
      alive_.Guarded([this, key](const OperationOutcome<MountedVolume>& outcome) {
        MountDone(key, outcome);
      }));
  MountStarted(key, wanted, result, wake);
}

void Reconciler::StartMounts(const PodUid& uid, const WantedPod& pod,
                             const std::vector<SpecName>& specs, Wake& wake) {
  const bool with_many = with_many_.erase(uid) > 0;
  std::vector<MountVolume> mounts;
  for (const SpecName& spec : specs) {
    MountRequest request = RequestFor({uid, spec}, pod, pod.volumes.at(spec));
    request.with_many = with_many;
    mounts.emplace_back(std::move(request));
  }
  const std::vector<StartResult> results = parts_.operations.StartEach<MountVolume>(
      std::move(mounts),
      alive_.Guarded(
          [this, uid, specs](size_t number, const OperationOutcome<MountedVolume>& outcome) {
            MountDone({uid, specs[number]}, outcome);
          }));
  for (size_t i = 0; i < specs.size(); ++i) {
    MountStarted({uid, specs[i]}, pod.volumes.at(specs[i]), results[i], wake);
  }
}

void Reconciler::UnmountStale(const PodUid& uid, const WantedPod& wanted, ActualPod& pod,
                              Wake& wake) {
  const bool has_open_claim =
      std::any_of(wanted.volumes.begin(), wanted.volumes.end(),
                  [](const auto& entry) { return entry.second.is_open_claim; });
  std::vector<SpecName> stale;
  for (const auto& [spec, volume] : pod.volumes) {
    const auto still = wanted.volumes.find(spec);
    // A volume that was found may belong to a claim whose volume is not known yet.
    const bool kept = still == wanted.volumes.end()
                          ? volume.reconstructed && has_open_claim
                          : !still->second.mountable() || IsSameKind(volume, still->second);
    if (!kept && !volume.in_flight) stale.push_back(spec);
  }
  // The pod runs, so what it has is taken away only if nobody can be using it.
  if (stale.empty() || WaitsFor(uid, pod) != Wait::kNothing) return;
  StartUnmounts(uid, pod, stale, wake);
}

// ---- a pod that is not wanted -------------------------------------------------------------------

void Reconciler::ReconcileUnwanted(const PodUid& uid, ActualPod& pod, Wake& wake) {
  if (pod.removing || !pod.leaving) return;
  if (pod.record_outdated) EnsureRecord(uid, pod, wake);  // a full disk stops no teardown
  switch (WaitsFor(uid, pod)) {
    case Wait::kSources:
    case Wait::kConsumers:
    case Wait::kRecord:
      return;  // each of these ends with an event
    case Wait::kGrace:
      wake.AtWall(GraceEnd(*pod.leaving));
      return;
    case Wait::kNothing:
      break;
  }
  pod.teardown_begun = true;
  hooks_.leaves(uid);
  std::vector<SpecName> volumes;
  for (const auto& [spec, volume] : pod.volumes) {
    // A mount that waits for a filesystem which hangs would keep the pod for as long.
    if (volume.in_flight) parts_.operations.GiveUpWaiting({uid, spec});
    if (!volume.in_flight) volumes.push_back(spec);
  }
  StartUnmounts(uid, pod, volumes, wake);
  if (pod.volumes.empty()) RemovePod(uid, pod, wake);
}

void Reconciler::UnmountDone(const Unmounting& volume, const OperationOutcome<Unit>& outcome) {
  parts_.actual.UnmountDone(volume.key, outcome);
  if (outcome.value) {
    parts_.actual.devices().ReleaseOnlyPod(volume.shared, volume.key.pod);
    hooks_.gone(volume.key);
  }
  OperationEnded(volume.key, !outcome.value);
  MarkDirty(volume.key.pod);
  SharedVolumeChanged(volume.shared, volume.has_device);
}

void Reconciler::UnmountStarted(const PodVolumeKey& key, StartResult result, Wake& wake) {
  if (result == StartResult::kStarted) {
    parts_.actual.UnmountStarted(key);
  } else {
    wake.AfterRefusal(result, parts_.operations, key);
  }
}

// Nothing of the volume is on the node.
void Reconciler::Forget(const Unmounting& volume) {
  parts_.actual.EraseVolume(volume.key);
  hooks_.gone(volume.key);
  MarkDirty(volume.key.pod);
  SharedVolumeChanged(volume.shared, volume.has_device);
}

void Reconciler::StartUnmounts(const PodUid& uid, const ActualPod& pod,
                               const std::vector<SpecName>& specs, Wake& wake) {
  const bool with_many = with_many_.contains(uid);
  std::vector<UnmountVolume> unmounts;
  std::vector<Unmounting> plain;
  for (const SpecName& spec : specs) {
    const ActualVolume& volume = pod.volumes.at(spec);
    Unmounting unmounting{{uid, spec}, volume.unique_name, volume.has_device};
    if (!MayBePresent(volume)) {
      Forget(unmounting);
      continue;
    }
    UnmountRequest request{uid,
                           spec,
                           volume.plugin_name,
                           pod.identity.DisplayName(),
                           volume.has_device ? volume.unique_name : UniqueVolumeName(),
                           volume.constructed,
                           with_many};
    if (!volume.is_block) {
      unmounts.emplace_back(std::move(request));
      plain.push_back(std::move(unmounting));
      continue;
    }
    const StartResult result = parts_.operations.Start(
        UnmapVolume(std::move(request)),
        alive_.Guarded([this, unmounting](const OperationOutcome<Unit>& outcome) {
          UnmountDone(unmounting, outcome);
        }));
    UnmountStarted(unmounting.key, result, wake);
  }
  if (plain.empty()) return;
  const std::vector<StartResult> results = parts_.operations.StartEach<UnmountVolume>(
      std::move(unmounts),
      alive_.Guarded([this, plain](size_t number, const OperationOutcome<Unit>& outcome) {
        UnmountDone(plain[number], outcome);
      }));
  for (size_t i = 0; i < plain.size(); ++i) UnmountStarted(plain[i].key, results[i], wake);
}

void Reconciler::RemovePod(const PodUid& uid, ActualPod& pod, Wake& wake) {
  const bool never_touched = !pod.record_durable && !pod.record_failure && !pod.has_directories;
  if (never_touched) {
    PodRemoved(uid);
    return;
  }
  // If the record were removed and written again, an end of the agent in between would lose the
  // command.
  pod.keeps_record = pod.leaving->commanded && !pod.leaving->left_sources;
  const PodRecordEnd record = pod.keeps_record ? PodRecordEnd::kKeep : PodRecordEnd::kRemove;
  volumed::RemovePod remove(uid, pod.identity.DisplayName(), record);
  remove.with_many = with_many_.contains(uid);
  const StartResult result = parts_.operations.Start(
      std::move(remove), alive_.Guarded([this, uid](const OperationOutcome<Unit>& outcome) {
        ActualPod& left = *parts_.actual.FindPod(uid);
        left.removing = false;
        if (outcome.value) {
          PodRemoved(uid);
        } else if (outcome.failure) {
          NoteFailure(left.remove_failure, *outcome.failure, parts_.scheduler.clock());
          OperationEnded({uid, SpecName()}, true);
        }
        MarkDirty(uid);
      }));
  if (result == StartResult::kStarted) {
    pod.removing = true;
  } else {
    wake.AfterRefusal(result, parts_.operations, {uid, SpecName()});
  }
}

void Reconciler::PodRemoved(const PodUid& uid) {
  const ActualPod last = parts_.actual.TakePod(uid);
  with_many_.erase(uid);
  record_backoff_.Reset(uid.str());
  for (const UniqueVolumeName& volume : parts_.actual.devices().ReleaseOnlyPods(uid)) {
    parts_.devices.TellUsers(volume);
  }
  hooks_.removed(uid, last);
}

}  // namespace volumed
