#include "volumemanager/desired_state_of_world.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <variant>

#include "kube/pod_facts.h"
#include "kube/refused_sources.h"
#include "kube/selectors.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"
#include "volume/unique_name.h"
#include "volumemanager/sub_path_requests.h"

namespace volumed {
namespace {

// kubelet looks at init and ephemeral containers too. Source: podutil.VisitContainers.
void ForEachContainer(const Pod& pod, const std::function<void(const Container&)>& visit) {
  for (const Container& container : pod.spec.init_containers) visit(container);
  for (const Container& container : pod.spec.containers) visit(container);
  for (const Container& container : pod.spec.ephemeral_containers) visit(container);
}

struct DownwardUse {
  bool any = false;        // it uses the pod's own fields
  bool resources = false;  // it uses limits, whose default is the node's
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

// Whether the two pods agree in what decides, besides the volume, how the volume is made.
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

// A persistent volume does not change under its pods, so only its identity is compared.
bool SameVolume(const VolumeSpec& a, const VolumeSpec& b) {
  if (a.volume() != nullptr && b.volume() != nullptr) return *a.volume() == *b.volume();
  return a.volume() == b.volume() && a.name() == b.name() && a.read_only() == b.read_only();
}

bool SameInputs(const WantedVolume& a, const WantedVolume& b) {
  return a.plugin_name == b.plugin_name && SameVolume(a.spec, b.spec) &&
         a.sub_paths == b.sub_paths && a.nested_mount_points == b.nested_mount_points;
}

// Source: desired_state_of_world_populator.go@v1.36.2 (createVolumeSpec).
std::optional<Error> WrongMode(const std::string& volume, const VolumeSpec& spec, bool is_device) {
  const bool is_block = IsBlockVolume(spec);
  if (is_block == is_device) return std::nullopt;
  return Error::NotApplied(Code::kInvalidArgument,
                           "volume " + volume + " has volumeMode " +
                               (is_block ? "Block" : "Filesystem") + ", but is specified in " +
                               (is_device ? "volumeDevices" : "volumeMounts"));
}

bool NamesClaim(const VolumeSource& source) {
  return std::holds_alternative<PersistentVolumeClaimVolumeSource>(source) ||
         std::holds_alternative<EphemeralVolumeSource>(source);
}

std::optional<std::string> RefusalOfSpec(const VolumeSpec& spec) {
  if (spec.volume() != nullptr) return RefusalOf(spec.volume()->source);
  return RefusalOf(spec.persistent_volume()->spec.source);
}

bool IsReadOnlyUse(const VolumeSource& source) {
  const auto* claim = std::get_if<PersistentVolumeClaimVolumeSource>(&source);
  return claim != nullptr && claim->read_only;
}

// The objects from which a volume's content comes; none for a persistent volume, which has its own
// content.
std::set<ObjectKey> ContentObjects(const Pod& pod, const VolumeSpec& spec) {
  if (spec.volume() == nullptr) return {};
  return ObjectsOfVolume(pod.metadata.name_space, spec.volume()->source);
}

DownwardUse DownwardUseOf(const VolumeSpec& spec) {
  return spec.volume() == nullptr ? DownwardUse{} : DownwardUseOf(spec.volume()->source);
}

// The volume as it was built before, by its name in the pod's spec; null if it was not.
const WantedVolume* FindPodVolume(const WantedPod* before, const std::string& name) {
  if (before == nullptr) return nullptr;
  for (const auto& [spec, volume] : before->volumes) {
    const std::vector<std::string>& names = volume.pod_volumes;
    if (std::find(names.begin(), names.end(), name) != names.end()) return &volume;
  }
  return nullptr;
}

// Merges two volumes of one pod that are the same volume on the node.
void Merge(WantedVolume& into, WantedVolume more) {
  if (!into.mountable() || into.unique_name.empty() || into.unique_name != more.unique_name) {
    into.problems.push_back(
        {"CheckVolumes",
         Error::NotApplied(Code::kInvalidArgument, "volume " + more.pod_volumes.front() +
                                                       " has the same directory as volume " +
                                                       into.pod_volumes.front() +
                                                       ": a persistent volume may not be called as "
                                                       "another volume of the pod")});
    return;
  }
  if (into.spec.read_only() != more.spec.read_only()) {
    into.problems.push_back(
        {"CheckVolumes", Error::NotApplied(Code::kInvalidArgument,
                                           "volumes " + into.pod_volumes.front() + " and " +
                                               more.pod_volumes.front() +
                                               " name the same claim, one of them with readOnly")});
  }
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(into.pod_volumes, more.pod_volumes);
  append(into.sub_paths, more.sub_paths);
  append(into.nested_mount_points, more.nested_mount_points);
  append(into.problems, more.problems);
  into.objects.merge(more.objects);
}

}  // namespace

std::set<ObjectKey> ObjectsOfVolume(const std::string& name_space, const VolumeSource& source) {
  const ObjectNames names = ObjectsNamedBy(source);
  std::set<ObjectKey> objects;
  for (const std::string& name : names.secrets) {
    objects.insert({ObjectKind::kSecret, name_space, name});
  }
  for (const std::string& name : names.config_maps) {
    objects.insert({ObjectKind::kConfigMap, name_space, name});
  }
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
      std::string last;  // a mount below one that was found belongs to that one
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
                                         const VolumePluginMgr& plugins, const HostNode& node,
                                         ClaimResolver& claims)
    : catalog_(catalog), plugins_(plugins), node_(node), claims_(claims) {}

WantedVolume DesiredStateOfWorld::ResolveClaim(const Pod& pod, const PodVolume& volume,
                                               const WantedPod* before) const {
  ResolvedClaim resolved = claims_.Resolve(pod, volume);
  WantedVolume wanted{.spec = VolumeSpec::FromVolume(volume)};
  if (resolved.volume != nullptr) {
    wanted.spec = VolumeSpec::FromPersistentVolume(*resolved.volume, IsReadOnlyUse(volume.source));
  } else if (const WantedVolume* old = FindPodVolume(before, volume.name);
             old != nullptr && old->spec.persistent_volume() != nullptr) {
    wanted.spec = old->spec;  // a pod keeps what it has, whatever becomes of the claim
  }
  wanted.claim = resolved.claim;
  wanted.claim_uid = std::move(resolved.claim_uid);
  wanted.objects = std::move(resolved.objects);
  if (resolved.problem) wanted.problems.push_back(*std::move(resolved.problem));
  return wanted;
}

void DesiredStateOfWorld::FindPlugin(WantedVolume& wanted) const {
  if (const std::optional<std::string> refusal = RefusalOfSpec(wanted.spec)) {
    wanted.problems.push_back(
        {"FindPlugin",
         Error::NotApplied(Code::kUnimplemented, "no volume plugin matched: " + *refusal)});
    return;
  }
  const Result<VolumePlugin*> plugin = plugins_.FindPluginBySpec(wanted.spec);
  if (!plugin.ok()) {
    wanted.problems.push_back({"FindPlugin", plugin.error()});
    return;
  }
  wanted.plugin_name = (*plugin)->GetPluginName();
  wanted.server = (*plugin)->FaultDomainName(wanted.spec);
  if (!wanted.server.empty()) wanted.server_domain = (*plugin)->FaultDomain(wanted.spec);
  FindDevice(**plugin, wanted);
  const PersistentVolume* persistent = wanted.spec.persistent_volume();
  if (persistent == nullptr) return;
  wanted.one_pod_only =
      persistent->spec.access_modes == std::vector<AccessMode>{AccessMode::kReadWriteOncePod};
  if (!persistent->spec.mount_options.empty() && !(*plugin)->SupportsMountOption()) {
    wanted.problems.push_back(
        {"CheckMountOptions", Error::NotApplied(Code::kInvalidArgument,
                                                "Mount options are not supported for this volume "
                                                "type")});
    wanted.plugin_name.clear();
  }
}

// Source: kubernetes pkg/kubelet/volumemanager/cache/desired_state_of_world.go@v1.36.2
// (AddPodToVolume): what is attached, or mounted once for the node, has a name of its own.
void DesiredStateOfWorld::FindDevice(VolumePlugin& plugin, WantedVolume& wanted) const {
  const auto refuse = [&wanted](const char* step, const Error& error) {
    wanted.problems.push_back({step, error});
    wanted.plugin_name.clear();
  };
  wanted.is_block = IsBlockVolume(wanted.spec);
  wanted.has_device = wanted.is_block;
  if (const DeviceMountableVolumePlugin* mountable = plugin.AsDeviceMountable()) {
    const Result<bool> can_mount = mountable->CanDeviceMount(wanted.spec);
    if (!can_mount.ok()) return refuse("CanDeviceMount", can_mount.error());
    wanted.has_device = wanted.has_device || *can_mount;
  }
  if (!wanted.has_device && wanted.spec.persistent_volume() == nullptr) return;
  const Result<std::string> volume_name = plugin.GetVolumeName(wanted.spec);
  if (!volume_name.ok()) return refuse("GetVolumeName", volume_name.error());
  wanted.unique_name = GetUniqueVolumeName(wanted.plugin_name, *volume_name);
  wanted.device_paths = plugin.DevicePaths(wanted.spec);
  FindAttachment(plugin, wanted);
}

void DesiredStateOfWorld::FindAttachment(VolumePlugin& plugin, WantedVolume& wanted) const {
  const AttachableVolumePlugin* attachable = plugin.AsAttachable();
  if (attachable == nullptr) return;
  const Result<bool> can_attach = attachable->CanAttach(wanted.spec);
  if (!can_attach.ok()) {
    wanted.problems.push_back({"CanAttach", can_attach.error()});
    wanted.plugin_name.clear();
    return;
  }
  wanted.attachable = *can_attach;
  const VolumePluginWithAttachLimits* limited = plugin.AsWithAttachLimits();
  if (wanted.attachable && limited != nullptr) {
    wanted.limit_key = limited->VolumeLimitKey(wanted.spec);
  }
}

// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (checkNodeAffinity).
void DesiredStateOfWorld::CheckNodeAffinity(WantedVolume& wanted) const {
  const PersistentVolume* persistent = wanted.spec.persistent_volume();
  if (persistent == nullptr || !persistent->spec.node_affinity) return;
  const NodeName node = node_.GetNodeName();
  if (Matches(persistent->spec.node_affinity->required, node_.GetNodeLabels(), node.str())) return;
  wanted.problems.push_back(
      {"CheckNodeAffinity",
       Error::NotApplied(Code::kFailedPrecondition,
                         "no matching NodeSelectorTerms: persistent volume " +
                             persistent->metadata.name + " is not for node " + node.str() +
                             ", by its nodeAffinity, which is immutable: a node that was renamed "
                             "needs its former name (the setting node-name) or the label that is "
                             "asked for (node-labels)")});
  wanted.plugin_name.clear();
}

WantedVolume DesiredStateOfWorld::BuildVolume(const Pod& pod, const PodVolume& volume,
                                              bool is_device, const WantedPod* before) const {
  WantedVolume wanted = NamesClaim(volume.source)
                            ? ResolveClaim(pod, volume, before)
                            : WantedVolume{.spec = VolumeSpec::FromVolume(volume)};
  wanted.pod_volumes = {volume.name};
  wanted.objects.merge(ContentObjects(pod, wanted.spec));
  if (DownwardUseOf(wanted.spec).resources) {
    wanted.objects.insert({ObjectKind::kNode, "", node_.GetNodeName().str()});
  }
  wanted.nested_mount_points = NestedMountPoints(pod, volume.name);
  const WantedVolume* old = FindPodVolume(before, volume.name);
  const std::vector<SubPathRequest> earlier =
      old == nullptr ? std::vector<SubPathRequest>{} : old->sub_paths;
  SubPathPlan plan = PlanSubPaths(pod, volume.name, earlier, catalog_, node_);
  wanted.sub_paths = std::move(plan.requests);
  for (WantedProblem& problem : plan.problems) wanted.problems.push_back(std::move(problem));
  wanted.objects.merge(plan.objects);
  wanted.is_open_claim =
      wanted.spec.volume() != nullptr && NamesClaim(wanted.spec.volume()->source);
  if (wanted.is_open_claim) return wanted;
  FindPlugin(wanted);
  CheckNodeAffinity(wanted);
  if (const auto wrong = WrongMode(volume.name, wanted.spec, is_device)) {
    wanted.plugin_name.clear();
    wanted.problems.push_back({"CheckVolumeMode", *wrong});
  } else if (wanted.is_block && wanted.mountable()) {
    const Result<BlockVolumePlugin*> mapper = plugins_.FindMapperPluginByName(wanted.plugin_name);
    if (!mapper.ok() || *mapper == nullptr) {
      wanted.problems.push_back(
          {"FindMapperPlugin",
           Error::NotApplied(Code::kUnimplemented,
                             "volume plugin " + wanted.plugin_name + " has no block volumes")});
      wanted.plugin_name.clear();
    }
  }
  return wanted;
}

WantedPod DesiredStateOfWorld::Build(PodPtr pod, const WantedPod* before) const {
  WantedPod wanted;
  std::map<std::string, VolumeUse> uses = VolumesInUse(*pod);
  for (const PodVolume& volume : pod->spec.volumes) {
    const auto use = uses.find(volume.name);
    if (use == uses.end()) continue;  // no container uses it: it is not made, as in kubelet
    const bool is_device = use->second.as_device;
    uses.erase(use);
    WantedVolume made = BuildVolume(*pod, volume, is_device, before);
    const SpecName spec = made.spec.name();
    if (const auto there = wanted.volumes.find(spec); there != wanted.volumes.end()) {
      Merge(there->second, std::move(made));
    } else {
      wanted.volumes.emplace(spec, std::move(made));
    }
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
    const bool same_fields = same_pod || !DownwardUseOf(volume.spec).any;
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
    SetPod(pod);  // sub-paths may now expand, or expand differently
    for (auto& [spec, volume] : pods_.at(uid).volumes) {
      // Only content counts here: a sub-path keeps its path, whatever its variables say now.
      if (ContentObjects(*pod, volume.spec).contains(key) ||
          (key.kind == ObjectKind::kNode && volume.objects.contains(key))) {
        volume.generation = ++last_generation_;
      }
    }
  }
  return pods;
}

void DesiredStateOfWorld::Index(const PodUid& pod, const WantedPod& wanted) {
  for (const auto& [spec, volume] : wanted.volumes) {
    for (const ObjectKey& key : volume.objects) {
      std::set<PodUid>& referrers = referrers_[key];
      if (referrers.empty() && object_named_) object_named_(key, true);
      referrers.insert(pod);
    }
    for (const std::string& path : volume.device_paths) by_device_path_[path].insert(pod);
    if (volume.mountable() && !volume.unique_name.empty()) users_[volume.unique_name].insert(pod);
  }
}

void DesiredStateOfWorld::Unindex(const PodUid& pod, const WantedPod& wanted) {
  const auto erase = [&pod](auto& index, const auto& key) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(pod);
    if (found->second.empty()) index.erase(found);
  };
  for (const auto& [spec, volume] : wanted.volumes) {
    for (const ObjectKey& key : volume.objects) {
      erase(referrers_, key);
      if (object_named_ && !referrers_.contains(key)) object_named_(key, false);
    }
    for (const std::string& path : volume.device_paths) erase(by_device_path_, path);
    erase(users_, volume.unique_name);
  }
}

const WantedVolume* WritingUse(const DesiredStateOfWorld& desired, const std::vector<PodUid>& pods,
                               const UniqueVolumeName& volume) {
  const WantedVolume* use = desired.FindUse(pods.front(), volume);
  for (const PodUid& pod : pods) {
    const WantedVolume* other = desired.FindUse(pod, volume);
    if (use->spec.read_only() && !other->spec.read_only()) use = other;
  }
  return use;
}

const std::set<PodUid>& DesiredStateOfWorld::UsersOf(const UniqueVolumeName& volume) const {
  static const std::set<PodUid> kNobody;
  const auto found = users_.find(volume);
  return found == users_.end() ? kNobody : found->second;
}

std::set<PodUid> DesiredStateOfWorld::PodsWithDevicePathBelow(const std::string& path) const {
  std::set<PodUid> pods = PodsWithDevicePath(path);
  const std::string below = path == "/" ? path : path + "/";
  for (auto at = by_device_path_.lower_bound(below);
       at != by_device_path_.end() && at->first.starts_with(below); ++at) {
    pods.insert(at->second.begin(), at->second.end());
  }
  return pods;
}

const std::set<PodUid>& DesiredStateOfWorld::PodsWithDevicePath(const std::string& path) const {
  static const std::set<PodUid> kNobody;
  const auto found = by_device_path_.find(path);
  return found == by_device_path_.end() ? kNobody : found->second;
}

const WantedVolume* DesiredStateOfWorld::FindUse(const PodUid& pod,
                                                 const UniqueVolumeName& volume) const {
  const WantedPod* wanted = Find(pod);
  if (wanted == nullptr) return nullptr;
  for (const auto& [spec, use] : wanted->volumes) {
    if (use.unique_name == volume) return &use;
  }
  return nullptr;
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
