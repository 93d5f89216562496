#include "volumemanager/desired_state_of_world.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "kube/pod_facts.h"
#include "kube/refused_sources.h"
#include "volumemanager/sub_path_requests.h"

namespace volumed {
namespace {

// kubelet looks at init and ephemeral containers too. Source: podutil.VisitContainers.
void ForEachContainer(const Pod& pod, const std::function<void(const Container&)>& visit) {
  for (const Container& container : pod.spec.init_containers) visit(container);
  for (const Container& container : pod.spec.containers) visit(container);
  for (const Container& container : pod.spec.ephemeral_containers) visit(container);
}

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

struct DownwardUse {
  bool any = false;        // of the pod's own fields
  bool resources = false;  // limits, whose default is the node's
};

void AddUse(const std::vector<DownwardApiVolumeFile>& items, DownwardUse& use) {
  for (const DownwardApiVolumeFile& item : items) {
    use.any = true;
    use.resources = use.resources || item.resource_field_ref.has_value();
  }
}

DownwardUse DownwardUseOf(const VolumeSource& source) {
  DownwardUse use;
  if (const auto* downward = std::get_if<DownwardApiVolumeSource>(&source)) {
    AddUse(downward->items, use);
  } else if (const auto* projected = std::get_if<ProjectedVolumeSource>(&source)) {
    for (const VolumeProjection& projection : projected->sources) {
      if (const auto* part = std::get_if<DownwardApiProjection>(&projection)) {
        AddUse(part->items, use);
      }
    }
  }
  return use;
}

// What of the pod itself, beside the volume, decides how the volume is made.
bool SameOwnership(const Pod& a, const Pod& b) {
  const auto users = [](const Pod& pod) {
    std::vector<std::optional<int64_t>> all;
    ForEachContainer(pod, [&](const Container& container) {
      all.push_back(container.security_context.run_as_user);
    });
    return all;
  };
  return a.spec.security_context == b.spec.security_context && users(a) == users(b);
}

bool SameInputs(const WantedVolume& a, const WantedVolume& b) {
  return a.plugin_name == b.plugin_name && *a.spec.volume() == *b.spec.volume() &&
         a.sub_paths == b.sub_paths && a.nested_mount_points == b.nested_mount_points;
}

Error FilesystemVolumeAsDevice(const std::string& volume) {
  return Error::NotApplied(
      Code::kInvalidArgument,
      "volume " + volume + " has volumeMode Filesystem, but is specified in volumeDevices");
}

}  // namespace

std::set<ObjectKey> ObjectsOfVolume(const std::string& name_space, const VolumeSource& source) {
  std::set<ObjectKey> objects;
  const auto secret = [&](const std::string& name) {
    objects.insert({ObjectKind::kSecret, name_space, name});
  };
  const auto config_map = [&](const std::string& name) {
    objects.insert({ObjectKind::kConfigMap, name_space, name});
  };
  const auto secret_ref = [&](const std::optional<LocalObjectReference>& reference) {
    if (reference) secret(reference->name);
  };
  const Overloaded projection{
      [&](const SecretProjection& part) { secret(part.name); },
      [&](const ConfigMapProjection& part) { config_map(part.name); },
      [](const auto&) {},
  };
  std::visit(Overloaded{
                 [&](const SecretVolumeSource& of) { secret(of.secret_name); },
                 [&](const ConfigMapVolumeSource& of) { config_map(of.name); },
                 [&](const ProjectedVolumeSource& of) {
                   for (const VolumeProjection& part : of.sources) std::visit(projection, part);
                 },
                 [&](const CsiVolumeSource& of) { secret_ref(of.node_publish_secret_ref); },
                 [&](const IscsiVolumeSource& of) { secret_ref(of.secret_ref); },
                 [&](const FlexVolumeSource& of) { secret_ref(of.secret_ref); },
                 [](const auto&) {},
             },
             source);
  return objects;
}

std::vector<std::string> NestedMountPoints(const Pod& pod, const std::string& volume_name) {
  std::set<std::string> nested;
  ForEachContainer(pod, [&](const Container& container) {
    std::vector<std::string> all;
    for (const VolumeMount& mount : container.volume_mounts) all.push_back(mount.mount_path);
    std::sort(all.begin(), all.end());
    for (const VolumeMount& mount : container.volume_mounts) {
      const bool of_volume_root = mount.sub_path.empty() && mount.sub_path_expr.empty();
      if (mount.name != volume_name || !of_volume_root) continue;
      const std::string below = mount.mount_path + "/";
      std::string last;  // a mount below one that was found is that one's matter
      for (const std::string& path : all) {
        if (!path.starts_with(below) || (!last.empty() && path.starts_with(last + "/"))) continue;
        last = path;
        nested.insert(path.substr(below.size()));
      }
    }
  });
  return {nested.begin(), nested.end()};
}

DesiredStateOfWorld::DesiredStateOfWorld(const ObjectCatalog& catalog,
                                         const VolumePluginMgr& plugins, const HostNode& node)
    : catalog_(catalog), plugins_(plugins), node_(node) {}

WantedVolume DesiredStateOfWorld::BuildVolume(const Pod& pod, const PodVolume& volume,
                                              const WantedVolume* before) const {
  WantedVolume wanted{VolumeSpec::FromVolume(volume), {}, {}, {}, 0, {}, {}};
  wanted.objects = ObjectsOfVolume(pod.metadata.name_space, volume.source);
  if (DownwardUseOf(volume.source).resources) {
    wanted.objects.insert({ObjectKind::kNode, "", node_.GetNodeName().str()});
  }
  wanted.nested_mount_points = NestedMountPoints(pod, volume.name);
  const std::vector<SubPathRequest> earlier =
      before == nullptr ? std::vector<SubPathRequest>{} : before->sub_paths;
  SubPathPlan plan = PlanSubPaths(pod, volume.name, earlier, catalog_, node_);
  wanted.sub_paths = std::move(plan.requests);
  wanted.problems = std::move(plan.problems);
  wanted.objects.merge(plan.objects);
  if (const std::optional<std::string> refusal = RefusalOf(volume.source)) {
    wanted.problems.push_back(
        {"FindPlugin",
         Error::NotApplied(Code::kUnimplemented, "no volume plugin matched: " + *refusal)});
    return wanted;
  }
  const Result<VolumePlugin*> plugin = plugins_.FindPluginBySpec(wanted.spec);
  if (plugin.ok()) {
    wanted.plugin_name = (*plugin)->GetPluginName();
  } else {
    wanted.problems.push_back({"FindPlugin", plugin.error()});
  }
  return wanted;
}

WantedPod DesiredStateOfWorld::Build(PodPtr pod, const WantedPod* before) const {
  WantedPod wanted;
  std::map<std::string, VolumeUse> uses = VolumesInUse(*pod);
  for (const PodVolume& volume : pod->spec.volumes) {
    const auto use = uses.find(volume.name);
    if (use == uses.end()) continue;  // no container uses it: as kubelet, not made
    const bool is_device = use->second.as_device;
    uses.erase(use);
    const SpecName spec(volume.name);
    const WantedVolume* old = nullptr;
    if (before != nullptr) {
      const auto found = before->volumes.find(spec);
      if (found != before->volumes.end()) old = &found->second;
    }
    WantedVolume made = BuildVolume(*pod, volume, old);
    if (is_device) {
      made.plugin_name.clear();
      made.problems.push_back({"CheckVolumeMode", FilesystemVolumeAsDevice(volume.name)});
    }
    wanted.volumes.insert_or_assign(spec, std::move(made));
  }
  for (const auto& [unknown, use] : uses) {
    wanted.problems.push_back(
        {"CheckVolumeMounts",
         Error::NotApplied(Code::kInvalidArgument, "a container mounts volume \"" + unknown +
                                                       "\", which the pod does not have")});
  }
  wanted.pod = std::move(pod);
  return wanted;
}

void DesiredStateOfWorld::AssignGenerations(WantedPod& now, const WantedPod* before) {
  const bool same_pod = before != nullptr && *before->pod == *now.pod;
  const bool same_ownership = before != nullptr && SameOwnership(*before->pod, *now.pod);
  for (auto& [spec, volume] : now.volumes) {
    const WantedVolume* old = nullptr;
    if (before != nullptr && before->volumes.contains(spec)) old = &before->volumes.at(spec);
    const bool same_fields = same_pod || !DownwardUseOf(volume.spec.volume()->source).any;
    const bool same = old != nullptr && same_ownership && same_fields && SameInputs(*old, volume);
    volume.generation = same ? old->generation : ++last_generation_;
  }
}

void DesiredStateOfWorld::SetPod(PodPtr pod) {
  const PodUid uid = pod->uid();
  const WantedPod* before = Find(uid);
  WantedPod now = Build(std::move(pod), before);
  AssignGenerations(now, before);
  if (before != nullptr) Unindex(uid, *before);
  Index(uid, pods_.insert_or_assign(uid, std::move(now)).first->second);
}

bool DesiredStateOfWorld::RemovePod(const PodUid& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return false;
  Unindex(pod, found->second);
  pods_.erase(found);
  return true;
}

std::set<PodUid> DesiredStateOfWorld::ObjectChanged(const ObjectKey& key) {
  const auto found = referrers_.find(key);
  if (found == referrers_.end()) return {};
  const std::set<PodUid> pods = found->second;
  for (const PodUid& uid : pods) {
    const PodPtr pod = pods_.at(uid).pod;
    SetPod(pod);  // sub-paths may expand differently, or at last
    for (auto& [spec, volume] : pods_.at(uid).volumes) {
      // Only content counts here: what a sub-path's variables say now does not move it.
      if (ObjectsOfVolume(pod->metadata.name_space, volume.spec.volume()->source).contains(key) ||
          (key.kind == ObjectKind::kNode && volume.objects.contains(key))) {
        volume.generation = ++last_generation_;
      }
    }
  }
  return pods;
}

void DesiredStateOfWorld::Index(const PodUid& pod, const WantedPod& wanted) {
  for (const auto& [spec, volume] : wanted.volumes) {
    for (const ObjectKey& key : volume.objects) referrers_[key].insert(pod);
  }
}

void DesiredStateOfWorld::Unindex(const PodUid& pod, const WantedPod& wanted) {
  for (const auto& [spec, volume] : wanted.volumes) {
    for (const ObjectKey& key : volume.objects) {
      const auto found = referrers_.find(key);
      if (found == referrers_.end()) continue;
      found->second.erase(pod);
      if (found->second.empty()) referrers_.erase(found);
    }
  }
}

const WantedPod* DesiredStateOfWorld::Find(const PodUid& pod) const {
  const auto found = pods_.find(pod);
  return found == pods_.end() ? nullptr : &found->second;
}

const WantedVolume* DesiredStateOfWorld::Find(const PodVolumeKey& key) const {
  const WantedPod* pod = Find(key.pod);
  if (pod == nullptr) return nullptr;
  const auto found = pod->volumes.find(key.spec);
  return found == pod->volumes.end() ? nullptr : &found->second;
}

}  // namespace volumed
