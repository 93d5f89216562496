#include "volumemanager/wanted_pod_builder.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "base/strings.h"
#include "kube/pod_facts.h"
#include "kube/refused_sources.h"
#include "kube/selectors.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"
#include "volume/csi_translation.h"
#include "volume/unique_name.h"
#include "volumemanager/failure_history.h"
#include "volumemanager/sub_path_requests.h"
#include "volumemanager/volume_inputs.h"

namespace volumed {
namespace {

// Source: desired_state_of_world_populator.go@v1.36.2 (createVolumeSpec).
std::optional<Error> WrongMode(const std::string& volume, const VolumeSpec& spec, bool is_device) {
  const bool is_block = IsBlockVolume(spec);
  if (is_block == is_device) return std::nullopt;
  return Error::NotApplied(Code::kInvalidArgument,
                           "volume " + volume + " has volumeMode " +
                               (is_block ? "Block" : "Filesystem") + ", but is specified in " +
                               (is_device ? "volumeDevices" : "volumeMounts"));
}

void RefuseAsOther(WantedVolume& volume, const WantedVolume& other) {
  const auto mode = [](const WantedVolume& of) { return of.is_block ? "Block" : "Filesystem"; };
  volume.problems.push_back(
      {"CheckVolumes",
       Error::NotApplied(
           Code::kInvalidArgument,
           "volumes " + volume.spec.name().str() + " (volumeMode " + mode(volume) + ") and " +
               other.spec.name().str() + " (" + mode(other) +
               ") are the same storage, of which a pod can have but one volumeMode")});
}

// Storage has one device on the node, which is there for one volumeMode at a time: the one would
// wait for the other to leave, which is the pod's own. Neither is set up; what the pod has stays.
void RefuseBothModes(std::map<SpecName, WantedVolume>& volumes) {
  std::map<UniqueVolumeName, std::vector<WantedVolume*>> of_devices;
  for (auto& [spec, volume] : volumes) {
    if (volume.mountable() && volume.has_device) of_devices[volume.unique_name].push_back(&volume);
  }
  for (const auto& [name, uses] : of_devices) {
    const auto of_other_mode = [&all = uses](bool is_block) {
      return std::find_if(all.begin(), all.end(), [is_block](const WantedVolume* one) {
        return one->is_block != is_block;
      });
    };
    if (of_other_mode(uses.front()->is_block) == uses.end()) continue;
    for (WantedVolume* const use : uses) {
      RefuseAsOther(*use, **of_other_mode(use->is_block));
      use->plugin_name.clear();
    }
  }
}

bool NamesClaim(const VolumeSource& source) {
  return std::holds_alternative<PersistentVolumeClaimVolumeSource>(source) ||
         std::holds_alternative<EphemeralVolumeSource>(source);
}

std::optional<std::string> RefusalOfSpec(const VolumeSpec& spec) {
  if (spec.volume() != nullptr) return RefusalOf(spec.volume()->source);
  return RefusalOf(spec.persistent_volume()->spec.source);
}

// Of a volume that is translated; nullopt for any other.
std::optional<std::string> MissingDriverOfSpec(const VolumeSpec& spec) {
  if (spec.volume() != nullptr) return MissingDriverOf(spec.volume()->source);
  return MissingDriverOf(spec.persistent_volume()->spec.source);
}

// The name of what stands in for an inline volume may have slashes, and is to be one directory.
VolumeSpec WithPlainName(const VolumeSpec& spec) {
  const std::string plain = EscapeQualifiedName(spec.name().str());
  if (!spec.inline_for_csi_migration() || plain == spec.name().str()) return spec;
  PersistentVolume volume = *spec.persistent_volume();
  volume.metadata.name = plain;
  return VolumeSpec::FromPersistentVolume(std::move(volume), spec.read_only())
      .WithInlineForCsiMigration();
}

// What a plugin does not know yet, it knows once its driver is registered.
WantedProblem PluginProblem(const std::string& step, const Error& error) {
  const bool is_driver = error.code() == Code::kUnavailable;
  return {step, error, is_driver ? kWhoeverRunsTheDriver : ""};
}

// A source that a CSI driver has replaced is one of that driver's. Nullopt: of another kind.
std::optional<Result<VolumeSpec>> Translated(const Pod& pod, const VolumeSpec& spec) {
  std::optional<Result<VolumeSpec>> translated = TranslateToCsi(spec, pod.metadata.name_space);
  if (!translated || !translated->ok()) return translated;
  return WithPlainName(**translated);
}

bool IsReadOnlyUse(const VolumeSource& source) {
  const auto* claim = std::get_if<PersistentVolumeClaimVolumeSource>(&source);
  return claim != nullptr && claim->read_only;
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

// Whether both are of one storage, and yet not the same: another partition of it, or one of them
// read-only. Volumes of the pod itself whose source a driver has replaced may be so.
bool DiffersInSource(const VolumeSpec& a, const VolumeSpec& b) {
  const bool have_volumes = a.persistent_volume() != nullptr && b.persistent_volume() != nullptr;
  return have_volumes && a.persistent_volume()->spec.source != b.persistent_volume()->spec.source;
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
  if (DiffersInSource(into.spec, more.spec)) {
    into.problems.push_back(
        {"CheckVolumes",
         Error::NotApplied(Code::kInvalidArgument,
                           "volumes " + into.pod_volumes.front() + " and " +
                               more.pod_volumes.front() +
                               " name the same storage, and differ in what they want of it "
                               "(readOnly, partition or attributes)")});
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

WantedPodBuilder::WantedPodBuilder(const ObjectCatalog& catalog, const VolumePluginMgr& plugins,
                                   const HostNode& node, ClaimResolver& claims)
    : catalog_(catalog), plugins_(plugins), node_(node), claims_(claims) {}

WantedVolume WantedPodBuilder::ResolveClaim(const Pod& pod, const PodVolume& volume,
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

void WantedPodBuilder::FindPlugin(const Pod& pod, const WantedVolume* old,
                                  WantedVolume& wanted) const {
  if (const std::optional<std::string> refusal = RefusalOfSpec(wanted.spec)) {
    wanted.problems.push_back(
        {"FindPlugin",
         Error::NotApplied(Code::kUnimplemented, "no volume plugin matched: " + *refusal)});
    return;
  }
  const std::optional<std::string> missing = MissingDriverOfSpec(wanted.spec);
  if (auto translated = Translated(pod, wanted.spec)) {
    if (!translated->ok()) {
      wanted.problems.push_back({"FindPlugin", translated->error()});
      return;
    }
    wanted.spec = std::move(*translated).value();
  }
  const Result<VolumePlugin*> plugin = plugins_.FindPluginBySpec(wanted.spec);
  if (!plugin.ok()) {
    // What was built with a plugin that is gone stays as it is: its pod keeps what it has.
    const bool is_gone =
        old != nullptr && old->mountable() && !plugins_.FindPluginByName(old->plugin_name).ok();
    if (is_gone) {
      wanted = *old;
      return;
    }
    wanted.problems.push_back(
        {"FindPlugin", missing ? plugin.error().With(*missing) : plugin.error()});
    return;
  }
  wanted.plugin_name = (*plugin)->GetPluginName();
  wanted.server = (*plugin)->FaultDomainName(wanted.spec);
  if (!wanted.server.empty()) wanted.server_domain = (*plugin)->FaultDomain(wanted.spec);
  wanted.objects.merge((*plugin)->DependsOn(wanted.spec));
  if ((*plugin)->WorksInLane(wanted.spec)) {
    wanted.driver_domain = (*plugin)->FaultDomain(wanted.spec);
  }
  FindDevice(**plugin, wanted);
  if (missing && !wanted.mountable()) {
    Error& why = wanted.problems.back().error;
    if (why.code() == Code::kUnavailable) why = why.With(*missing);
    return;
  }
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

// Only of a volume that one pod has at a time: a mount has one label. Source: kubernetes
// pkg/kubelet/volumemanager/cache/desired_state_of_world.go@v1.36.2 (getSELinuxLabel; the gate
// SELinuxMount, for other volumes, is off). A pod that wants its files labelled one by one may have
// containers with several labels here, as no mount has any of them; kubelet refuses it.
void WantedPodBuilder::FindLabel(const Pod& pod, WantedVolume& wanted) const {
  if (!node_.HasSelinux() || !wanted.mountable() || !wanted.one_pod_only || wanted.is_block ||
      pod.spec.security_context.se_linux_change_policy == SeLinuxChangePolicy::kRecursive) {
    return;
  }
  const Result<VolumePlugin*> plugin = plugins_.FindPluginBySpec(wanted.spec);
  if (!plugin.ok() || !(*plugin)->SupportsSELinuxContextMount(wanted.spec)) return;
  std::set<std::string> labels;
  for (const std::string& volume : wanted.pod_volumes) labels.merge(MountLabels(pod, volume));
  if (labels.empty()) return;
  if (labels.size() == 1) {
    wanted.selinux_label = *labels.begin();
    return;
  }
  wanted.problems.push_back(
      {"CheckSELinuxLabel",
       Error::NotApplied(Code::kFailedPrecondition,
                         "conflicting SELinux labels of volume " + wanted.spec.name().str() +
                             ": its containers need " + *labels.begin() + " and " +
                             *labels.rbegin() + ", and one mount has one label")});
  wanted.plugin_name.clear();
}

// Source: kubernetes pkg/kubelet/volumemanager/cache/desired_state_of_world.go@v1.36.2
// (AddPodToVolume): what is attached, or mounted once for the node, has a name of its own.
void WantedPodBuilder::FindDevice(VolumePlugin& plugin, WantedVolume& wanted) const {
  const auto refuse = [&wanted](const char* step, const Error& error) {
    wanted.problems.push_back(PluginProblem(step, error));
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

void WantedPodBuilder::FindAttachment(VolumePlugin& plugin, WantedVolume& wanted) const {
  const AttachableVolumePlugin* attachable = plugin.AsAttachable();
  if (attachable == nullptr) return;
  const Result<bool> can_attach = attachable->CanAttach(wanted.spec);
  if (!can_attach.ok()) {
    wanted.problems.push_back(PluginProblem("CanAttach", can_attach.error()));
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
void WantedPodBuilder::CheckNodeAffinity(WantedVolume& wanted) const {
  const PersistentVolume* persistent = wanted.spec.persistent_volume();
  if (persistent == nullptr || !persistent->spec.node_affinity) return;
  const NodeName node = node_.GetNodeName();
  if (Matches(persistent->spec.node_affinity->required, node_.GetNodeLabels(), node.str())) return;
  wanted.problems.push_back(
      {kCheckNodeAffinityStep,
       Error::NotApplied(Code::kFailedPrecondition,
                         "no matching NodeSelectorTerms: persistent volume " +
                             persistent->metadata.name + " is not for node " + node.str() +
                             ", by its nodeAffinity, which is immutable: a node that was renamed "
                             "needs its former name (the setting node-name) or the label that is "
                             "asked for (node-labels)")});
  wanted.plugin_name.clear();
}

WantedVolume WantedPodBuilder::BuildVolume(const Pod& pod, const PodVolume& volume, bool is_device,
                                           const WantedPod* before) const {
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
  FindPlugin(pod, old, wanted);
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

WantedPod WantedPodBuilder::Build(PodPtr pod, const WantedPod* before) const {
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
  RefuseBothModes(wanted.volumes);
  // Several volumes of the pod may be one on the node, which has one mount for all their
  // containers.
  for (auto& [spec, volume] : wanted.volumes) FindLabel(*pod, volume);
  wanted.pod = std::move(pod);
  return wanted;
}

}  // namespace volumed
