#include "operation/map_device_operations.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "blockmapper/volume_path_handler.h"
#include "mounter/host_directory.h"
#include "operation/as_recorded.h"
#include "operation/attach_steps.h"
#include "operation/block_plugins.h"
#include "operation/call_options.h"
#include "operation/device_facts.h"
#include "operation/device_operations.h"
#include "operation/device_use.h"
#include "operation/driver_storage.h"
#include "operation/given_place.h"
#include "operation/operation_parts.h"
#include "operation/pin_operations.h"
#include "operation/place_steps.h"
#include "operation/step_runner.h"
#include "pluginmgr/block_volume_plugin.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

constexpr uint32_t kMapDirectoryMode = 0750;
// What is to be written was written before.
constexpr std::chrono::seconds kCloses{2};

// ---- set-up -------------------------------------------------------------------------------------

Failure FailedSetUp(const char* step, const Error& error) {
  return OperationFailure{kMapDeviceOperation, step, error};
}

// What the steps of one set-up go by.
struct DeviceSetUp {
  BlockVolumePlugin* plugin = nullptr;
  std::unique_ptr<BlockVolumeMapper> mapper = nullptr;
  SafePath global_map_path = {};
  std::string device_path = {};  // of an attached volume, once it is there
  bool as_recorded = false;      // see as_recorded.h
};

Failure FindDeviceMapper(const OperationParts& parts, const MountDeviceRequest& request,
                         DeviceSetUp& set_up) {
  const Result<BlockVolumePlugin*> plugin = FindBlockVolumePlugin(parts.plugins, request.spec);
  if (!plugin.ok()) return FailedSetUp("FindMapperPluginBySpec", plugin.error());
  Result<std::unique_ptr<BlockVolumeMapper>> mapper =
      (*plugin)->NewBlockVolumeMapper(request.spec, request.first_pod);
  if (!mapper.ok()) return FailedSetUp("NewBlockVolumeMapper", mapper.error());
  const Result<SafePath> path =
      request.place ? *request.place : (*mapper)->GetGlobalMapPath(request.spec);
  if (!path.ok()) return FailedSetUp("GetGlobalMapPath", path.error());
  set_up.plugin = *plugin;
  set_up.mapper = *std::move(mapper);
  set_up.global_map_path = *path;
  return std::nullopt;
}

// Errors: those of CheckNotElsewhere and CheckNotHadOtherwise. What is only to be proven to be
// there as it is on record gets no call of the driver.
Status CheckMapPlace(const OperationParts& parts, const DeviceSetUp& set_up,
                     const DeviceRecord& wanted) {
  RETURN_IF_ERROR(CheckNotElsewhere(parts.devices, wanted));
  if (set_up.as_recorded) return OkStatus();
  return CheckNotHadOtherwise(parts, wanted, [&set_up](const VolumeSpec& spec) {
    return set_up.mapper->GetGlobalMapPath(spec);
  });
}

// Errors: those of AddWaitForAttach. `parts`, `request` and `set_up` outlive the steps.
Status AddSetUpSteps(const OperationParts& parts, const MountDeviceRequest& request,
                     DeviceSetUp& set_up, std::vector<Step>& steps) {
  if (!request.attachable) AddReserveDriverStorage(parts, request.device, request.spec, steps);
  RETURN_IF_ERROR(AddWaitForAttach(parts, set_up.plugin->plugin(), request, set_up.as_recorded,
                                   set_up.device_path, steps));
  AddCheckPlaceOfDevice(parts, request, steps);
  if (CustomBlockVolumeMapper* custom = set_up.mapper->AsCustom()) {
    const bool as_recorded = set_up.as_recorded;
    steps.push_back({.name = "SetUpDevice",
                     .timeout = parts.settings.mount_device,
                     .run = [custom, as_recorded](const CallOptions& options) -> Status {
                       if (as_recorded) {
                         const auto proven = custom->SetUpDeviceAsRecorded(options);
                         return proven.ok() ? OkStatus() : AsProof(proven.error());
                       }
                       RETURN_IF_ERROR(custom->SetUpDevice(options));
                       return OkStatus();
                     }});
  }
  if (request.place) return OkStatus();
  steps.push_back({.name = "MakeGlobalMapPath",
                   .timeout = parts.settings.mount_device,
                   .run = [&](const CallOptions& options) -> Status {
                     RETURN_IF_ERROR(
                         parts.host.kernel.Call(MakeDirectory{.path = set_up.global_map_path,
                                                              .mode = kMapDirectoryMode,
                                                              .parent_mode = kMapDirectoryMode},
                                                OnOwnFilesystem(options)));
                     return OkStatus();
                   }});
  return OkStatus();
}

// ---- teardown -----------------------------------------------------------------------------------

// No answer says nothing of the device: it may hang, and then so would the close. Any other failure
// is the device's end, or its error, which no waiting mends.
bool MayStillAnswer(const Error& error) {
  return error.code() == Code::kDeadlineExceeded || error.code() == Code::kUnavailable ||
         error.code() == Code::kCancelled;
}

// A device that has grown since pods were given it is the same one: only its size is that of now.
Result<Done> FlushMappedDevice(const OperationParts& parts, const DeviceRecord& facts,
                               const CallOptions& call) {
  const std::string& path = facts.mapped->path;
  ASSIGN_OR_RETURN(const IdentifiedDevice device,
                   parts.host.kernel.Call(IdentifyDevice{HostPath(path)}, call));
  RETURN_IF_ERROR(CheckMappedDevice(facts, device));
  return parts.host.kernel.Call(FlushDevice{path, device.facts.identity}, call);
}

// The last to close a device waits until what was written is on it: a worker waits for that first.
Status ReleaseDevice(const OperationParts& parts, const DeviceRecord& facts,
                     const CallOptions& call) {
  if (facts.mapped && parts.pins->Has(facts.key)) {
    const Result<Done> flushed = FlushMappedDevice(parts, facts, call);
    if (!flushed.ok() && MayStillAnswer(flushed.error())) return flushed.error();
    if (!flushed.ok()) {
      parts.logger.Warning("what pods wrote to a block volume may not all be on its device",
                           {{"volume", facts.key}, {"error", flushed.error()}});
    }
  }
  if (parts.pins->Release(facts.key, kCloses)) return OkStatus();
  return Error::NotApplied(Code::kUnavailable,
                           "the device of volume " + facts.key.str() +
                               " is not closed yet: its disk does not answer, or somebody has "
                               "stopped the process volumed-keeper that has it");
}

Status CheckNobodyHasTheDevice(const OperationParts& parts, const DeviceRecord& device,
                               const SafePath& map_path, const CallOptions& call) {
  RETURN_IF_ERROR(CheckNoPodHas(parts, device, call));
  const CallOptions look = GivenPlaceOf(device) ? OnPath(call, map_path) : call;
  ASSIGN_OR_RETURN(const std::vector<std::string> refs,
                   VolumePathHandler(parts.host.kernel).GetDeviceBindMountRefs(map_path, look));
  if (refs.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the device \"" + map_path.Display() +
                               "\" is still referenced from other Pods [" + Join(refs, " ") + "]");
}

// `detaches`: the plugin takes the device from the node afterwards.
std::vector<Step> DeviceUnmappingSteps(const OperationParts& parts, const DeviceRecord& facts,
                                       const SafePath& map_path, BlockVolumeUnmapper& unmapper,
                                       bool detaches) {
  std::vector<Step> steps;
  steps.push_back({.name = "GetDeviceBindMountRefs",
                   .timeout = parts.settings.unmount_device,
                   .changes_volume = false,
                   .run = [&](const CallOptions& call) {
                     return CheckNobodyHasTheDevice(parts, facts, map_path, call);
                   }});
  steps.push_back(
      {.name = "ReleaseDevice",
       .timeout = parts.settings.unmount_device,
       .changes_volume = false,
       .run = [&](const CallOptions& call) { return ReleaseDevice(parts, facts, call); }});
  if (CustomBlockVolumeUnmapper* custom = unmapper.AsCustom()) {
    steps.push_back({.name = "TearDownDevice",
                     .timeout = parts.settings.unmount_device,
                     .run = [&, custom](const CallOptions& call) {
                       return custom->TearDownDevice(map_path,
                                                     facts.mapped ? facts.mapped->path : "", call);
                     }});
  }
  // The directory that a CO gave is its own.
  if (!GivenPlaceOf(facts)) {
    steps.push_back({.name = "RemoveMapPath",
                     .timeout = parts.settings.unmount_device,
                     .run = [&](const CallOptions& call) {
                       return VolumePathHandler(parts.host.kernel)
                           .RemoveMapPath(map_path, OnOwnFilesystem(call));
                     }});
  }
  if (facts.mapped) {
    const DeviceIdentity& device = facts.mapped->device;
    const MountedSource source{facts.mapped->path, device.device_major, device.device_minor};
    steps.push_back({.name = "CheckDeviceUse",
                     .timeout = parts.settings.unmount_device,
                     .changes_volume = false,
                     .run = [&parts, &facts, source, detaches](const CallOptions& call) {
                       return CheckReleasedDevice(parts.host.kernel, parts.logger,
                                                  {facts.key, source, detaches}, call);
                     }});
  }
  return steps;
}

}  // namespace

Failure RunSetUpDevice(const OperationParts& parts, const MountDeviceRequest& request,
                       OperationProgress& progress, MountedDevice& result) {
  progress.EnterStep("FindPlugin");
  DeviceSetUp set_up;
  if (Failure missing = FindDeviceMapper(parts, request, set_up)) return missing;

  VolumePlugin& plugin = set_up.plugin->plugin();
  DeviceStateCall call{
      .operation = kMapDeviceOperation,
      .event = VolumeEvent::kMountDevice,
      .facts = DeviceFactsOf(request.device, plugin, request.spec, set_up.global_map_path),
      .steps = {}};
  call.facts.is_block = true;
  if (request.place) call.facts.place_root = request.place->root;
  set_up.as_recorded = IsProvenAsRecorded(parts, request, plugin);
  if (const Status is_free = CheckMapPlace(parts, set_up, call.facts); !is_free.ok()) {
    return FailedSetUp(kCheckPlaceStep, is_free.error());
  }
  call.facts.attachable = request.attachable;
  if (const Status added = AddSetUpSteps(parts, request, set_up, call.steps); !added.ok()) {
    return FailedSetUp("NewAttacher", added.error());
  }
  DeviceStepRunner runner(
      parts.devices, parts.host.clock, progress,
      OperationCall(request.device.str(), call.facts.fault_domain, "", progress));
  if (Failure failure = runner.Run(call)) {
    if (!request.attachable) ReleaseDriverStorageIfGone(parts, request.device);
    return failure;
  }
  result.plugin_name = call.facts.plugin_name;
  result.device_mount_path = set_up.global_map_path.Display();
  result.device_path = set_up.device_path;
  return std::nullopt;
}

Failure RunUnmapDevice(const OperationParts& parts, const DeviceRecord& facts,
                       OperationProgress& progress) {
  const auto failed = [](const char* step, const Error& error) {
    return OperationFailure{kUnmapDeviceOperation, step, error};
  };
  const std::string name = facts.plugin_name;
  const Result<BlockVolumePlugin*> plugin = FindBlockVolumePlugin(parts.plugins, name);
  if (!plugin.ok()) return failed("FindMapperPluginByName", plugin.error());
  // Of no pod: it is the device's end. Source: GenerateUnmapDeviceFunc.
  const Result<std::unique_ptr<BlockVolumeUnmapper>> unmapper =
      MakeBlockVolumeUnmapper(**plugin, facts.spec, PodUid(), facts.volume_json);
  if (!unmapper.ok()) return failed("NewBlockVolumeUnmapper", unmapper.error());
  const Result<SafePath> path = PlaceOfDevice(parts.host.paths, facts);
  if (!path.ok()) return failed("GetGlobalMapPath", path.error());

  const bool detaches = IsDetachedNext((*plugin)->plugin(), facts);
  const DeviceStateCall call{
      .operation = kUnmapDeviceOperation,
      .event = VolumeEvent::kUnmountDevice,
      .facts = facts,
      .steps = DeviceUnmappingSteps(parts, facts, *path, **unmapper, detaches)};
  DeviceStepRunner runner(parts.devices, parts.host.clock, progress,
                          OperationCall(facts.key.str(), facts.fault_domain, "", progress));
  if (Failure failure = runner.Run(call)) return failure;
  return ReleaseDeviceStorage(parts, facts, kUnmapDeviceOperation);
}

}  // namespace volumed
