#include "volumemanager/node_events.h"

#include <algorithm>
#include <utility>

#include "operation/attach_operations.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/claims/storage_expander.h"
#include "volumemanager/claims/volume_expander.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/device_reconciler.h"
#include "volumemanager/lost_mounts.h"
#include "volumemanager/pod_lifecycle.h"
#include "volumemanager/pod_observers.h"
#include "volumemanager/readiness.h"
#include "volumemanager/reconciler.h"
#include "volumemanager/watch/volume_stats.h"

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

// Whether a volume of the pod was refused because of its node affinity.
bool IsForOtherNodes(const WantedPod& pod) {
  return std::any_of(pod.volumes.begin(), pod.volumes.end(), [](const auto& volume) {
    const std::vector<WantedProblem>& problems = volume.second.problems;
    return std::any_of(problems.begin(), problems.end(), [](const WantedProblem& problem) {
      return problem.step == kCheckNodeAffinityStep;
    });
  });
}

}  // namespace

void NodeEvents::ObjectChanged(const ObjectKey& key) {
  for (const PodUid& uid : parts_.desired.ObjectChanged(key)) {
    for (const auto& [spec, volume] : parts_.desired.Find(uid)->volumes) {
      if (!volume.objects.contains(key)) continue;
      parts_.reconciler.ResetBackoff(PodVolumeKey{uid, spec});
      if (volume.has_device) parts_.operations.ResetBackoff(OperationKey(volume.unique_name));
      parts_.expander.Retry(volume.unique_name);
    }
    parts_.reconciler.MarkDirty(uid);
  }
}

std::set<PodUid> NodeEvents::PodsOfPlugin(const std::string& plugin_name) const {
  std::set<PodUid> pods;
  for (const auto& [uid, pod] : parts_.desired.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      const bool waits = volume.spec.KubeletExpandablePluginName() == plugin_name;
      if (waits || volume.plugin_name == plugin_name) pods.insert(uid);
    }
  }
  for (const auto& [uid, pod] : parts_.actual.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (volume.plugin_name == plugin_name) pods.insert(uid);
    }
  }
  return pods;
}

void NodeEvents::PluginChanged(const std::string& plugin_name) {
  if (!parts_.readiness.loaded()) return;  // nothing has been looked up yet
  const bool is_there = parts_.plugins.FindPluginByName(plugin_name).ok();
  for (const PodUid& uid : PodsOfPlugin(plugin_name)) {
    const WantedPod* wanted = parts_.desired.Find(uid);
    // What was built with a plugin that is gone stays as it is: its pods keep what they have.
    if (wanted != nullptr && (is_there || !HasVolumeOf(*wanted, plugin_name))) {
      parts_.desired.SetPod(PodPtr(wanted->pod));
    }
    parts_.reconciler.ResetBackoff(uid);
    if (wanted = parts_.desired.Find(uid); wanted != nullptr) {
      for (const auto& [spec, volume] : wanted->volumes) parts_.expander.Retry(volume.unique_name);
    }
    parts_.reconciler.MarkDirty(uid);
  }
  parts_.operations.ResetBackoff(VerifyAttachedKey(plugin_name));
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    if (device.plugin_name != plugin_name) continue;
    parts_.operations.ResetBackoff(OperationKey(name));
    parts_.devices.MarkDirty(name);
  }
}

std::set<PodUid> NodeEvents::PodsWanting(const std::string& fault_domain) const {
  std::set<PodUid> pods;
  for (const auto& [uid, pod] : parts_.desired.pods()) {
    const bool wants = std::any_of(pod.volumes.begin(), pod.volumes.end(), [&](const auto& volume) {
      return volume.second.driver_domain == fault_domain;
    });
    if (wants) pods.insert(uid);
  }
  return pods;
}

void NodeEvents::DriverChanged(const std::string& plugin_name, const std::string& fault_domain) {
  if (!parts_.readiness.loaded()) return;  // nothing has been looked up yet
  for (const PodUid& uid : PodsWanting(fault_domain)) {
    parts_.desired.SetPod(PodPtr(parts_.desired.Find(uid)->pod));
  }
  parts_.stats.AskAgain(fault_domain);
  DriverIsBack(plugin_name, fault_domain);
}

void NodeEvents::DriverIsBack(const std::string& plugin_name, const std::string& fault_domain) {
  if (!parts_.readiness.loaded()) return;  // nothing has been tried yet
  for (const PodUid& uid : PodsWanting(fault_domain)) {
    RetryVolumes(uid, [&](const WantedVolume& its) { return its.driver_domain == fault_domain; });
  }
  RetryActualOf(plugin_name, fault_domain);
  parts_.operations.ResetBackoff(VerifyAttachedKey(plugin_name));
  parts_.provisioning.ResetBackoff();
  parts_.storage_expander.RetryDomain(fault_domain);
  parts_.claims.RetryReclaims();
}

void NodeEvents::MakersChanged() {
  if (!parts_.readiness.loaded()) return;  // nothing is decided yet
  parts_.claims.MarkDirty();
}

void NodeEvents::MakersAreBack() {
  if (!parts_.readiness.loaded()) return;  // nothing has been tried yet
  parts_.provisioning.ResetBackoff();
  parts_.claims.RetryReclaims();
  parts_.claims.MarkDirty();
}

void NodeEvents::RetryActualOf(const std::string& plugin_name, const std::string& fault_domain) {
  for (const auto& [uid, pod] : parts_.actual.pods()) {
    bool is_concerned = false;
    for (const auto& [spec, volume] : pod.volumes) {
      const PodVolumeKey key{uid, spec};
      if (volume.plugin_name != plugin_name ||
          parts_.operations.FaultDomainOf(OperationKey(key)) != fault_domain) {
        continue;
      }
      parts_.reconciler.ResetBackoff(key);
      is_concerned = true;
    }
    if (is_concerned) parts_.reconciler.MarkDirty(uid);
  }
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    const OperationKey key(name);
    if (device.plugin_name != plugin_name || parts_.operations.FaultDomainOf(key) != fault_domain) {
      continue;
    }
    parts_.operations.ResetBackoff(key);
    parts_.devices.MarkDirty(name);
  }
}

void NodeEvents::DeviceAppeared(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    vanished_devices_.erase(path);
    for (const PodUid& uid : parts_.desired.PodsWithDevicePath(path)) {
      RetryVolumes(uid, [&](const WantedVolume& its) { return Contains(its.device_paths, path); });
    }
  }
  for (const UniqueVolumeName& name : DevicesAt(paths)) {
    for (const PodUid& uid : parts_.desired.UsersOf(name)) {
      RetryVolumes(uid, [&](const WantedVolume& its) { return its.unique_name == name; });
    }
  }
}

void NodeEvents::RetryVolumes(const PodUid& uid,
                              const std::function<bool(const WantedVolume&)>& concerns) {
  for (const auto& [spec, volume] : parts_.desired.Find(uid)->volumes) {
    if (!concerns(volume)) continue;
    parts_.reconciler.ResetBackoff(PodVolumeKey{uid, spec});
    parts_.expander.Retry(volume.unique_name);  // it may be possible to make it larger now
    parts_.reconciler.RetryDevice(volume);
  }
  parts_.reconciler.MarkDirty(uid);
  parts_.observers.Tell(uid);
}

std::vector<UniqueVolumeName> NodeEvents::DevicesAt(const std::vector<std::string>& paths) const {
  std::vector<UniqueVolumeName> devices;
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    if (!device.device_path.empty() && Contains(paths, device.device_path)) devices.push_back(name);
  }
  return devices;
}

void NodeEvents::DeviceVanished(const std::vector<std::string>& paths) {
  const int64_t now = parts_.scheduler.clock().WallUnixMillis();
  std::set<PodUid> pods;
  for (const std::string& path : paths) {
    const std::set<PodUid>& users = parts_.desired.PodsWithDevicePath(path);
    if (!users.empty()) vanished_devices_.emplace(path, now);
    pods.insert(users.begin(), users.end());
  }
  for (const UniqueVolumeName& name : DevicesAt(paths)) {
    vanished_devices_.emplace(parts_.actual.devices().Find(name)->device_path, now);
    const std::set<PodUid>& users = parts_.desired.UsersOf(name);
    pods.insert(users.begin(), users.end());
  }
  TellVanished(pods);
}

void NodeEvents::StorageTroubled(const std::string& path, const StorageTrouble& trouble) {
  storage_troubles_.insert_or_assign(path, trouble);
  TellVanished(parts_.desired.PodsWithDevicePath(path));
}

void NodeEvents::StorageMended(const std::string& path) {
  if (storage_troubles_.erase(path) == 0) return;
  for (const PodUid& uid : parts_.desired.PodsWithDevicePath(path)) parts_.observers.Tell(uid);
}

void NodeEvents::TellVanished(const std::set<PodUid>& pods) {
  for (const PodUid& uid : pods) {
    for (const auto& [spec, volume] : parts_.desired.Find(uid)->volumes) {
      if (const auto gone = vanished_text_({uid, spec}, volume)) {
        parts_.host.events.RecordPodEvent(uid, EventType::kWarning, kVolumeConditionAbnormal,
                                          "volume \"" + spec.str() + "\": " + *gone);
      }
    }
    parts_.observers.Tell(uid);
  }
}

void NodeEvents::VolumeAbnormal(const PodVolumeKey& volume, const std::string& message) {
  parts_.host.events.RecordPodEvent(volume.pod, EventType::kWarning, kVolumeConditionAbnormal,
                                    "Volume " + volume.spec.str() + ": " + message);
}

void NodeEvents::MountsGone(const std::vector<std::string>& mount_points) {
  parts_.lost_mounts.MountsGone(mount_points);
  const std::string pods = parts_.host.paths.root() + "/pods/";
  std::set<PodUid> concerned;
  for (const std::string& mount_point : mount_points) {
    if (!mount_point.starts_with(pods)) continue;
    concerned.emplace(
        mount_point.substr(pods.size(), mount_point.find('/', pods.size()) - pods.size()));
  }
  for (const PodUid& uid : concerned) {
    parts_.reconciler.MountWent(uid);
    Uncover(uid, mount_points);
  }
  if (!parts_.readiness.loaded())
    gone_while_loading_.insert(mount_points.begin(), mount_points.end());
}

void NodeEvents::MountsChangedElsewhere(const std::vector<std::string>& mount_points) {
  for (const std::string& mount_point : mount_points) {
    for (const PodUid& uid : parts_.desired.PodsWithDevicePathBelow(mount_point)) {
      for (const auto& [spec, volume] : parts_.desired.Find(uid)->volumes) {
        if (volume.device_paths.empty()) continue;
        parts_.reconciler.SourceMayHaveChanged({uid, spec});
        parts_.reconciler.RetryDevice(volume);
      }
    }
  }
}

void NodeEvents::Uncover(const PodUid& uid, const std::vector<std::string>& mount_points) {
  ActualPod* const pod = parts_.actual.FindPod(uid);
  if (pod == nullptr || pod->covered_by.empty() ||
      std::find(mount_points.begin(), mount_points.end(), pod->covered_by) == mount_points.end()) {
    return;
  }
  parts_.log.Info("the mount over a pod's directory is gone",
                  {{"pod_uid", uid}, {"mount_point", pod->covered_by}});
  pod->covered_by.clear();
  pod->quarantine_reason.clear();
  parts_.lifecycle.Evaluate(uid);
}

bool NodeEvents::RetryStorage(const std::string& name) {
  if (!parts_.readiness.loaded()) return false;  // nothing has been tried yet
  bool is_there = parts_.provisioning.Has(name) || parts_.claims.FindVolume(name) != nullptr;
  parts_.claims.ResetBackoff(name);
  parts_.provisioning.ResetBackoff();
  for (const auto& [uid, pod] : parts_.desired.pods()) {
    for (const auto& [spec, volume] : pod.volumes) {
      if (!volume.has_device) continue;
      if (volume.unique_name.str() != name && volume.spec.name().str() != name) continue;
      is_there = true;
      parts_.reconciler.ResetBackoff(PodVolumeKey{uid, spec});
      parts_.reconciler.RetryDevice(volume);
      parts_.reconciler.MarkDirty(uid);
    }
  }
  return is_there;
}

void NodeEvents::NodeLabelsChanged() {
  if (!parts_.readiness.loaded()) return;  // nothing has been looked up yet
  std::vector<PodPtr> refused;
  for (const auto& [uid, pod] : parts_.desired.pods()) {
    if (IsForOtherNodes(pod)) refused.push_back(pod.pod);
  }
  for (const PodPtr& pod : refused) {
    const PodUid uid = pod->uid();
    parts_.desired.SetPod(pod);
    parts_.reconciler.ResetBackoff(uid);
    parts_.reconciler.MarkDirty(uid);
    parts_.observers.Tell(uid);
  }
  parts_.provisioning.ResetBackoff();
  parts_.claims.MarkDirty();
}

void NodeEvents::WallClockWasSet() {
  for (const auto& [uid, pod] : parts_.actual.pods()) {
    parts_.reconciler.MarkDirty(uid, /*with_many=*/true);
  }
}

void NodeEvents::AttachLimitsChanged() { parts_.devices.AttachLimitsChanged(); }

void NodeEvents::UncoverGoneWhileLoading(const std::set<PodUid>& covered) {
  const std::set<std::string> gone = std::exchange(gone_while_loading_, {});
  for (const PodUid& uid : covered) Uncover(uid, {gone.begin(), gone.end()});
}

}  // namespace volumed
