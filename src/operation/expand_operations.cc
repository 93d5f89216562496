#include "operation/expand_operations.h"

#include <memory>
#include <utility>

#include "attacher/attacher.h"
#include "operation/call_options.h"
#include "operation/given_place.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/recorded_volume.h"
#include "operation/step_runner.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

// Where the device is mounted once for the node: `given` is what its row says of a place that a CO
// gave.
Result<SafePath> DevicePlaceOf(DeviceMountableVolumePlugin& mountable, const VolumeSpec& spec,
                               const std::optional<SafePath>& given) {
  if (given) return *given;
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMounter> mounter, mountable.NewDeviceMounter());
  return mounter->GetDeviceMountPath(spec);
}

// Where a pod has the volume.
Result<SafePath> PodPlaceOf(VolumePlugin& plugin, const ExpandRequest& request) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Mounter> mounter,
                   plugin.NewMounter(request.spec, request.target));
  return mounter->GetSafePath();
}

// The pod's bind of a block volume's device.
Result<std::string> MappedPathOf(VolumePlugin& plugin, const ExpandRequest& request) {
  BlockVolumePlugin* block = plugin.AsBlock();
  if (block == nullptr) return std::string();
  ASSIGN_OR_RETURN(const std::unique_ptr<BlockVolumeMapper> mapper,
                   block->NewBlockVolumeMapper(request.spec, request.target.pod));
  ASSIGN_OR_RETURN(const SafePath map, mapper->GetGlobalMapPath(request.spec));
  return map.Below(request.target.key.pod.str()).Display();
}

Result<NodeResizeOptions> OptionsOf(VolumePlugin& plugin,
                                    const NodeExpandableVolumePlugin& expandable,
                                    const ExpandRequest& request,
                                    const std::optional<SafePath>& given, ExpandedVolume& result) {
  NodeResizeOptions options{.spec = request.spec,
                            .device_path = "",
                            .device_mount_path = {},
                            .device_stage_path = {},
                            .new_size = request.new_size,
                            .old_size = request.old_size};
  options.note = [&result](const std::string& note) { result.note = note; };
  const PersistentVolume* volume = request.spec.persistent_volume();
  if (volume == nullptr) return options;
  const bool is_block = volume->spec.volume_mode == VolumeMode::kBlock;
  DeviceMountableVolumePlugin* mountable = plugin.AsDeviceMountable();
  const bool needs_pod = expandable.NeedsPod(request.spec);
  if (needs_pod || (!is_block && mountable == nullptr)) {
    if (request.target.pod == nullptr) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               "no pod is known that has volume " + request.volume.str());
    }
    options.pod = request.target.key.pod;
  } else {
    options.csi_volume_phase = CsiVolumePhase::kStaged;
  }
  if (is_block) {
    if (needs_pod) {
      ASSIGN_OR_RETURN(options.device_path, MappedPathOf(plugin, request));
    }
    return options;
  }
  if (mountable != nullptr) {
    ASSIGN_OR_RETURN(options.device_stage_path, DevicePlaceOf(*mountable, request.spec, given));
  }
  options.device_mount_path = options.device_stage_path;
  if (!options.pod.empty()) {
    ASSIGN_OR_RETURN(options.device_mount_path, PodPlaceOf(plugin, request));
  }
  if (mountable == nullptr) options.device_stage_path = options.device_mount_path;
  return options;
}

Status CallPlugin(NodeExpandableVolumePlugin& plugin, const NodeResizeOptions& options,
                  const ExpansionDecision& decision, const CallOptions& call) {
  const Result<bool> done = plugin.NodeExpand(options, call);
  if (!done.ok()) {
    if (ClassifyExpansionFailure(done.error(), decision) != ExpansionEnd::kDone) {
      return done.error();
    }
    if (options.note) options.note("nothing is to be done on a node: " + done.error().message());
    return OkStatus();
  }
  if (*done) return OkStatus();
  return Error::MaybeApplied(Code::kUnavailable, "the volume is not of its new size yet");
}

// The messages of kubelet's events.
std::string ExpansionDoneText(const SpecName& spec, const NodeName& node, const std::string& note) {
  const std::string text =
      "MountVolume.NodeExpandVolume succeeded for volume \"" + spec.str() + "\" " + node.str();
  return note.empty() ? text : text + ": " + note;
}

std::string ExpansionFailedText(const SpecName& spec, const Error& error) {
  return "NodeExpandVolume.NodeExpandVolume failed for volume \"" + spec.str() +
         "\" : " + error.message();
}

}  // namespace

OperationKey ExpandKey(const UniqueVolumeName& volume) {
  return OperationKey(UniqueVolumeName("expand/" + volume.str()));
}

OperationTraits ExpandVolume::Traits(const OperationParts& parts) const {
  OperationTraits traits = TraitsOf(parts, key(), kExpandVolumeOperation, request.spec);
  traits.device = request.volume;
  traits.use = DeviceUse::kExclusive;
  traits.domain = DriverLaneOf(parts, request.spec);
  return traits;
}

void ExpandVolume::Tell(const OperationParts& parts,
                        const OperationOutcome<ExpandedVolume>& outcome) const {
  HostEvents& events = parts.host.events;
  const SpecName& spec = request.spec.name();
  const ExpansionAudience audience{request.pods, request.claim};
  if (outcome.failure) {
    TellOfExpansion(events, audience, EventType::kWarning, kVolumeResizeFailed,
                    ExpansionFailedText(spec, outcome.failure->error));
  } else {
    TellOfExpansion(events, audience, EventType::kNormal, kFileSystemResizeSuccessful,
                    ExpansionDoneText(spec, parts.host.node.GetNodeName(), outcome.value->note));
  }
}

Failure ExpandVolume::Run(const OperationParts& parts, OperationProgress& progress,
                          ExpandedVolume& result) const {
  const auto failed = [](const char* step, const Error& error) {
    return OperationFailure{kExpandVolumeOperation, step, error};
  };
  progress.EnterStep("FindPlugin");
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) return failed("FindPluginBySpec", plugin.error());
  NodeExpandableVolumePlugin* expandable = (*plugin)->AsNodeExpandable();
  if (expandable == nullptr) {
    return failed(
        "FindNodeExpandablePlugin",
        Error::NotApplied(Code::kUnimplemented, "volume plugin " + (*plugin)->GetPluginName() +
                                                    " makes no volumes larger on the node"));
  }
  const std::optional<DeviceRecord> record = parts.devices.Find(request.volume);
  const Result<NodeResizeOptions> options = OptionsOf(
      **plugin, *expandable, request, record ? GivenPlaceOf(*record) : std::nullopt, result);
  if (!options.ok()) return failed("GetDeviceMountPath", options.error());

  const int64_t target_bytes = request.new_size.Value();
  std::vector<Step> steps;
  steps.push_back({.name = "NodeExpand",
                   .timeout = parts.settings.node_expand,
                   .run = [&](const CallOptions& call) {
                     return CallPlugin(*expandable, *options, request.decision, call);
                   }});
  const bool has_place = !options->device_mount_path.root.empty();
  const bool has_mounted_device = has_place && (*plugin)->AsDeviceMountable() != nullptr;
  const CallOptions base =
      OperationCall(request.volume.str(), (*plugin)->FaultDomain(request.spec),
                    has_place ? options->device_mount_path.Display() : "", progress);
  DeviceStepRunner runner(parts.devices, parts.host.clock, progress, base);
  if (!record && !has_mounted_device) return runner.RunWithoutRecord(kExpandVolumeOperation, steps);
  if (!record) {
    return failed("FindRecord",
                  Error::NotApplied(Code::kFailedPrecondition, "volume " + request.volume.str() +
                                                                   " has no device on the node"));
  }
  steps.push_back({.name = "RecordSize", .run = [&](const CallOptions&) {
                     return parts.devices.SetSize(request.volume, target_bytes);
                   }});
  DeviceStateCall call{.operation = kExpandVolumeOperation,
                       .event = VolumeEvent::kExpand,
                       .facts = *record,
                       .steps = std::move(steps)};
  call.facts.target_bytes = target_bytes;
  call.facts.volume_json = EncodeRecordedVolume(request.spec);
  return runner.Run(call);
}

void TellOfExpansion(HostEvents& events, const ExpansionAudience& audience, EventType type,
                     const std::string& reason, const std::string& message) {
  for (const PodUid& pod : audience.pods) events.RecordPodEvent(pod, type, reason, message);
  const size_t slash = audience.claim.find('/');
  if (slash == std::string::npos) return;
  events.RecordObjectEvent({ObjectKind::kPersistentVolumeClaim, audience.claim.substr(0, slash),
                            audience.claim.substr(slash + 1)},
                           type, reason, message);
}

std::string ExpansionReadOnlyText(const SpecName& spec) {
  return "MountVolume.NodeExpandVolume failed for volume \"" + spec.str() +
         "\" requested read-only file system";
}

}  // namespace volumed
