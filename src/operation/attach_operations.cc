#include "operation/attach_operations.h"

#include <memory>
#include <utility>
#include <vector>

#include "mounter/host_directory.h"
#include "operation/attach_steps.h"
#include "operation/call_options.h"
#include "operation/device_facts.h"
#include "operation/device_operations.h"
#include "operation/device_use.h"
#include "operation/driver_storage.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/recorded_volume.h"
#include "operation/storage_steps.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (FailedAttachVolume,
// SuccessfulAttachVolume).
constexpr const char* kFailedAttach = "FailedAttachVolume";
constexpr const char* kLimitExceeded = "VolumeAttachmentLimitExceeded";
constexpr const char* kSuccessfulAttach = "SuccessfulAttachVolume";

Result<AttachableVolumePlugin*> RequireAttachable(VolumePlugin& plugin) {
  if (AttachableVolumePlugin* attachable = plugin.AsAttachable()) return attachable;
  return Error::NotApplied(Code::kUnimplemented, "volume plugin " + plugin.GetPluginName() +
                                                     " attaches no volumes to the node");
}

Result<DeviceRecord> RequireRecord(const DeviceRecordKeeper& devices,
                                   const UniqueVolumeName& device) {
  std::optional<DeviceRecord> record = devices.Find(device);
  if (record && record->attachable) return *std::move(record);
  return Error::NotApplied(Code::kFailedPrecondition,
                           "no record says that volume " + device.str() +
                               " was attached by this agent: it is left alone");
}

// A path that leads to no block device has nothing to flush: the device is gone, or the plugin
// attaches something else.
Status FlushIfDevice(Kernel& kernel, const std::string& path, const CallOptions& call) {
  if (!IsDevicePath(path)) return OkStatus();
  ASSIGN_OR_RETURN(const FileInfo info,
                   kernel.Call(Stat{.path = HostPath(path), .follow = true}, call));
  if (info.type != FileType::kBlockDevice) return OkStatus();
  RETURN_IF_ERROR(kernel.Call(FlushDevice{path}, call));
  return OkStatus();
}

// Of a question, or of a flush: without an answer, too, the volume is as attached as it was.
Status ChangedNothing(const Status& done) {
  if (done.ok() || !done.error().maybe_applied()) return done;
  const Error& error = done.error();
  return Error::FromParts(error.code(), Outcome::kNotApplied, error.sys_errno(), error.message());
}

// What was done cannot be undone by saying that it could not be written down.
Status RecordPath(DeviceRecordKeeper& devices, const UniqueVolumeName& device,
                  const std::string& path) {
  const Status recorded = devices.SetDevicePath(device, path);
  return recorded.ok() ? recorded : Status(recorded.error().AsMaybeApplied());
}

// Nobody calls a driver for a volume that has to wait once it is attached.
Status CheckVolumeMode(const OperationParts& parts, DeviceRecord wanted, const VolumeSpec& spec) {
  wanted.is_block = IsBlockVolume(spec);
  wanted.device_mount_path.clear();
  return CheckNotHadOtherwise(parts, wanted, nullptr);
}

// What is at the device's own place is looked for there, whoever has mounted it.
Status CheckNoneUnrecorded(const OperationParts& parts, const DeviceRecord& device,
                           const CallOptions& call) {
  return parts.unrecorded->CheckNone({device.key, device.plugin_name, device.spec},
                                     parts.host.kernel, call,
                                     [&device](const UnrecordedMounts::Mounted& mounted) {
                                       return mounted.place != device.device_mount_path;
                                     });
}

Failure FailedAt(const char* operation, const char* step, const Error& error) {
  return OperationFailure{operation, step, error};
}

}  // namespace

OperationTraits AttachVolume::Traits(const OperationParts& parts) const {
  OperationTraits traits = TraitsOf(parts, key(), kAttachOperation, request.spec);
  traits.device = request.device;
  traits.use = DeviceUse::kExclusive;
  traits.domain = DriverLaneOf(parts, request.spec);
  return traits;
}

// The node has no place for the volume, says its driver. Source: kubernetes
// pkg/kubelet/volumemanager/volume_manager.go@v1.36.2 (VolumeAttachLimitExceededError), by which
// kubelet fails the pod; here it waits for a slot.
bool IsExhausted(const OperationParts& parts, const VolumeSpec& spec) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  if (!plugin.ok()) return false;
  const AttachableVolumePlugin* attachable = (*plugin)->AsAttachable();
  return attachable != nullptr && attachable->VerifyExhaustedResource(spec);
}

// Source: operation_generator.go@v1.36.2 (GenerateAttachVolumeFunc).
void AttachVolume::Tell(const OperationParts& parts,
                        const OperationOutcome<AttachedVolume>& outcome) const {
  const std::string of = " for volume \"" + request.spec.name().str() + "\" ";
  const char* const reason =
      outcome.failure && IsExhausted(parts, request.spec) ? kLimitExceeded : kFailedAttach;
  for (const PodUid& pod : request.pods) {
    if (outcome.failure) {
      parts.host.events.RecordPodEvent(pod, EventType::kWarning, reason,
                                       "AttachVolume." + outcome.failure->step + " failed" + of +
                                           ": " + outcome.failure->error.message());
    } else {
      parts.host.events.RecordPodEvent(pod, EventType::kNormal, kSuccessfulAttach,
                                       "AttachVolume.Attach succeeded" + of);
    }
  }
}

Failure AttachVolume::Run(const OperationParts& parts, OperationProgress& progress,
                          AttachedVolume& result) const {
  const auto failed = [](const char* step, const Error& error) {
    return FailedAt(kAttachOperation, step, error);
  };
  progress.EnterStep("FindPlugin");
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) return failed("FindPluginBySpec", plugin.error());
  const Result<AttachableVolumePlugin*> attachable = RequireAttachable(**plugin);
  if (!attachable.ok()) return failed("NewAttacher", attachable.error());
  const Result<std::unique_ptr<Attacher>> attacher = (*attachable)->NewAttacher();
  if (!attacher.ok()) return failed("NewAttacher", attacher.error());
  const Result<SafePath> place = (*attacher)->GetDeviceMountPath(request.spec);
  if (!place.ok()) return failed("GetDeviceMountPath", place.error());

  DeviceStateCall call{.operation = kAttachOperation,
                       .event = VolumeEvent::kAttach,
                       .facts = DeviceFactsOf(request.device, **plugin, request.spec, *place),
                       .steps = {}};
  if (const Status is_free = CheckVolumeMode(parts, call.facts, request.spec); !is_free.ok()) {
    return failed(kCheckPlaceStep, is_free.error());
  }
  call.facts.attachable = true;
  call.facts.limit_key = request.limit_key;
  call.facts.rest_of_mount = request.found_mounted;
  AddReserveDriverStorage(parts, request.device, request.spec, call.steps);
  call.steps.push_back(
      {.name = "Attach",
       .timeout = parts.settings.attach,
       .run = [&](const CallOptions& options) -> Status {
         ASSIGN_OR_RETURN(
             result.device_path,
             (*attacher)->Attach(request.spec, parts.host.node.GetNodeName(), options));
         return RecordPath(parts.devices, request.device, result.device_path);
       }});
  DeviceStepRunner runner(
      parts.devices, parts.host.clock, progress,
      OperationCall(request.device.str(), call.facts.fault_domain, "", progress));
  if (Failure failure = runner.Run(call)) {
    ReleaseDriverStorageIfGone(parts, request.device);
    return failure;
  }
  result.plugin_name = call.facts.plugin_name;
  return std::nullopt;
}

OperationTraits DetachVolume::Traits(const OperationParts& parts) const {
  const std::optional<DeviceRecord> record = parts.devices.Find(request.device);
  OperationTraits traits =
      DeviceTraits(request.device, kDetachOperation, request.plugin_name, record);
  if (record && IsDriverDomain(record->fault_domain)) {
    traits.domain = {record->fault_domain, ""};
    traits.takes_away = true;
  }
  traits.finishes = true;
  return traits;
}

Failure DetachVolume::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  const auto failed = [](const char* step, const Error& error) {
    return FailedAt(kDetachOperation, step, error);
  };
  progress.EnterStep("FindPlugin");
  const Result<DeviceRecord> record = RequireRecord(parts.devices, request.device);
  if (!record.ok()) return failed("FindRecord", record.error());
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginForTeardown(record->plugin_name);
  if (!plugin.ok()) return failed("FindPluginByName", plugin.error());
  const Result<AttachableVolumePlugin*> attachable = RequireAttachable(**plugin);
  if (!attachable.ok()) return failed("NewDetacher", attachable.error());
  const Result<std::unique_ptr<Detacher>> detacher = (*attachable)->NewDetacher();
  if (!detacher.ok()) return failed("NewDetacher", detacher.error());
  const Result<UniqueNameParts> name = SplitUniqueName(request.device);
  if (!name.ok()) return failed("GetVolumeName", name.error());

  DeviceStateCall call{
      .operation = kDetachOperation, .event = VolumeEvent::kDetach, .facts = *record, .steps = {}};
  call.steps.push_back({.name = "CheckDeviceUnused",
                        .timeout = parts.settings.detach,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) {
                          return ChangedNothing(CheckDeviceUnused(parts, *record, options));
                        }});
  call.steps.push_back({.name = "FlushDevice",
                        .timeout = parts.settings.detach,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) {
                          return ChangedNothing(
                              FlushIfDevice(parts.host.kernel, record->device_path, options));
                        }});
  const std::optional<VolumeSpec> recorded = ReadRecordedVolume(record->volume_json);
  call.steps.push_back(
      {.name = "Detach", .timeout = parts.settings.detach, .run = [&](const CallOptions& options) {
         const NodeName node = parts.host.node.GetNodeName();
         if (!recorded) {
           return (*detacher)->Detach(name->volume_name, node, options);
         }
         return (*detacher)->DetachRecorded(*recorded, name->volume_name, node, options);
       }});
  DeviceStepRunner runner(parts.devices, parts.host.clock, progress,
                          OperationCall(request.device.str(), record->fault_domain, "", progress));
  if (Failure failure = runner.Run(call)) return failure;
  return ReleaseStorage(parts.storage, DriverStorageId(request.device), kDetachOperation);
}

// ---- are they attached? -------------------------------------------------------------------------

namespace {

Result<std::vector<bool>> AskWhetherAttached(AttachableVolumePlugin& plugin,
                                             const std::vector<VolumeSpec>& specs,
                                             const NodeName& node, const CallOptions& call) {
  if (BulkVolumeVerifier* bulk = plugin.AsBulkVolumeVerifier()) {
    ASSIGN_OR_RETURN(const BulkVolumeVerifier::AttachedByNode answer,
                     bulk->BulkVerifyVolumes({{node, specs}}, call));
    const auto of_node = answer.find(node);
    return of_node == answer.end() ? std::vector<bool>() : of_node->second;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Attacher> attacher, plugin.NewAttacher());
  return attacher->VolumesAreAttached(specs, node, call);
}

// What kubelet calls the question: it is another one where the plugin has a BulkVolumeVerifier.
const char* VerifyAttachedOperationName(const VolumePluginMgr& plugins,
                                        const std::string& plugin_name) {
  const Result<AttachableVolumePlugin*> plugin = plugins.FindAttachablePluginByName(plugin_name);
  const bool in_bulk =
      plugin.ok() && *plugin != nullptr && (*plugin)->AsBulkVolumeVerifier() != nullptr;
  return in_bulk ? kBulkVerifyAttachedOperation : kVerifyAttachedOperation;
}

}  // namespace

OperationKey VerifyAttachedKey(const std::string& plugin_name) {
  return OperationKey(UniqueVolumeName("verify/" + plugin_name));
}

OperationTraits VerifyVolumesAreAttached::Traits(const OperationParts& parts) const {
  return {.key = key(),
          .name = VerifyAttachedOperationName(parts.plugins, request.plugin_name),
          .plugin_name = request.plugin_name,
          .pod_display_name = ""};
}

Failure VerifyVolumesAreAttached::Run(const OperationParts& parts, OperationProgress& progress,
                                      VerifiedAttachments& result) const {
  progress.EnterStep("FindPlugin");
  const char* operation = VerifyAttachedOperationName(parts.plugins, request.plugin_name);
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginByName(request.plugin_name);
  if (!plugin.ok()) return FailedAt(operation, "FindPluginByName", plugin.error());
  const Result<AttachableVolumePlugin*> attachable = RequireAttachable(**plugin);
  if (!attachable.ok()) return FailedAt(operation, "NewAttacher", attachable.error());
  std::vector<VolumeSpec> specs;
  for (const VolumeToVerify& volume : request.volumes) specs.push_back(volume.spec);
  const Step ask{
      .name = "VolumesAreAttached",
      .timeout = parts.settings.verify_attached,
      .changes_volume = false,
      .run = [&](const CallOptions& options) -> Status {
        ASSIGN_OR_RETURN(
            const std::vector<bool> attached,
            AskWhetherAttached(**attachable, specs, parts.host.node.GetNodeName(), options));
        if (attached.size() != specs.size()) {
          return Error::NotApplied(Code::kInternal,
                                   "volume plugin " + request.plugin_name + " was asked of " +
                                       std::to_string(specs.size()) + " volumes and answered for " +
                                       std::to_string(attached.size()));
        }
        for (size_t i = 0; i < attached.size(); ++i) {
          result[request.volumes[i].device] = attached[i];
        }
        return OkStatus();
      }};
  const std::string key = "verify/" + request.plugin_name;
  DeviceStepRunner runner(parts.devices, parts.host.clock, progress,
                          OperationCall(key, key, "", progress));
  return runner.RunWithoutRecord(operation, {ask});
}

// ---- parts of other operations ------------------------------------------------------------------

Status AddWaitForAttach(const OperationParts& parts, VolumePlugin& plugin,
                        const MountDeviceRequest& request, bool as_recorded,
                        std::string& device_path, std::vector<Step>& steps) {
  if (!request.attachable) return OkStatus();
  ASSIGN_OR_RETURN(AttachableVolumePlugin * attachable, RequireAttachable(plugin));
  ASSIGN_OR_RETURN(std::unique_ptr<Attacher> made, attachable->NewAttacher());
  if (const auto record = parts.devices.Find(request.device)) device_path = record->device_path;
  if (as_recorded) return OkStatus();
  // Waiting may log in to a target: from here on only UnmountDevice takes it back.
  steps.push_back({.name = "WaitForAttach",
                   .timeout = parts.settings.wait_for_attach,
                   .changes_volume = true,
                   .run = [&parts, &request, &device_path,
                           attacher = std::shared_ptr<Attacher>(std::move(made))](
                              const CallOptions& options) -> Status {
                     ASSIGN_OR_RETURN(device_path,
                                      attacher->WaitForAttach(request.spec, device_path,
                                                              *request.first_pod, options));
                     return RecordPath(parts.devices, request.device, device_path);
                   }});
  return OkStatus();
}

Status CheckDeviceUnused(const OperationParts& parts, const DeviceRecord& device,
                         const CallOptions& call) {
  RETURN_IF_ERROR(CheckNoPodHas(*parts.volumes, device.key));
  RETURN_IF_ERROR(CheckNoneUnrecorded(parts, device, call));
  ASSIGN_OR_RETURN(const MountListing there,
                   parts.host.kernel.Call(ListMounts{.below = device.device_mount_path}, call));
  if (!there.mounts.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the device is still mounted at " + there.mounts.front().mount_point);
  }
  if (!IsDevicePath(device.device_path)) return OkStatus();
  return CheckDeviceLetGo(parts.host.kernel, MountedSource{device.device_path, 0, 0}, call);
}

}  // namespace volumed
