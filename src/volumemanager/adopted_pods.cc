#include "volumemanager/adopted_pods.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

// The plugins whose volumes are directories on the disk of the kubelet's root with data that cannot
// be made again. What configMaps and the like leave there is only a copy.
constexpr std::array<std::string_view, 2> kPluginsOnDisk = {"kubernetes.io/empty-dir",
                                                            "kubernetes.io/git-repo"};

Result<DirectoryListing> List(const AdoptedPodsQuestion& question, const SafePath& path) {
  CallOptions call;
  call.deadline = Deadline::After(question.clock, question.call_timeout);
  return question.kernel.Call(ListDirectory{path}, call);
}

std::vector<PodLogs> FindLogs(const AdoptedPodsQuestion& question) {
  std::vector<PodLogs> logs;
  const Result<DirectoryListing> listing = List(question, {question.logs_directory, ""});
  if (!listing.ok()) {
    question.log.Warning("the logs of a kubelet's pods cannot be read; their uids are not known",
                         {{"directory", question.logs_directory}, {"error", listing.error()}});
    return logs;
  }
  for (const DirectoryEntry& entry : listing->entries) {
    if (auto of = ParsePodLogsDirectory(entry.name)) logs.push_back(std::move(*of));
  }
  return logs;
}

bool IsOnDisk(const KubeletPaths::PodVolume& volume,
              const std::vector<KubeletPaths::PodVolume>& mounted) {
  if (volume.is_block || std::find(kPluginsOnDisk.begin(), kPluginsOnDisk.end(), volume.plugin) ==
                             kPluginsOnDisk.end()) {
    return false;
  }
  return std::none_of(mounted.begin(), mounted.end(), [&](const auto& mount) {
    return mount.pod == volume.pod && mount.plugin == volume.plugin && mount.spec == volume.spec;
  });
}

bool HasData(const AdoptedPodsQuestion& question, const KubeletPaths::PodVolume& volume) {
  const Result<DirectoryListing> listing =
      List(question, question.paths.GetPodVolumeDir(volume.pod, volume.plugin, volume.spec));
  if (!listing.ok()) return listing.error().code() != Code::kNotFound;
  return !listing->entries.empty();
}

}  // namespace

std::optional<PodLogs> ParsePodLogsDirectory(std::string_view name) {
  const std::vector<std::string> parts = Split(name, '_');
  if (parts.size() != 3) return std::nullopt;
  if (parts[0].empty() || parts[1].empty() || parts[2].empty()) return std::nullopt;
  return PodLogs{{ObjectKind::kPod, parts[0], parts[1]}, PodUid(parts[2])};
}

FoundAdoptedPods FindAdoptedPods(const AdoptedPodsQuestion& question,
                                 const std::vector<KubeletPaths::PodVolume>& directories,
                                 const std::vector<KubeletPaths::PodVolume>& mounted) {
  FoundAdoptedPods found;
  found.logs = FindLogs(question);
  for (const KubeletPaths::PodVolume& volume : directories) {
    if (!IsOnDisk(volume, mounted) || !HasData(question, volume)) continue;
    AdoptedPod& pod = found.with_data[volume.pod];
    pod.pod.kind = ObjectKind::kPod;
    pod.disk_data.push_back(volume.spec.str());
  }
  const auto add_mount = [&found](const KubeletPaths::PodVolume& volume) {
    AdoptedPod& pod = found.with_mounts[volume.pod];
    pod.pod.kind = ObjectKind::kPod;
    pod.mounted.push_back(volume.spec.str());
  };
  for (const KubeletPaths::PodVolume& volume : mounted) add_mount(volume);
  for (const KubeletPaths::PodVolume& volume : directories) {
    if (volume.is_block) add_mount(volume);
  }
  for (auto* const pods : {&found.with_data, &found.with_mounts}) {
    for (const PodLogs& logs : found.logs) {
      const auto pod = pods->find(logs.uid);
      if (pod != pods->end()) pod->second.pod = logs.pod;
    }
  }
  return found;
}

void AdoptedPods::Restore(FoundAdoptedPods found, const std::set<PodUid>& without_record) {
  std::map<ObjectKey, int> pods_of_the_name;
  for (const PodLogs& logs : found.logs) ++pods_of_the_name[logs.pod];
  for (const PodLogs& logs : found.logs) {
    if (pods_of_the_name.at(logs.pod) > 1 || !without_record.contains(logs.uid)) continue;
    uids_[logs.pod] = logs.uid.str();
  }
  const auto is_on_record = [&](const auto& pod) { return !without_record.contains(pod.first); };
  std::erase_if(found.with_data, is_on_record);
  std::erase_if(found.with_mounts, is_on_record);
  awaiting_ = std::move(found.with_data);
  with_mounts_ = std::move(found.with_mounts);
}

size_t AdoptedPods::SourcesHaveDelivered(const std::string& why_unknown) {
  std::map<PodUid, AdoptedPod> with_mounts = std::exchange(with_mounts_, {});
  if (why_unknown.empty()) return 0;
  if (!with_mounts.empty()) why_held_ = why_unknown;
  const size_t before = awaiting_.size();
  awaiting_.merge(with_mounts);
  return awaiting_.size() - before;
}

std::string AdoptedPods::TakeUid(const ObjectKey& pod) {
  auto taken = uids_.extract(pod);
  return taken.empty() ? "" : taken.mapped();
}

std::vector<PodUid> AdoptedPods::Accept() {
  std::vector<PodUid> released;
  for (const auto& [uid, pod] : std::exchange(awaiting_, {})) released.push_back(uid);
  return released;
}

}  // namespace volumed
