#include "volumemanager/reconstructor.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "volume/driver_domain.h"
#include "volume/unique_name.h"
#include "volumemanager/found_devices.h"
#include "volumemanager/found_sub_paths.h"
#include "volumemanager/found_unrecorded.h"
#include "volumemanager/lost_mounts.h"
#include "volumemanager/quarantined_rows.h"

namespace volumed {
namespace {

class DirectoryFinder {
 public:
  DirectoryFinder(const FindParts& parts, Duration timeout) : parts_(parts), timeout_(timeout) {}

  std::vector<std::string> Subdirectories(const SafePath& path) const {
    return Entries({path}, FileType::kDirectory).front();
  }

  void AddVolumesOf(const std::vector<PodUid>& pods,
                    std::vector<KubeletPaths::PodVolume>& out) const {
    // A hostPath leaves nothing here, so everything that a volume leaves is a directory.
    AddVolumes(pods, &KubeletPaths::GetPodVolumesDir, FileType::kDirectory, out);
    AddVolumes(pods, &KubeletPaths::GetPodVolumeDevicesDir, FileType::kSymlink, out);
  }

 private:
  // Adds what each pod has of this type in `of_pod`/<plugin>; a block volume leaves links.
  void AddVolumes(const std::vector<PodUid>& pods,
                  SafePath (KubeletPaths::*of_pod)(const PodUid&) const, FileType type,
                  std::vector<KubeletPaths::PodVolume>& out) const {
    std::vector<SafePath> tops;
    tops.reserve(pods.size());
    for (const PodUid& pod : pods) tops.push_back((parts_.paths.*of_pod)(pod));
    const std::vector<std::vector<std::string>> plugins = Entries(tops, FileType::kDirectory);
    std::vector<KubeletPaths::PodVolume> of_plugins;
    std::vector<SafePath> directories;
    for (size_t i = 0; i < pods.size(); ++i) {
      for (const std::string& plugin : plugins[i]) {
        of_plugins.push_back(
            {pods[i], UnescapeQualifiedName(plugin), SpecName(), type == FileType::kSymlink});
        directories.push_back(tops[i].Below(plugin));
      }
    }
    const std::vector<std::vector<std::string>> specs = Entries(directories, type);
    for (size_t i = 0; i < directories.size(); ++i) {
      for (const std::string& spec : specs[i]) {
        out.push_back(of_plugins[i]);
        out.back().spec = SpecName(spec);
      }
    }
  }

  // The names of the entries of this type in each directory.
  std::vector<std::vector<std::string>> Entries(const std::vector<SafePath>& paths,
                                                FileType type) const {
    constexpr size_t kAtOnce = 256;
    std::vector<std::vector<std::string>> names;
    names.reserve(paths.size());
    for (size_t first = 0; first < paths.size(); first += kAtOnce) {
      Batch batch{parts_.paths.GetPodsDir(), {}};
      const size_t end = std::min(paths.size(), first + kAtOnce);
      for (size_t i = first; i < end; ++i) batch.items.push_back({ListDirectory{paths[i]}});
      const Result<BatchAnswer> answer = parts_.kernel.Call(batch, Call());
      for (size_t i = first; i < end; ++i) {
        // A directory that cannot be read must not hide the others.
        names.push_back(NamesIn(answer.ok() ? Listed(answer->items[i - first].result)
                                            : parts_.kernel.Call(ListDirectory{paths[i]}, Call()),
                                type));
      }
    }
    return names;
  }

  CallOptions Call() const {
    CallOptions call;
    call.deadline = Deadline::After(parts_.clock, timeout_);
    return call;
  }

  static Result<DirectoryListing> Listed(const Result<AnyAnswer>& answer) {
    if (!answer.ok()) return answer.error();
    return std::get<DirectoryListing>(*answer);
  }

  std::vector<std::string> NamesIn(const Result<DirectoryListing>& listing, FileType type) const {
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

// Pods in which something is mounted over one of the agent's own directories. Such a mount is not a
// volume, and may never answer.
std::map<PodUid, CoveredPod> FindCovered(const MountListing& listing, const KubeletPaths& paths) {
  const std::string pods = paths.GetPodsDir().Display() + "/";
  std::map<PodUid, CoveredPod> covered;
  for (const MountEntry& mount : listing.mounts) {
    const std::optional<std::string_view> rest = StripPrefix(mount.mount_point, pods);
    if (!rest) continue;
    const std::vector<std::string> names = Split(*rest, '/');
    const PodUid pod(names[0]);
    if (names.size() > 1) {
      // <pod>/volumes/<plugin> is the agent's directory, and what lies in it are volumes.
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

std::set<std::string> PluginsHandingOut(const VolumePluginMgr& plugins,
                                        const std::vector<PodVolumeRecord>& volumes) {
  std::set<std::string> names;
  for (const PodVolumeRecord& record : volumes) names.insert(record.plugin_name);
  std::erase_if(names, [&plugins](const std::string& name) {
    const Result<VolumePlugin*> plugin = plugins.FindPluginForTeardown(name);
    return !plugin.ok() || !(*plugin)->HandsOutWhatIsThere();
  });
  return names;
}

// REQUIRES: `mounted` and `covered` are in `found`.
void FindSubPaths(const MountListing& listing, const KubeletPaths& paths,
                  const DirectoryFinder& finder, FoundAtStart& found) {
  const std::set<PodVolumeKey> alone = FindSubPathsAlone(listing, paths, found);
  std::set<PodUid> pods;
  for (const PodVolumeKey& key : alone) {
    if (!found.covered.contains(key.pod)) pods.insert(key.pod);
  }
  std::vector<KubeletPaths::PodVolume> directories;
  finder.AddVolumesOf({pods.begin(), pods.end()}, directories);
  found.sub_paths_alone = WithPlugins(alone, directories);
}

// Asks the plugins about volumes that no record knows. Of pods that are not this agent's only what
// is mounted counts, for that keeps its volume from others.
void ConstructVolumes(const FindParts& parts, const FindOptions& options, FoundAtStart& found) {
  std::set<PodVolumeKey> asked;
  for (const PodVolumeRecord& record : found.volumes) asked.insert(record.key);
  std::set<PodUid> ours;
  for (const PodRecord& pod : found.pods) ours.insert(pod.uid);
  for (const PodVolumeRecord& record : found.volumes) ours.insert(record.key.pod);
  for (const auto* volumes : {&found.mounted, &found.sub_paths_alone, &found.directories}) {
    for (const KubeletPaths::PodVolume& volume : *volumes) {
      const PodVolumeKey key{volume.pod, volume.spec};
      const bool is_ours = options.all_directories || ours.contains(volume.pod);
      if (!is_ours && volumes == &found.directories) continue;
      if (!asked.insert(key).second) continue;
      if (!is_ours && found.covered.contains(volume.pod)) {
        found.unnamed.insert(key);
        continue;
      }
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
        found.unnamed.insert(key);
      } else if (*constructed) {
        found.constructed.emplace(key, **std::move(constructed));
      }
    }
  }
}

}  // namespace

Status LookAtNode(const FindParts& parts, const FindOptions& options, FoundAtStart& found) {
  found.handing_out = PluginsHandingOut(parts.plugins, found.volumes);
  CallOptions call;
  call.deadline = Deadline::After(parts.clock, options.call_timeout);
  ASSIGN_OR_RETURN(const MountListing mounts,
                   parts.kernel.Call(ListMounts{parts.paths.root()}, call));
  found.mounted = MountedVolumes(mounts, parts.paths);
  FindMountedDevices(mounts, parts.paths, found);
  AskPluginsForDevices(parts, options, found);
  for (const MountEntry& mount : mounts.mounts) {
    const auto [at, is_first] = found.mounts_at.emplace(mount.mount_point, mount.fs_type);
    if (!is_first) at->second = FoundAtStart::kSeveralMounts;
  }

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
  std::vector<PodUid> uncovered;
  std::copy_if(pods.begin(), pods.end(), std::back_inserter(uncovered),
               [&](const PodUid& pod) { return !found.covered.contains(pod); });
  finder.AddVolumesOf(uncovered, found.directories);
  FindSubPaths(mounts, parts.paths, finder, found);
  if (options.all_directories) {
    found.adopted = FindAdoptedPods({parts.kernel, parts.clock, parts.paths, parts.log,
                                     options.pod_logs_directory, options.call_timeout},
                                    found.directories, found.mounted);
  }
  ConstructVolumes(parts, options, found);
  return OkStatus();
}

namespace {

void RestorePod(const PodRecord& record, const ObjectPtr& object, ActualStateOfWorld& actual) {
  ActualPod& pod = actual.AddPod(record.uid, {record.ns, record.name, record.source, record.file});
  pod.record_durable = true;
  pod.recorded_json = record.pod_json;
  if (record.known_since_unix_ms != 0) pod.created_unix_ms = record.known_since_unix_ms;
  if (object != nullptr) pod.object = PodPtr(object, std::get_if<Pod>(object.get()));
  if (!record.terminating && record.terminating_since_unix_ms == 0) return;
  // Without a command the sources have to say again that the pod leaves; only the grace period goes
  // on.
  pod.leaving = Leaving{record.terminating ? "deleted by command" : "it was leaving",
                        record.terminating_since_unix_ms,
                        record.deletion_grace_seconds,
                        record.terminating,
                        false,
                        record.left_source};
  pod.leaving->evicted = !record.reason.empty();
  if (pod.leaving->evicted) pod.leaving->reason = record.reason;
}

void AddUnrecorded(const FoundAtStart& found, const KubeletPaths::PodVolume& volume,
                   ActualStateOfWorld& actual, TakeOver& take_over) {
  if (!AddWithoutRecord(volume, found.constructed, actual)) return;
  take_over.without_record.insert({volume.pod, volume.spec});
  ++take_over.volumes;
}

// What was found in the place of a volume that is set up by its record; nullopt if some of it is
// missing, or if there is more than the record says.
std::optional<std::string> FoundAs(const FoundAtStart& found,
                                   const std::set<std::pair<PodVolumeKey, std::string>>& there,
                                   const PodVolumeRecord& record, const KubeletPaths& paths) {
  if (!found.handing_out.contains(record.plugin_name) &&
      !there.contains({record.key, record.plugin_name})) {
    return std::nullopt;
  }
  const auto& [pod, spec] = record.key;
  for (const PodVolumeRecord::SubPath& sub_path : record.sub_paths) {
    const SafePath target =
        paths.GetPodVolumeSubpathDir(pod, spec, sub_path.container, sub_path.index);
    const auto mount = found.mounts_at.find(target.Display());
    if (mount == found.mounts_at.end() || mount->second == FoundAtStart::kSeveralMounts) {
      return std::nullopt;
    }
  }
  const std::string place = paths.GetPodVolumeDir(pod, record.plugin_name, spec).Display();
  const auto mount = found.mounts_at.find(place);
  return mount == found.mounts_at.end() ? "" : mount->second;
}

void AddUnrecordedDevice(const UniqueVolumeName& name, ActualDevice device,
                         ActualStateOfWorld& actual) {
  if (actual.devices().Find(name) != nullptr) return;
  device.unrecorded = true;
  actual.devices().AddReconstructed(name, std::move(device));
}

// Adds devices by their records, and those that only the mount table shows.
void RestoreDevices(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                    const KubeletPaths& paths, ActualStateOfWorld& actual,
                    ReconstructResult& result) {
  std::set<std::string> known;
  for (const DeviceRecord& record : found.devices) {
    const DeviceRecord now = AfterRestart(record, boot_id);
    result.devices.push_back(now);
    known.insert(now.device_mount_path);
    // The row may only be kept for the format of which it tells.
    if (IsGone(now)) continue;
    ActualDevice device;
    device.plugin_name = now.plugin_name;
    device.spec = now.spec;
    device.device_mount_path = now.device_mount_path;
    device.is_block = now.is_block;
    device.lacks_pin = now.is_block && now.mapped && now.mapped->boot_id == boot_id;
    device.state = now.state;
    device.uncertain = now.uncertain;
    device.attachable = now.attachable;
    device.rest_of_mount = now.rest_of_mount;
    device.attach_in_doubt = now.attach_in_doubt;
    device.device_path = now.device_path;
    device.limit_key = now.limit_key;
    device.only_pod = now.only_pod;
    actual.devices().AddReconstructed(now.key, std::move(device));
  }
  for (const KubeletPaths::DeviceMount& mount : found.device_mounts) {
    const std::string place = DevicePlaceOf(mount, paths);
    if (known.contains(place)) continue;
    if (adopt_root) {
      ActualDevice device;
      device.plugin_name = mount.plugin;
      device.spec = mount.spec.value_or(mount.volume);
      device.device_mount_path = place;
      device.is_block = mount.is_block;
      AddUnrecordedDevice(GetUniqueVolumeName(mount.plugin, mount.volume.str()), std::move(device),
                          actual);
    } else {
      result.unknown_device_mounts.push_back(mount);
    }
  }
  // After a reboot, a pod's link may be all that is left of a block volume, besides its empty
  // directories.
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

// What a pod whose directory something is mounted over has cannot be seen.
void QuarantineCovered(const FoundAtStart& found, ActualStateOfWorld& actual) {
  for (const auto& [uid, cover] : found.covered) {
    ActualPod* const pod = actual.FindPod(uid);
    if (pod == nullptr || !pod->quarantine_reason.empty()) continue;
    pod->covered_by = cover.mount_point;
    pod->quarantine_reason = cover.fs_type + " is mounted over its directory " + cover.mount_point;
  }
}

}  // namespace

ReconstructResult Reconstruct(const FoundAtStart& found, const BootId& boot_id, bool adopt_root,
                              const KubeletPaths& paths, ActualStateOfWorld& actual) {
  ReconstructResult result;
  for (const PodRecord& record : found.pods) {
    RestorePod(record, found.ObjectOf(record.uid), actual);
  }
  std::set<std::pair<PodVolumeKey, std::string>> there;
  for (const KubeletPaths::PodVolume& volume : found.directories) {
    if (!volume.is_block) there.insert({{volume.pod, volume.spec}, volume.plugin});
  }
  for (const PodVolumeRecord& record : found.volumes) {
    result.volumes.push_back(AfterRestart(record, boot_id));
    // The row may be left from a teardown that could not remove it; the removal of its pod will.
    if (record.state == VolumeState::kNotSetUp && !record.uncertain) continue;
    actual.AddPod(record.key.pod, {record.pod_namespace, record.pod_name, "", ""});
    ActualVolume& volume = actual.AddReconstructed(record.key, record.plugin_name, record.state,
                                                   record.boot_id == boot_id, record.is_block);
    actual.SetUniqueName(record.key, record.unique_name);
    volume.has_device = record.has_device;
    if (IsDriverDomain(record.fault_domain)) volume.driver_domain = record.fault_domain;
    volume.found_as = FoundAs(found, there, record, paths);
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
  for (const KubeletPaths::PodVolume& volume : found.sub_paths_alone) {
    if (actual.FindPod(volume.pod) == nullptr) result.unknown_mounts.push_back(volume);
  }
  RestoreDevices(found, boot_id, adopt_root, paths, actual, result);
  result.quarantined_pods = QuarantineByRows(found, boot_id, paths, actual).size();
  for (const QuarantinedRecord& row : found.quarantined) {
    if (row.kind == kPodVolumeRecordKind) ++result.take_over.unreadable;
  }
  result.may_be_held = PodsThatMayBeHeld(found, boot_id);
  QuarantineCovered(found, actual);
  for (KubeletPaths::PodVolume& volume : FindLostBlockVolumes(found)) {
    if (actual.FindPod(volume.pod) == nullptr) result.unknown_mounts.push_back(std::move(volume));
  }
  result.unrecorded = FindUnrecordedMounts(found, paths);
  return result;
}

}  // namespace volumed
