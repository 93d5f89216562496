#include "kube/pod_facts.h"

#include <algorithm>
#include <string_view>
#include <variant>

namespace volumed {
namespace {

// Stops when `visit` returns false.
template <typename Visit>
bool ForEachContainer(const Pod& pod, Visit visit) {
  for (const auto* list :
       {&pod.spec.init_containers, &pod.spec.containers, &pod.spec.ephemeral_containers}) {
    for (const Container& container : *list) {
      if (!visit(container)) return false;
    }
  }
  return true;
}

std::optional<int64_t> MemoryLimit(const ResourceRequirements& resources) {
  const auto found = resources.limits.find("memory");
  if (found == resources.limits.end() || found->second.Sign() <= 0) return std::nullopt;
  return found->second.Value();
}

}  // namespace

std::optional<int64_t> EffectiveFsUser(const Pod& pod) {
  std::optional<int64_t> user;
  const bool same = ForEachContainer(pod, [&](const Container& container) {
    // A container's own setting wins over the pod's.
    const std::optional<int64_t> own = container.security_context.run_as_user
                                           ? container.security_context.run_as_user
                                           : pod.spec.security_context.run_as_user;
    if (!own || (user && *user != *own)) return false;
    user = own;
    return true;
  });
  return same ? user : std::nullopt;
}

std::optional<int64_t> PodMemoryLimitBytes(const Pod& pod) {
  if (const auto limit = MemoryLimit(pod.spec.resources)) return limit;
  int64_t running = 0;
  for (const Container& container : pod.spec.containers) {
    const auto limit = MemoryLimit(container.resources);
    if (!limit || __builtin_add_overflow(running, *limit, &running)) return std::nullopt;
  }
  int64_t sidecars = 0;       // those started so far
  int64_t starting_peak = 0;  // an init container beside them
  for (const Container& container : pod.spec.init_containers) {
    const auto limit = MemoryLimit(container.resources);
    if (!limit) return std::nullopt;
    int64_t now = 0;
    if (__builtin_add_overflow(sidecars, *limit, &now)) return std::nullopt;
    if (container.restart_policy == RestartPolicy::kAlways) sidecars = now;
    starting_peak = std::max(starting_peak, now);
  }
  if (__builtin_add_overflow(running, sidecars, &running)) return std::nullopt;
  const int64_t limit = std::max(running, starting_peak);
  return limit > 0 ? std::optional<int64_t>(limit) : std::nullopt;
}

std::map<std::string, VolumeUse> VolumesInUse(const Pod& pod) {
  std::map<std::string, VolumeUse> uses;
  ForEachContainer(pod, [&uses](const Container& container) {
    for (const VolumeMount& mount : container.volume_mounts) uses[mount.name].mounted = true;
    for (const VolumeDevice& device : container.volume_devices) uses[device.name].as_device = true;
    return true;
  });
  return uses;
}

std::vector<std::string> VolumesThatEndWithPod(const Pod& pod) {
  std::vector<std::string> names;
  for (const PodVolume& volume : pod.spec.volumes) {
    const auto* empty_dir = std::get_if<EmptyDirVolumeSource>(&volume.source);
    const bool on_disk = empty_dir != nullptr && empty_dir->medium.empty();
    if (on_disk || std::holds_alternative<EphemeralVolumeSource>(volume.source)) {
      names.push_back(volume.name);
    }
  }
  return names;
}

bool HaveSameVolumes(const Pod& a, const Pod& b) {
  if (a.spec.volumes == b.spec.volumes) return true;
  const auto by_name = [](const Pod& pod) {
    std::map<std::string_view, const PodVolume*> volumes;
    for (const PodVolume& volume : pod.spec.volumes) volumes.emplace(volume.name, &volume);
    return volumes;
  };
  const auto same = [](const auto& one, const auto& other) {
    return one.first == other.first && *one.second == *other.second;
  };
  return std::ranges::equal(by_name(a), by_name(b), same);
}

std::set<std::string> MountLabels(const Pod& pod, const std::string& volume) {
  std::set<std::string> labels;
  ForEachContainer(pod, [&](const Container& container) {
    const auto has_it = [&volume](const VolumeMount& mount) { return mount.name == volume; };
    const std::vector<VolumeMount>& mounts = container.volume_mounts;
    if (std::none_of(mounts.begin(), mounts.end(), has_it)) return true;
    const std::optional<SeLinuxOptions>& own = container.security_context.se_linux_options;
    const std::optional<SeLinuxOptions>& set =
        own ? own : pod.spec.security_context.se_linux_options;
    if (!set || *set == SeLinuxOptions()) return true;
    labels.insert((set->user.empty() ? "system_u" : set->user) +
                  ":object_r:container_file_t:" + (set->level.empty() ? "s0" : set->level));
    return true;
  });
  return labels;
}

}  // namespace volumed
