#include "volumemanager/views/pod_views.h"

#include <algorithm>
#include <set>
#include <utility>

#include "operation/device_facts.h"
#include "operation/expand_operations.h"
#include "operation/expand_storage_operations.h"
#include "volumemanager/adopted_pods.h"

namespace volumed {
namespace {

const UniqueVolumeName& SharedName(const WantedVolume* wanted, const ActualVolume* actual) {
  static const UniqueVolumeName kNone;
  if (wanted != nullptr && !wanted->unique_name.empty()) return wanted->unique_name;
  return actual == nullptr ? kNone : actual->unique_name;
}

VolumeUsageView UsageOf(const Metrics& metrics) {
  return {metrics.used_bytes, metrics.capacity_bytes, metrics.available_bytes, metrics.inodes_used,
          metrics.inodes,     metrics.inodes_free,    metrics.time_unix_ms};
}

}  // namespace

bool IsSetUpFully(const WantedVolume& wanted, const ActualVolume* actual) {
  // If a mount of a container could not be expanded, that mount is missing although its volume is
  // set up.
  return actual != nullptr && IsSetUp(*actual) && wanted.problems.empty() &&
         IsSameKind(*actual, wanted);
}

std::string PhaseOf(const ActualPod& pod, const WantedPod* wanted) {
  if (!pod.quarantine_reason.empty()) return "Refused";
  if (wanted == nullptr && pod.leaving) return "Terminating";
  if (wanted == nullptr) return pod.identity.source == kAdoptedRootSource ? "Held" : "Pending";
  for (const auto& [spec, volume] : wanted->volumes) {
    const auto actual = pod.volumes.find(spec);
    if (!IsSetUpFully(volume, actual == pod.volumes.end() ? nullptr : &actual->second)) {
      return "Pending";
    }
  }
  return wanted->problems.empty() ? "Ready" : "Pending";
}

int64_t PodViews::ToWall(TimePoint when) const {
  return parts_.clock.WallUnixMillis() +
         std::chrono::duration_cast<std::chrono::milliseconds>(when - parts_.clock.Now()).count();
}

PodView PodViews::Build(const PodUid& uid) const {
  const ActualPod& pod = *parts_.actual.FindPod(uid);
  const WantedPod* wanted = parts_.desired.Find(uid);
  PodView view;
  view.uid = uid;
  view.ns = pod.identity.name_space;
  view.name = pod.identity.name;
  view.source = pod.identity.source;
  view.phase = PhaseOf(pod, wanted);
  view.since_unix_ms = pod.leaving ? pod.leaving->since_unix_ms : pod.since_unix_ms;
  view.created_unix_ms = pod.created_unix_ms;
  view.held_by = parts_.consumers.HeldBy(uid);
  std::set<SpecName> specs;
  for (const auto& [spec, volume] : pod.volumes) specs.insert(spec);
  if (wanted != nullptr) {
    for (const auto& [spec, volume] : wanted->volumes) specs.insert(spec);
  }
  for (const SpecName& spec : specs) {
    const auto actual = pod.volumes.find(spec);
    view.volumes.push_back(BuildVolume({uid, spec}, pod, parts_.desired.Find({uid, spec}),
                                       actual == pod.volumes.end() ? nullptr : &actual->second));
    if (view.phase == "Ready") {
      view.since_unix_ms = std::max(view.since_unix_ms, view.volumes.back().since_unix_ms);
    }
  }
  AddPodProblems(uid, pod, wanted, view);
  return view;
}

PodView PodViews::BuildRefused(const Pod& pod, const std::string& phase,
                               ProblemView problem) const {
  PodView view;
  view.uid = pod.uid();
  view.ns = pod.metadata.name_space;
  view.name = pod.metadata.name;
  view.phase = phase;
  const ObjectKey key{ObjectKind::kPod, view.ns, view.name};
  if (const auto origin = parts_.catalog.OriginOf(key)) view.source = origin->source;
  view.since_unix_ms = problem.since_unix_ms;
  view.problems.push_back(std::move(problem));
  AddSourceProblems(key, view);
  return view;
}

// ---- volumes ------------------------------------------------------------------------------------

VolumeView PodViews::BuildVolume(const PodVolumeKey& key, const ActualPod& pod,
                                 const WantedVolume* wanted, const ActualVolume* actual) const {
  VolumeView view;
  view.pod = key.pod;
  view.pod_namespace = pod.identity.name_space;
  view.pod_name = pod.identity.name;
  view.spec = key.spec;
  view.wanted = wanted != nullptr;
  view.state = VolumeStateName(VolumeState::kNotSetUp);
  view.since_unix_ms = pod.since_unix_ms;
  if (wanted != nullptr) {
    view.plugin_name = wanted->plugin_name;
    view.is_block = wanted->is_block;
  }
  if (actual != nullptr) {
    view.plugin_name = actual->plugin_name;
    view.is_block = actual->is_block;
    view.state = VolumeStateName(actual->state);
    view.uncertain = actual->uncertain;
    view.since_unix_ms = actual->since_unix_ms;
    if (actual->mounted) {
      view.host_path = actual->mounted->host_path;
      view.read_only = actual->mounted->attributes.read_only;
      view.sub_paths = actual->mounted->sub_paths;
      if (actual->mounted->mapped) {
        view.device_path = actual->mounted->mapped->device_path;
        view.device_node_path = actual->mounted->mapped->node_path;
      }
    }
  }
  view.stuck = (parts_.is_stuck && parts_.is_stuck(key.ToString())) ||
               parts_.health.FindSilent(key) != nullptr ||
               (wanted != nullptr && IsServerSilent(*wanted, actual));
  AddShared(wanted, actual, view);
  const std::optional<RunningOperation> running =
      RunningFor(key, wanted, SharedName(wanted, actual), !view.device_state.empty());
  if (running) {
    view.running_step = running->step;
    view.progress = running->progress;
    view.awaited = running->awaited.whom;
    view.awaited_since_unix_ms = running->awaited.since_unix_ms;
  }
  view.problem = VolumeProblem(key, pod, wanted, actual);
  if (const VolumeStatsEntry* stats = parts_.stats.Find(key); stats != nullptr && stats->measured) {
    view.usage = UsageOf(stats->metrics);
  }
  return view;
}

std::optional<RunningOperation> PodViews::RunningFor(const PodVolumeKey& key,
                                                     const WantedVolume* wanted,
                                                     const UniqueVolumeName& shared,
                                                     bool has_device) const {
  std::vector<OperationKey> keys{key};
  if (has_device) keys.emplace_back(shared);
  if (!shared.empty()) {
    keys.push_back(ExpandKey(shared));
    keys.push_back(ExpandStorageKey(shared));
  }
  if (wanted != nullptr) {
    for (const WantedProblem& problem : wanted->problems) {
      if (problem.operation) keys.push_back(*problem.operation);
    }
  }
  for (const OperationKey& one : keys) {
    std::optional<RunningOperation> running = parts_.operations.FindRunning(one);
    if (running) return running;
  }
  return std::nullopt;
}

// Adds what the volume has because it is a persistent one.
void PodViews::AddShared(const WantedVolume* wanted, const ActualVolume* actual,
                         VolumeView& view) const {
  if (wanted != nullptr) {
    view.pod_volumes = wanted->pod_volumes;
    if (wanted->claim) view.claim = wanted->claim->name_space + "/" + wanted->claim->name;
  }
  const UniqueVolumeName name = SharedName(wanted, actual);
  if (name.empty()) return;
  view.persistent_volume = view.spec.str();
  const bool has_device =
      wanted != nullptr ? wanted->has_device : actual != nullptr && actual->has_device;
  if (!has_device) return;
  const ActualDevice* device = parts_.actual.devices().Find(name);
  // Nobody knows yet how such a device comes.
  if (device == nullptr && wanted != nullptr && !wanted->mountable()) return;
  const bool attachable = wanted != nullptr && wanted->attachable;
  view.device_state = VolumeStateName(device == nullptr ? RestingState(attachable) : device->state);
  view.needs_no_attach = device == nullptr ? !attachable : !device->attachable;
  if (device != nullptr) {
    view.device_mount_path = device->device_mount_path;
    if (actual != nullptr && view.device_path.empty()) view.device_path = device->pinned_path;
    if (IsDevicePath(device->device_path)) view.device_path = device->device_path;
  }
  view.stuck = view.stuck || (parts_.is_stuck && parts_.is_stuck(name.str()));
}

}  // namespace volumed
