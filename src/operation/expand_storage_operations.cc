#include "operation/expand_storage_operations.h"

#include "operation/call_options.h"
#include "operation/device_facts.h"
#include "operation/expand_operations.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"

namespace volumed {
namespace {

constexpr const char* kStep = "ExpandVolumeDevice";

// Source: external-resizer@v2.1 pkg/util/events.go.
constexpr const char* kVolumeResizeSuccessful = "VolumeResizeSuccessful";
constexpr const char* kFileSystemResizeRequired = "FileSystemResizeRequired";

// Nothing of the volume may be attached to the node, or be in a pod, by the records of both, nor be
// mounted as what a pod or device has left whose records are lost.
Status CheckUnused(const OperationParts& parts, const ExpandStorageRequest& request,
                   const VolumePlugin& plugin, const CallOptions& call) {
  const UniqueVolumeName& volume = request.volume;
  const std::optional<DeviceRecord> device = parts.devices.Find(volume);
  if (device && !IsGone(*device)) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "volume " + volume.str() + " is on the node, and its storage is made larger only unused");
  }
  if (parts.volumes != nullptr) RETURN_IF_ERROR(CheckNoPodHas(*parts.volumes, volume));
  return parts.unrecorded->CheckNone({volume, plugin.GetPluginName(), request.spec.name()},
                                     parts.host.kernel, call,
                                     [](const UnrecordedMounts::Mounted&) { return true; });
}

Result<ExpandedStorage> Expand(const OperationParts& parts, const ExpandStorageRequest& request,
                               OperationProgress& progress) {
  ASSIGN_OR_RETURN(ExpandableVolumePlugin * plugin,
                   parts.plugins.FindExpandablePluginBySpec(request.spec));
  if (plugin == nullptr || !plugin->ExpandsStorage(request.spec)) {
    return Error::NotApplied(
        Code::kUnimplemented,
        "nothing on this node makes the storage of volume " + request.volume.str() + " larger");
  }
  CallOptions call = OperationCall(ExpandStorageKey(request.volume).ToString(),
                                   plugin->plugin().FaultDomain(request.spec), "", progress);
  call.deadline = Deadline::After(parts.host.clock, parts.settings.expand_storage);
  if (plugin->ExpandsOnlyUnused(request.spec)) {
    RETURN_IF_ERROR(CheckUnused(parts, request, plugin->plugin(), call));
  }
  ASSIGN_OR_RETURN(const ExpandedStorage expanded,
                   plugin->ExpandStorage(request.spec, request.new_size, request.old_size, call));
  if (expanded.size < request.new_size) {
    return Error::MaybeApplied(Code::kInternal, "its storage was to get " +
                                                    request.new_size.String() + ", and has " +
                                                    expanded.size.String());
  }
  return expanded;
}

}  // namespace

OperationKey ExpandStorageKey(const UniqueVolumeName& volume) {
  return OperationKey(UniqueVolumeName("expand-storage/" + volume.str()));
}

OperationTraits ExpandStorage::Traits(const OperationParts& parts) const {
  OperationTraits traits = TraitsOf(parts, key(), kExpandStorageOperation, request.spec);
  traits.device = request.volume;
  traits.use = DeviceUse::kExclusive;
  traits.domain = DriverLaneOf(parts, request.spec);
  return traits;
}

std::optional<OperationFailure> ExpandStorage::Run(const OperationParts& parts,
                                                   OperationProgress& progress,
                                                   ExpandedStorage& result) const {
  progress.EnterStep(kStep);
  const Result<ExpandedStorage> expanded = Expand(parts, request, progress);
  if (!expanded.ok()) {
    return OperationFailure{kExpandStorageOperation, kStep, expanded.error()};
  }
  result = *expanded;
  return std::nullopt;
}

void ExpandStorage::Tell(const OperationParts& parts,
                         const OperationOutcome<ExpandedStorage>& outcome) const {
  const ExpansionAudience claim{{}, request.claim};
  if (outcome.failure) {
    return TellOfExpansion(parts.host.events, claim, EventType::kWarning, kVolumeResizeFailed,
                           "resize volume \"" + request.spec.name().str() +
                               "\" failed: " + outcome.failure->error.message());
  }
  if (outcome.value->needs_node) {
    return TellOfExpansion(parts.host.events, claim, EventType::kNormal, kFileSystemResizeRequired,
                           "Require file system resize of volume on node");
  }
  TellOfExpansion(parts.host.events, claim, EventType::kNormal, kVolumeResizeSuccessful,
                  "Resize volume succeeded");
}

}  // namespace volumed
