#include "operation/map_operations.h"

#include <memory>
#include <string>
#include <utility>

#include "blockmapper/volume_path_handler.h"
#include "mounter/host_directory.h"
#include "operation/as_recorded.h"
#include "operation/block_plugins.h"
#include "operation/call_options.h"
#include "operation/device_facts.h"
#include "operation/given_place.h"
#include "operation/only_pod.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/pin_operations.h"
#include "operation/place_steps.h"
#include "operation/pod_directories.h"
#include "operation/pod_volume_facts.h"
#include "operation/recorded_volume.h"
#include "operation/step_runner.h"
#include "operation/storage_steps.h"
#include "os/place_names.h"
#include "pluginmgr/block_volume_plugin.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (SuccessfulMountVolume).
constexpr const char* kSuccessfulMount = "SuccessfulMountVolume";

// What the steps of one mapping find out, for those that follow.
struct Mapping {
  const OperationParts& parts;
  const MountRequest& request;
  BlockVolumeMapper& mapper;
  SafePath global_map_path;  // or the place that a CO gave for the device
  std::string device_path;   // as the mapper names it
  // A pod has the device by its record, this one by an earlier mapping included.
  bool is_had = true;
  bool as_recorded = false;  // see as_recorded.h
  IdentifiedDevice device{};
};

Status NameDevice(Mapping& mapping, const CallOptions& call) {
  if (CustomBlockVolumeMapper* custom = mapping.mapper.AsCustom()) {
    Result<std::string> named =
        mapping.as_recorded ? custom->MapPodDeviceAsRecorded(call) : custom->MapPodDevice(call);
    if (mapping.as_recorded && !named.ok()) return named.error().AsMaybeApplied();
    ASSIGN_OR_RETURN(mapping.device_path, std::move(named));
  }
  if (mapping.device_path.empty()) {
    // Then it is the one that attaching, or waiting for it, has answered.
    const auto record = mapping.parts.devices.Find(mapping.request.unique_name);
    if (record && IsDevicePath(record->device_path)) mapping.device_path = record->device_path;
  }
  if (!mapping.device_path.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "nothing names a device for volume " +
                                                          mapping.request.spec.name().str());
}

// A device that was attached anew differs from the one on record, though it may be the same
// storage. That record binds as long as a pod has what it was given. Then the former device is
// nobody's any more, and the guard asks of this one as of any that the volume has not had yet.
Status LeaveFormerDevice(const Mapping& mapping, const DeviceRecord& record,
                         const CallOptions& call) {
  Status as_given = CheckMappedDevice(record, mapping.device);
  if (as_given.ok() || mapping.is_had || mapping.parts.pins->Has(record.key)) return as_given;
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes,
                   VolumePathHandler(mapping.parts.host.kernel)
                       .GetDeviceBindMountRefs(mapping.global_map_path, call));
  if (!nodes.empty()) return as_given;
  return mapping.parts.storage.Release(DeviceStorageId(record.key));
}

Status HoldDevice(Mapping& mapping, const CallOptions& call) {
  const UniqueVolumeName& volume = mapping.request.unique_name;
  ASSIGN_OR_RETURN(mapping.device, mapping.parts.host.kernel.Call(
                                       IdentifyDevice{HostPath(mapping.device_path), true}, call));
  const std::optional<DeviceRecord> record = mapping.parts.devices.Find(volume);
  if (record) RETURN_IF_ERROR(LeaveFormerDevice(mapping, *record, call));
  // A device that a pod has raw is nobody else's, under no other name either.
  RETURN_IF_ERROR(mapping.parts.storage.Take(
      DeviceStorageHolder(volume, mapping.request.spec.name(), StorageUse::kRaw),
      StorageName{mapping.device.node}, call));
  // As of a filesystem, it is not recorded of a CO's (MountDevice).
  if (!mapping.request.given_place()) {
    RETURN_IF_ERROR(mapping.parts.storage.RecordDevice(
        DeviceStorageId(volume), StorageNameOf(mapping.request.spec).value_or(StorageName{}),
        call));
  }
  // By its own node: what a driver has bound is gone when the device is flushed and asked about.
  RETURN_IF_ERROR(mapping.parts.devices.SetMapped(
      volume, {mapping.device.facts.identity, mapping.device.node, BootId()}));
  mapping.parts.pins->Keep(volume, mapping.device.pin);
  return OkStatus();
}

// Where the node of the volume's pod, or of its target, is to be.
void AddBindDevice(Mapping& mapping, const SafePath& directory, const std::string& name,
                   std::vector<Step>& steps) {
  steps.push_back({.name = "BindDevice",
                   .timeout = mapping.parts.settings.set_up,
                   .run = [&mapping, directory, name](const CallOptions& call) {
                     return VolumePathHandler(mapping.parts.host.kernel)
                         .MapDeviceByBind(mapping.device, directory, name, call);
                   }});
}

// For a pod its directories are made; whoever has given a place has made them.
void AddDirectorySteps(Mapping& mapping, std::vector<Step>& steps) {
  const OperationParts& parts = mapping.parts;
  if (mapping.request.given_place()) {
    steps.push_back({.name = "CheckGivenPlace",
                     .timeout = parts.settings.make_pod_directories,
                     .changes_volume = false,
                     .run = [&](const CallOptions& call) {
                       return CheckTarget(mapping.parts, mapping.request.key(),
                                          mapping.request.target.place, std::nullopt, call);
                     }});
    return;
  }
  steps.push_back({.name = "MakePodDirectories",
                   .timeout = parts.settings.make_pod_directories,
                   .changes_volume = false,
                   .run = [&](const CallOptions& call) {
                     return MakeTargetDirectories(mapping.parts.host, mapping.request.target,
                                                  OnOwnFilesystem(call));
                   }});
}

std::vector<Step> MappingSteps(Mapping& mapping) {
  const OperationParts& parts = mapping.parts;
  CustomBlockVolumeMapper* custom = mapping.mapper.AsCustom();
  std::vector<Step> steps;
  AddTakeOnlyPod(parts, mapping.request, steps);
  AddDirectorySteps(mapping, steps);
  steps.push_back({.name = "MapPodDevice",
                   .timeout = parts.settings.set_up,
                   .changes_volume = custom != nullptr && custom->MapPodDeviceHasEffects(),
                   .run = [&](const CallOptions& call) { return NameDevice(mapping, call); }});
  steps.push_back({.name = "HoldDevice",
                   .timeout = parts.settings.set_up,
                   .changes_volume = false,
                   .run = [&](const CallOptions& call) { return HoldDevice(mapping, call); }});
  if (const std::optional<SafePath> place = mapping.request.given_place()) {
    AddBindDevice(mapping, ParentOf(*place), NameOf(*place), steps);
    return steps;
  }
  // The link comes first and goes last: when a power loss takes the record, it is what the volume
  // is found by. (Kubelet binds first, and unlinks first.)
  steps.push_back(
      {.name = "LinkDevice", .timeout = parts.settings.set_up, .run = [&](const CallOptions& call) {
         const PodDeviceMapPath place = mapping.mapper.GetPodDeviceMapPath();
         return VolumePathHandler(parts.host.kernel)
             .MapDeviceByLink(mapping.device.path, place.directory, place.link_name,
                              OnOwnFilesystem(call));
       }});
  AddBindDevice(mapping, mapping.global_map_path, mapping.request.key().pod.str(), steps);
  return steps;
}

// Where the node of a pod's device is, or that of a target.
struct NodePlace {
  SafePath directory;
  std::string name;
  bool is_given = false;  // by a CO
};

// By the record of the volume or of the device, or by what is known of the volume. What no record
// knows was found at its place in the layout.
Result<NodePlace> NodePlaceOf(const OperationParts& parts, const PodVolumeRecord& facts,
                              const BlockVolumeUnmapper& unmapper) {
  if (const std::optional<SafePath> given = GivenPlaceOf(facts)) {
    return NodePlace{ParentOf(*given), NameOf(*given), /*is_given=*/true};
  }
  const auto map_path = [&]() -> Result<SafePath> {
    const std::optional<DeviceRecord> device = parts.devices.Find(facts.unique_name);
    if (device && device->is_block) return parts.host.paths.BelowRoot(device->device_mount_path);
    if (facts.volume_json.empty()) {
      return parts.host.paths.GetBlockMapDir(facts.plugin_name, facts.key.spec);
    }
    ASSIGN_OR_RETURN(const VolumeSpec spec, DecodeRecordedVolume(facts.volume_json));
    return unmapper.GetGlobalMapPath(spec);
  };
  ASSIGN_OR_RETURN(SafePath directory, map_path());
  return NodePlace{std::move(directory), facts.key.pod.str()};
}

// All arguments outlive the steps.
std::vector<Step> UnmappingSteps(const OperationParts& parts, const NodePlace& node,
                                 BlockVolumeUnmapper& unmapper) {
  std::vector<Step> steps;
  if (!node.is_given) {
    steps.push_back({.name = "DetachFileDevice",
                     .timeout = parts.settings.tear_down,
                     .changes_volume = false,
                     .run = [&](const CallOptions& call) -> Status {
                       RETURN_IF_ERROR(VolumePathHandler(parts.host.kernel)
                                           .DetachFileDevice(node.directory, node.name, call));
                       return OkStatus();
                     }});
  }
  steps.push_back({.name = "UnbindDevice",
                   .timeout = parts.settings.tear_down,
                   .run = [&](const CallOptions& call) {
                     const CallOptions at_place =
                         node.is_given ? OnPath(call, node.directory) : call;
                     const Status unbound =
                         VolumePathHandler(parts.host.kernel)
                             .UnmapBoundDevice(node.directory, node.name, at_place);
                     if (!node.is_given) return unbound;
                     return LeaveForeign(parts, node.directory.Below(node.name),
                                         /*is_block=*/true, unbound, at_place);
                   }});
  if (unmapper.AsCustom() != nullptr) {
    steps.push_back({.name = "UnmapPodDevice",
                     .timeout = parts.settings.tear_down,
                     .run = [&](const CallOptions& call) {
                       return unmapper.AsCustom()->UnmapPodDevice(call);
                     }});
  }
  if (node.is_given) return steps;
  steps.push_back({.name = "UnlinkDevice",
                   .timeout = parts.settings.tear_down,
                   .run = [&](const CallOptions& call) {
                     const PodDeviceMapPath place = unmapper.GetPodDeviceMapPath();
                     return VolumePathHandler(parts.host.kernel)
                         .UnmapLinkedDevice(place.directory, place.link_name,
                                            OnOwnFilesystem(call));
                   }});
  return steps;
}

// Where the device is set up: what a CO has named, or the global map directory.
Result<SafePath> SetUpPlaceOf(const OperationParts& parts, const MountRequest& request,
                              const BlockVolumeMapper& mapper) {
  if (request.given_place()) {
    if (std::optional<SafePath> given = GivenPlaceOfDevice(parts, request.device())) {
      return *std::move(given);
    }
  }
  return mapper.GetGlobalMapPath(request.spec);
}

// Source: operation_generator.go@v1.36.2 (GenerateMapVolumeFunc).
void TellOfMapping(HostEvents& events, const PodVolumeKey& key, const MountedVolume& volume) {
  const std::string text =
      "MapVolume.MapPodDevice succeeded for volume \"" + key.spec.str() + "\" ";
  const auto parent = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  events.RecordPodEvent(key.pod, EventType::kNormal, kSuccessfulMount,
                        text + "globalMapPath \"" + parent(volume.mapped->node_path) + "\"");
  events.RecordPodEvent(key.pod, EventType::kNormal, kSuccessfulMount,
                        text + "volumeMapPath \"" + parent(volume.host_path) + "\"");
}

}  // namespace

OperationTraits MapVolume::Traits(const OperationParts& parts) const {
  OperationTraits traits = TraitsOf(parts, key(), kMapVolumeOperation, request.spec);
  traits.pod_display_name = request.target.display_name;
  traits.device = request.device();
  traits.use = DeviceUse::kExclusive;
  traits.domain = DomainOf(parts, request);
  traits.finishes = request.has_device;
  return traits;
}

void MapVolume::Tell(const OperationParts& parts,
                     const OperationOutcome<MountedVolume>& outcome) const {
  // As of MountVolume.
  if (request.given_place()) return;
  HostEvents& events = parts.host.events;
  if (outcome.failure) {
    TellOfFailure(events, request.key().pod, request.spec.name(), true, *outcome.failure);
  } else {
    TellOfMapping(events, request.key(), *outcome.value);
  }
}

Failure MapVolume::Run(const OperationParts& parts, OperationProgress& progress,
                       MountedVolume& result) const {
  const auto failed = [](const char* step, const Error& error) {
    return OperationFailure{kMapVolumeOperation, step, error};
  };
  progress.EnterStep("FindPlugin");
  const Result<BlockVolumePlugin*> plugin = FindBlockVolumePlugin(parts.plugins, request.spec);
  if (!plugin.ok()) return failed("FindMapperPluginBySpec", plugin.error());
  const Result<std::unique_ptr<BlockVolumeMapper>> mapper =
      (*plugin)->NewBlockVolumeMapper(request.spec, request.target.pod);
  if (!mapper.ok()) return failed("NewBlockVolumeMapper", mapper.error());
  const Result<SafePath> path = SetUpPlaceOf(parts, request, **mapper);
  if (!path.ok()) return failed("GetGlobalMapPath", path.error());
  if (const Status set_up = CheckDevice(parts.devices, request, &*path); !set_up.ok()) {
    return failed("CheckDevice", set_up.error());
  }
  Mapping mapping{parts, request, **mapper, *path, ""};
  mapping.as_recorded = IsProvenAsRecorded(parts, request, (*plugin)->plugin());
  mapping.is_had = !CheckNoPodHas(*parts.volumes, request.unique_name).ok();
  const StateCall call{.operation = kMapVolumeOperation,
                       .event = VolumeEvent::kMapVolume,
                       .facts = FactsOf(request, (*plugin)->plugin()),
                       .steps = MappingSteps(mapping)};
  StepRunner runner(
      *parts.volumes, parts.host.clock, progress,
      OperationCall(call.facts.key.ToString(), call.facts.fault_domain, "", progress));
  if (Failure failure = runner.Run(call)) {
    GiveBackOnlyPod(parts, request);
    return failure;
  }
  result.plugin_name = call.facts.plugin_name;
  result.attributes.read_only = request.spec.read_only();
  if (const std::optional<SafePath> place = request.given_place()) {
    result.host_path = place->Display();
    result.mapped = MappedDevice{mapping.device.node, result.host_path};
    return std::nullopt;
  }
  const PodDeviceMapPath link = (*mapper)->GetPodDeviceMapPath();
  result.host_path = link.directory.Below(link.link_name).Display();
  result.mapped = MappedDevice{mapping.device.node, path->Below(request.key().pod.str()).Display()};
  return std::nullopt;
}

OperationTraits UnmapVolume::Traits(const OperationParts& parts) const {
  return UnmountTraits(parts, kUnmapVolumeOperation, request);
}

Failure UnmapVolume::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  const auto failed = [](const char* step, const Error& error) {
    return OperationFailure{kUnmapVolumeOperation, step, error};
  };
  progress.EnterStep("FindPlugin");
  StateCall call{.operation = kUnmapVolumeOperation,
                 .event = VolumeEvent::kUnmapVolume,
                 .facts = FactsOf(request, *parts.volumes),
                 .steps = {}};
  call.facts.is_block = true;
  const std::string& name = call.facts.plugin_name;
  const Result<BlockVolumePlugin*> plugin = FindBlockVolumePlugin(parts.plugins, name);
  if (!plugin.ok()) return failed("FindMapperPluginByName", plugin.error());
  const Result<std::unique_ptr<BlockVolumeUnmapper>> unmapper =
      MakeBlockVolumeUnmapper(**plugin, request.spec, request.pod, call.facts.volume_json);
  if (!unmapper.ok()) return failed("NewBlockVolumeUnmapper", unmapper.error());
  const Result<NodePlace> node = NodePlaceOf(parts, call.facts, **unmapper);
  if (!node.ok()) return failed("GetGlobalMapPath", node.error());
  if (node->is_given) {
    // Before the intent, as of UnmountVolume.
    const Status there = CheckTargetOfTeardown(parts, call.facts, CallOptions{});
    if (!there.ok()) return failed("CheckGivenPlace", there.error());
  }
  call.steps = UnmappingSteps(parts, *node, **unmapper);
  AddReleaseOnlyPod(parts, call.facts, call.steps);
  StepRunner runner(
      *parts.volumes, parts.host.clock, progress,
      OperationCall(call.facts.key.ToString(), call.facts.fault_domain, "", progress));
  return runner.Run(call);
}

}  // namespace volumed
