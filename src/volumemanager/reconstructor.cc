#include "volumemanager/reconstructor.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "kube/decode.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

// The records of one kind; those that cannot be decoded are put aside like those that the store
// could not read.
template <typename T>
Status LoadKind(RecordStore& store, const char* kind, Result<T> (*decode)(const Record&),
                std::vector<T>& out, std::vector<QuarantinedRecord>& quarantined) {
  ASSIGN_OR_RETURN(LoadedRecords loaded, store.Load(kind));
  for (const Record& row : loaded.records) {
    Result<T> decoded = decode(row);
    if (decoded.ok()) {
      out.push_back(std::move(decoded).value());
    } else {
      quarantined.push_back(QuarantineOf(row, decoded.error()));
    }
  }
  for (QuarantinedRecord& row : loaded.quarantined) quarantined.push_back(std::move(row));
  return OkStatus();
}

// Every key of ours begins with the pod's uid.
PodUid PodOfKey(const std::string& key) { return PodUid(key.substr(0, key.find('/'))); }

class DirectoryFinder {
 public:
  DirectoryFinder(const FindParts& parts, Duration timeout) : parts_(parts), timeout_(timeout) {}

  std::vector<std::string> Subdirectories(const SafePath& path) const {
    // A hostPath has nothing here, so whatever a volume leaves is a directory.
    return Entries(path, FileType::kDirectory);
  }

  void AddVolumesOf(const PodUid& pod, std::vector<KubeletPaths::PodVolume>& out) const {
    const SafePath volumes = parts_.paths.GetPodVolumesDir(pod);
    for (const std::string& plugin : Subdirectories(volumes)) {
      for (const std::string& spec : Subdirectories(volumes.Below(plugin))) {
        out.push_back({pod, UnescapeQualifiedName(plugin), SpecName(spec), false});
      }
    }
    const SafePath devices = parts_.paths.GetPodVolumeDevicesDir(pod);
    for (const std::string& plugin : Subdirectories(devices)) {
      for (const std::string& spec : Entries(devices.Below(plugin), FileType::kSymlink)) {
        out.push_back({pod, UnescapeQualifiedName(plugin), SpecName(spec), true});
      }
    }
  }

 private:
  std::vector<std::string> Entries(const SafePath& path, FileType type) const {
    CallOptions call;
    call.deadline = Deadline::After(parts_.clock, timeout_);
    const Result<DirectoryListing> listing = parts_.kernel.Call(ListDirectory{path}, call);
    std::vector<std::string> names;
    if (!listing.ok()) {
      if (listing.error().code() != Code::kNotFound) {
        parts_.log.Warning("directory of a pod could not be read", {{"error", listing.error()}});
      }
      return names;
    }
    for (const DirectoryEntry& entry : listing->entries) {
      if (entry.type == type) names.push_back(entry.name);
    }
    return names;
  }

  const FindParts& parts_;
  const Duration timeout_;
};

// Pods with a mount over a directory that is the agent's own: it is nobody's volume, and may never
// answer.
std::map<PodUid, CoveredPod> FindCovered(const MountListing& listing, const KubeletPaths& paths) {
  const std::string pods = paths.GetPodsDir().Display() + "/";
  std::map<PodUid, CoveredPod> covered;
  for (const MountEntry& mount : listing.mounts) {
    const std::optional<std::string_view> rest = StripPrefix(mount.mount_point, pods);
    if (!rest) continue;
    const std::vector<std::string> names = Split(*rest, '/');
    const PodUid pod(names[0]);
    if (names.size() > 1) {
      // <pod>/volumes/<plugin> is the agent's, and what lies in it a volume.
      const std::string directory = pods + names[0] + "/" + names[1];
      const bool holds_volumes = directory == paths.GetPodVolumesDir(pod).Display() ||
                                 directory == paths.GetPodVolumeDevicesDir(pod).Display();
      if (!holds_volumes || names.size() > 3) continue;
    }
    covered.insert_or_assign(pod, CoveredPod{mount.mount_point, mount.fs_type});
  }
  return covered;
}

std::vector<KubeletPaths::PodVolume> MountedVolumes(const MountListing& listing,
                                                    const KubeletPaths& paths) {
  std::vector<KubeletPaths::PodVolume> volumes;
  std::set<std::tuple<PodUid, std::string, SpecName>> seen;
  for (const MountEntry& mount : listing.mounts) {
    const auto volume = paths.ParsePodVolume(mount.mount_point);
    if (volume && seen.emplace(volume->pod, volume->plugin, volume->spec).second) {
      volumes.push_back(*volume);
    }
  }
  return volumes;
}

std::vector<KubeletPaths::DeviceMount> MountedDevices(const MountListing& listing,
                                                      const KubeletPaths& paths) {
  std::vector<KubeletPaths::DeviceMount> devices;
  for (const MountEntry& mount : listing.mounts) {
    const auto device = paths.ParseDeviceMount(mount.mount_point);
    if (device && std::find(devices.begin(), devices.end(), *device) == devices.end()) {
      devices.push_back(*device);
    }
  }
  return devices;
}

Status LoadRecords(RecordStore& store, FoundAtStart& found) {
  RETURN_IF_ERROR(LoadKind(store, kPodRecordKind, &DecodePodRecord, found.pods, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kPodVolumeRecordKind, &DecodePodVolumeRecord, found.volumes,
                           found.quarantined));
  RETURN_IF_ERROR(
      LoadKind(store, kDeviceRecordKind, &DecodeDeviceRecord, found.devices, found.quarantined));
  RETURN_IF_ERROR(
      LoadKind(store, kHoldRecordKind, &DecodeHoldRecord, found.holds, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kClaimBindingRecordKind, &DecodeClaimBindingRecord,
                           found.bindings, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kProvisionRecordKind, &DecodeProvisionRecord, found.provisioned,
                           found.quarantined));
  RETURN_IF_ERROR(
      LoadKind(store, kObjectUidRecordKind, &DecodeObjectUidRecord, found.uids, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kKnownObjectRecordKind, &DecodeKnownObjectRecord, found.objects,
                           found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kObjectSourceRecordKind, &DecodeObjectSourceRecord, found.sources,
                           found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kDeletedObjectRecordKind, &DecodeDeletedObjectRecord,
                           found.deleted, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kCommandNumberRecordKind, &DecodeCommandNumberRecord,
                           found.command_numbers, found.quarantined));
  ASSIGN_OR_RETURN(const LoadedRecords lost, store.Load(kLostRowsRecordKind));
  for (const QuarantinedRecord& row : lost.quarantined) found.quarantined.push_back(row);
  return OkStatus();
}

// Asks the plugins of what no record knows, but of pods that are not ours.
void ConstructVolumes(const FindParts& parts, const FindOptions& options, FoundAtStart& found) {
  std::set<PodVolumeKey> asked;
  for (const PodVolumeRecord& record : found.volumes) asked.insert(record.key);
  std::set<PodUid> ours;
  for (const PodRecord& pod : found.pods) ours.insert(pod.uid);
  for (const PodVolumeRecord& record : found.volumes) ours.insert(record.key.pod);
  for (const auto* volumes : {&found.mounted, &found.directories}) {
    for (const KubeletPaths::PodVolume& volume : *volumes) {
      const PodVolumeKey key{volume.pod, volume.spec};
      if (!options.all_directories && !ours.contains(volume.pod)) continue;
      if (!asked.insert(key).second) continue;
      CallOptions call;
      call.deadline = Deadline::After(parts.clock, options.call_timeout);
      Result<std::optional<FoundVolume>> constructed =
          ConstructFoundVolume(parts.plugins, parts.paths, volume, call);
      if (!constructed.ok()) {
        parts.log.Warning("a volume that no record knows does not say which one it is",
                          {{"pod", volume.pod},
                           {"volume", volume.spec},
                           {"plugin", volume.plugin},
                           {"error", constructed.error()}});
      } else if (*constructed) {
        found.constructed.emplace(key, **std::move(constructed));
      }
    }
  }
}

}  // namespace

Result<FoundAtStart> LoadFoundAtStart(const FindParts& parts, const FindOptions& options) {
  FoundAtStart found;
  RETURN_IF_ERROR(LoadRecords(parts.store, found));
  CallOptions call;
  call.deadline = Deadline::After(parts.clock, options.call_timeout);
  ASSIGN_OR_RETURN(const MountListing mounts,
                   parts.kernel.Call(ListMounts{parts.paths.root()}, call));
  found.mounted = MountedVolumes(mounts, parts.paths);
  found.device_mounts = MountedDevices(mounts, parts.paths);

  const DirectoryFinder finder(parts, options.call_timeout);
  std::set<PodUid> pods;
  for (const PodRecord& pod : found.pods) pods.insert(pod.uid);
  if (options.all_directories) {
    for (const std::string& name : finder.Subdirectories(parts.paths.GetPodsDir())) {
      pods.insert(PodUid(name));
      found.pod_directories.push_back(PodUid(name));
    }
  }
  found.covered = FindCovered(mounts, parts.paths);
  for (const PodUid& pod : pods) {
    if (!found.covered.contains(pod)) finder.AddVolumesOf(pod, found.directories);
  }
  if (options.all_directories) {
    found.adopted = FindAdoptedPods({parts.kernel, parts.clock, parts.paths, parts.log,
                                     options.pod_logs_directory, options.call_timeout},
                                    found.directories, found.mounted);
  }
  ConstructVolumes(parts, options, found);
  return found;
}

namespace {

// Null for a record without one, or with one that is refused by now.
PodPtr DecodePod(const std::string& json) {
  ManifestDecode decoded = DecodeManifest("record", json);
  if (decoded.objects.size() != 1) return nullptr;
  Pod* pod = std::get_if<Pod>(&decoded.objects.front().object);
  return pod == nullptr ? nullptr : std::make_shared<const Pod>(std::move(*pod));
}

void RestorePod(const PodRecord& record, ActualStateOfWorld& actual) {
  ActualPod& pod = actual.AddPod(record.uid, {record.ns, record.name, record.source, record.file});
  pod.record_durable = true;
  pod.recorded_json = record.pod_json;
  if (record.known_since_unix_ms != 0) pod.created_unix_ms = record.known_since_unix_ms;
  pod.object = DecodePod(record.pod_json);
  if (!record.terminating && record.terminating_since_unix_ms == 0) return;
  // Without a command the sources have to say it again; only the grace period goes on.
  pod.leaving = Leaving{record.terminating ? "deleted by command" : "it was leaving",
                        record.terminating_since_unix_ms,
                        record.deletion_grace_seconds,
                        record.terminating,
                        false,
                        record.left_source};
  pod.leaving->evicted = !record.reason.empty();
  if (pod.leaving->evicted) pod.leaving->reason = record.reason;
}

// A volume that the kernel or the disk shows and no record does.
void AddUnrecorded(const FoundAtStart& found, const KubeletPaths::PodVolume& volume,
                   ActualStateOfWorld& actual, TakeOver& take_over) {
  const PodVolumeKey key{volume.pod, volume.spec};
  if (actual.FindVolume(key) != nullptr) return;
  ActualVolume& added =
      actual.AddReconstructed(key, volume.plugin, VolumeState::kNotSetUp, true, volume.is_block);
  if (const auto of = found.constructed.find(key); of != found.constructed.end()) {
    added.unique_name = of->second.unique_name;
    added.has_device = of->second.has_device;  // it goes after the volume, whoever finds that
    added.constructed = of->second.spec;
  }
  take_over.without_record.insert(key);
  ++take_over.volumes;
}

// Where it is mounted, or where its nodes are bound.
std::string PlaceOf(const KubeletPaths::DeviceMount& device, const KubeletPaths& paths) {
  if (!device.place.empty()) return device.place;
  return (device.is_block ? paths.GetBlockMapDir(device.plugin, device.volume)
                          : paths.GetDeviceMountDir(device.plugin, device.volume))
      .Display();
}

void AddUnrecordedDevice(const UniqueVolumeName& name, ActualDevice device,
                         ActualStateOfWorld& actual) {
  if (actual.FindDevice(name) != nullptr) return;
  device.unrecorded = true;
  actual.AddReconstructedDevice(name, std::move(device));
}

// Devices by their records, and those that only the mount table shows.
void RestoreDevices(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                    const KubeletPaths& paths, ActualStateOfWorld& actual,
                    ReconstructResult& result) {
  std::set<std::string> known;
  for (const DeviceRecord& record : found.devices) {
    const DeviceRecord now = AfterRestart(record, boot_id);
    result.devices.push_back(now);
    known.insert(now.device_mount_path);
    // Its row may be left for the format that it tells of.
    if (IsGone(now)) continue;
    ActualDevice device;
    device.plugin_name = now.plugin_name;
    device.spec = now.spec;
    device.device_mount_path = now.device_mount_path;
    device.is_block = now.is_block;
    device.state = now.state;
    device.uncertain = now.uncertain;
    device.attachable = now.attachable;
    device.device_path = now.device_path;
    device.limit_key = now.limit_key;
    actual.AddReconstructedDevice(now.key, std::move(device));
  }
  for (const KubeletPaths::DeviceMount& mount : found.device_mounts) {
    const std::string place = PlaceOf(mount, paths);
    if (known.contains(place)) continue;
    if (adopt_root) {
      ActualDevice device;
      device.plugin_name = mount.plugin;
      device.spec = mount.volume;
      device.device_mount_path = place;
      device.is_block = mount.is_block;
      AddUnrecordedDevice(GetUniqueVolumeName(mount.plugin, mount.volume.str()), std::move(device),
                          actual);
    } else {
      result.unknown_device_mounts.push_back(mount);
    }
  }
  // A pod's link may be all that a reboot has left of a block volume, with its empty directories.
  for (const KubeletPaths::PodVolume& volume : found.directories) {
    const auto of = found.constructed.find({volume.pod, volume.spec});
    if (!volume.is_block || !adopt_root || of == found.constructed.end()) continue;
    if (known.contains(of->second.global_map_path)) continue;
    ActualDevice device;
    device.plugin_name = volume.plugin;
    device.spec = volume.spec;
    device.device_mount_path = of->second.global_map_path;
    device.is_block = true;
    AddUnrecordedDevice(of->second.unique_name, std::move(device), actual);
  }
}

// A row that nobody can read: what it tells of is left alone.
void Quarantine(const QuarantinedRecord& row, ActualStateOfWorld& actual, std::set<PodUid>& pods) {
  const std::string reason = "record " + row.kind + " \"" + row.key + "\": " + row.reason;
  if (row.kind == kDeviceRecordKind) {
    actual.QuarantineDevice(UniqueVolumeName(row.key), reason);
  } else if (!IsAboutClaims(row.kind) && row.kind != kObjectSourceRecordKind) {
    actual.AddPod(PodOfKey(row.key), {}).quarantine_reason = reason;
    pods.insert(PodOfKey(row.key));
  }
}

}  // namespace

ReconstructResult Reconstruct(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                              const KubeletPaths& paths, ActualStateOfWorld& actual,
                              Consumers& consumers) {
  ReconstructResult result;
  for (const PodRecord& record : found.pods) RestorePod(record, actual);
  for (const PodVolumeRecord& record : found.volumes) {
    result.volumes.push_back(AfterRestart(record, boot_id));
    // Its row may be left of a teardown that could not remove it; its pod's removal does.
    if (record.state == VolumeState::kNotSetUp && !record.uncertain) continue;
    actual.AddPod(record.key.pod, {record.pod_namespace, record.pod_name, "", ""});
    ActualVolume& volume = actual.AddReconstructed(record.key, record.plugin_name, record.state,
                                                   record.boot_id == boot_id, record.is_block);
    volume.unique_name = record.unique_name;
    volume.has_device = record.has_device;
    ++result.take_over.volumes;
  }
  for (const KubeletPaths::PodVolume& volume : found.mounted) {
    if (actual.FindPod(volume.pod) == nullptr && !adopt_root) {
      result.unknown_mounts.push_back(volume);
      continue;
    }
    actual.AddPod(volume.pod, {});
    AddUnrecorded(found, volume, actual, result.take_over);
  }
  for (const KubeletPaths::PodVolume& volume : found.directories) {
    actual.AddPod(volume.pod, {});
    AddUnrecorded(found, volume, actual, result.take_over);
  }
  for (const PodUid& pod : found.pod_directories) {
    actual.AddPod(pod, {}).has_directories = true;
  }
  RestoreDevices(found, boot_id, adopt_root, paths, actual, result);
  std::set<PodUid> quarantined;
  for (const QuarantinedRecord& row : found.quarantined) {
    Quarantine(row, actual, quarantined);
    if (row.kind == kPodVolumeRecordKind) ++result.take_over.unreadable;
  }
  result.quarantined_pods = quarantined.size();
  for (const auto& [uid, cover] : found.covered) {
    ActualPod* const pod = actual.FindPod(uid);
    if (pod == nullptr || !pod->quarantine_reason.empty()) continue;
    pod->covered_by = cover.mount_point;
    pod->quarantine_reason = cover.fs_type + " is mounted over its directory " + cover.mount_point;
  }
  for (const HoldRecord& hold : found.holds) consumers.Restore(hold);
  return result;
}

}  // namespace volumed
