#include "operation/device_operations.h"

#include <memory>
#include <string>
#include <utility>

#include "base/strings.h"
#include "mounter/mount_refs.h"
#include "operation/as_recorded.h"
#include "operation/attach_steps.h"
#include "operation/call_options.h"
#include "operation/device_facts.h"
#include "operation/device_use.h"
#include "operation/driver_storage.h"
#include "operation/given_place.h"
#include "operation/map_device_operations.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/place_steps.h"
#include "operation/recorded_volume.h"
#include "operation/step_runner.h"
#include "operation/storage_steps.h"
#include "pluginmgr/device_mountable_volume_plugin.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

Error MountsNoDevices(const std::string& plugin) {
  return Error::NotApplied(Code::kUnimplemented,
                           "volume plugin " + plugin + " mounts no devices on the node");
}

// What is known of a device that is to be unmounted, by its record or else by the request.
DeviceRecord FactsOf(const UnmountDeviceRequest& request, const DeviceRecordKeeper& devices) {
  std::optional<DeviceRecord> record = devices.Find(request.device);
  // Where a device was that has left its place is nothing to go by, if a CO names another one.
  if (record && !(request.place && IsGone(*record))) return *std::move(record);
  DeviceRecord facts = record.value_or(DeviceRecord());
  facts.key = request.device;
  facts.plugin_name = request.plugin_name;
  facts.spec = request.spec;
  facts.device_mount_path = request.device_mount_path;
  facts.is_block = request.is_block;
  facts.place_root = request.place ? request.place->root : "";
  if (request.constructed) facts.volume_json = EncodeRecordedVolume(*request.constructed);
  facts.fault_domain = FaultDomainOf(request, devices);
  return facts;
}

// Nobody takes away what somebody else has had put elsewhere: a CO a device that pods have, or the
// volume manager a CO's.
Status CheckOfSameOwner(const UnmountDeviceRequest& request, const DeviceRecord& facts) {
  if (GivenPlaceOf(facts).has_value() == request.place.has_value()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + facts.key.str() + " is " +
                               std::string(VolumeStateName(facts.state)) + " at " +
                               facts.device_mount_path +
                               (request.place ? ", and not at a place that was given for it"
                                              : ", a place that was given for it"));
}

Status CheckNobodyHasIt(const OperationParts& parts, DeviceMountableVolumePlugin& plugin,
                        const DeviceRecord& device, const SafePath& path, const CallOptions& call) {
  RETURN_IF_ERROR(CheckNoPodHas(parts, device, call));
  ASSIGN_OR_RETURN(std::vector<std::string> others, plugin.GetDeviceMountRefs(path, call));
  // Two volumes of one disk have a mount each: neither keeps the other one's from going.
  std::erase_if(others, [&](const std::string& place) {
    return parts.devices.IsMountPath(place) && place != path.Display();
  });
  if (others.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, "the device mount path \"" + path.Display() +
                                                          "\" is still mounted by other "
                                                          "references [" +
                                                          Join(others, " ") + "]");
}

// What an agent that ended amid the mount may have left of it; else two volumes of one disk, each
// of which may have it, would keep each other out for ever. An unfinished mkfs may be at work
// still.
bool IsCertainlyUnmounted(const OperationParts& parts, const DeviceRecord& left,
                          const SafePath& path) {
  if (left.format && !left.format->finished) return false;
  const auto mount = FindMountAt(parts.host.kernel, path.Display(), CallOptions{});
  return mount.ok() && !*mount;
}

// `parts` and `request` outlive the answer.
DeviceMounterArgs ArgsFor(const OperationParts& parts, const MountDeviceRequest& request) {
  DeviceMounterArgs args;
  args.fs_group = request.fs_group;
  args.selinux_label = request.selinux_label;
  args.some_pods_only_read = request.some_pods_only_read;
  args.grow_to = request.grow_to;
  args.event = [&parts, &request](EventType type, const std::string& reason,
                                  const std::string& message) {
    // Events end with their pods; that a disk was formatted does not.
    parts.logger.Info("a volume's disk",
                      {{"volume", request.device}, {"reason", reason}, {"message", message}});
    for (const PodUid& pod : request.pods) {
      parts.host.events.RecordPodEvent(pod, type, reason, message);
    }
  };
  return args;
}

Failure FailedMount(const char* step, const Error& error) {
  return OperationFailure{kMountDeviceOperation, step, error};
}

// What the steps of one mount go by.
struct DeviceMounting {
  VolumePlugin* plugin = nullptr;
  std::unique_ptr<DeviceMounter> mounter = nullptr;
  SafePath path = {};
  std::string device_path = {};  // of an attached volume, once it is there
  bool as_recorded = false;      // see as_recorded.h
};

Failure FindDeviceMounter(const OperationParts& parts, const MountDeviceRequest& request,
                          DeviceMounting& mounting) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (!plugin.ok()) return FailedMount("FindPluginBySpec", plugin.error());
  DeviceMountableVolumePlugin* mountable = (*plugin)->AsDeviceMountable();
  if (mountable == nullptr) {
    return FailedMount("NewDeviceMounter", MountsNoDevices((*plugin)->GetPluginName()));
  }
  Result<std::unique_ptr<DeviceMounter>> mounter = mountable->NewDeviceMounter();
  if (!mounter.ok()) return FailedMount("NewDeviceMounter", mounter.error());
  const Result<SafePath> path =
      request.place ? *request.place : (*mounter)->GetDeviceMountPath(request.spec);
  if (!path.ok()) return FailedMount("GetDeviceMountPath", path.error());
  mounting.plugin = *plugin;
  mounting.mounter = *std::move(mounter);
  mounting.path = *path;
  return std::nullopt;
}

// Errors: those of CheckNotElsewhere and CheckNotHadOtherwise. What is only to be proven to be
// there as it is on record gets no call of the driver.
Status CheckPlace(const OperationParts& parts, const DeviceMounting& mounting,
                  const DeviceRecord& wanted) {
  RETURN_IF_ERROR(CheckNotElsewhere(parts.devices, wanted));
  if (mounting.as_recorded) return OkStatus();
  return CheckNotHadOtherwise(parts, wanted, [&mounting](const VolumeSpec& spec) {
    return mounting.mounter->GetDeviceMountPath(spec);
  });
}

// Errors: those of AddWaitForAttach. `parts`, `request` and `mounting` outlive the steps.
Status AddMountingSteps(const OperationParts& parts, const MountDeviceRequest& request,
                        DeviceMounting& mounting, std::vector<Step>& steps) {
  if (!request.attachable) AddReserveDriverStorage(parts, request.device, request.spec, steps);
  RETURN_IF_ERROR(AddWaitForAttach(parts, *mounting.plugin, request, mounting.as_recorded,
                                   mounting.device_path, steps));
  AddCheckPlaceOfDevice(parts, request, steps);
  steps.push_back({.name = "MountDevice",
                   .timeout = parts.settings.mount_device,
                   .run = [&](const CallOptions& options) {
                     DeviceMounterArgs args = ArgsFor(parts, request);
                     args.as_recorded = mounting.as_recorded;
                     args.call = options;
                     Status mounted = mounting.mounter->MountDevice(
                         request.spec, mounting.device_path, mounting.path, args);
                     return mounting.as_recorded ? AsProof(mounted) : mounted;
                   }});
  // Of a CO's volume there is no object whose end would end that row, and to the next agent whoever
  // has one has the storage. What a CO has, the rows of the volume and of its device say.
  if (request.spec.persistent_volume() == nullptr || request.place) return OkStatus();
  steps.push_back({.name = "RecordStorage",
                   .timeout = parts.settings.mount_device,
                   .changes_volume = false,
                   .run = [&](const CallOptions& options) {
                     return parts.storage.RecordDevice(
                         DeviceStorageId(request.device),
                         StorageNameOf(request.spec).value_or(StorageName{}), options);
                   }});
  return OkStatus();
}

// After a mount that has failed: if nothing of it is mounted, nobody has to know of it.
void ReleaseUnmounted(const OperationParts& parts, const MountDeviceRequest& request,
                      const SafePath& path) {
  const std::optional<DeviceRecord> left = parts.devices.Find(request.device);
  const bool gone = !left || IsGone(*left) || IsCertainlyUnmounted(parts, *left, path);
  if (gone) (void)parts.storage.Release(DeviceStorageId(request.device));
  if (!request.attachable) ReleaseDriverStorageIfGone(parts, request.device);
}

}  // namespace

OperationTraits MountDevice::Traits(const OperationParts& parts) const {
  const bool is_block = IsBlockVolume(request.spec);
  OperationTraits traits =
      TraitsOf(parts, key(), is_block ? kMapDeviceOperation : kMountDeviceOperation, request.spec);
  traits.device = request.device;
  traits.use = DeviceUse::kExclusive;
  // The device of a volume that was attached has yet to appear, which takes no worker.
  traits.domain =
      request.attachable ? DriverLaneOf(parts, request.spec) : DomainOf(parts, request.spec);
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (plugin.ok() && IsProvenAsRecorded(parts, request, **plugin)) {
    traits.domain = {parts.devices.Find(request.device)->device_mount_path, ""};
  }
  return traits;
}

void MountDevice::Tell(const OperationParts& parts,
                       const OperationOutcome<MountedDevice>& outcome) const {
  if (!outcome.failure) return;
  for (const PodUid& pod : request.pods) {
    TellOfFailure(parts.host.events, pod, request.spec.name(), IsBlockVolume(request.spec),
                  *outcome.failure);
  }
}

Failure MountDevice::Run(const OperationParts& parts, OperationProgress& progress,
                         MountedDevice& result) const {
  if (IsBlockVolume(request.spec)) return RunSetUpDevice(parts, request, progress, result);
  progress.EnterStep("FindPlugin");
  DeviceMounting mounting;
  if (Failure missing = FindDeviceMounter(parts, request, mounting)) return missing;

  DeviceStateCall call{
      .operation = kMountDeviceOperation,
      .event = VolumeEvent::kMountDevice,
      .facts = DeviceFactsOf(request.device, *mounting.plugin, request.spec, mounting.path),
      .steps = {}};
  if (request.place) call.facts.place_root = request.place->root;
  mounting.as_recorded = IsProvenAsRecorded(parts, request, *mounting.plugin);
  if (const Status is_free = CheckPlace(parts, mounting, call.facts); !is_free.ok()) {
    return FailedMount(kCheckPlaceStep, is_free.error());
  }
  call.facts.size_bytes = request.size.Value();
  call.facts.target_bytes = request.grow_to ? request.grow_to->Value() : 0;
  call.facts.attachable = request.attachable;
  if (const Status added = AddMountingSteps(parts, request, mounting, call.steps); !added.ok()) {
    return FailedMount("NewAttacher", added.error());
  }
  const std::string place = mounting.path.Display();
  DeviceStepRunner runner(
      parts.devices, parts.host.clock, progress,
      OperationCall(request.device.str(), call.facts.fault_domain, place, progress));
  if (Failure failure = runner.Run(call)) {
    ReleaseUnmounted(parts, request, mounting.path);
    return failure;
  }
  result.plugin_name = mounting.plugin->GetPluginName();
  result.device_mount_path = place;
  result.size = request.size;
  result.device_path = mounting.device_path;
  return std::nullopt;
}

OperationTraits UnmountDevice::Traits(const OperationParts& parts) const {
  OperationTraits traits = DeviceTraits(
      request.device, request.is_block ? kUnmapDeviceOperation : kUnmountDeviceOperation,
      request.plugin_name, parts.devices.Find(request.device));
  traits.domain = {FaultDomainOf(request, parts.devices), ""};
  traits.takes_away = true;
  traits.finishes = true;
  return traits;
}

Failure UnmountDevice::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  const StorageGuard::Leaving leaving(parts.storage, DeviceStorageId(request.device));
  const auto failed = [](const char* step, const Error& error) {
    return OperationFailure{kUnmountDeviceOperation, step, error};
  };
  progress.EnterStep("FindPlugin");
  DeviceStateCall call{.operation = kUnmountDeviceOperation,
                       .event = VolumeEvent::kUnmountDevice,
                       .facts = FactsOf(request, parts.devices),
                       .steps = {}};
  if (const Status owned = CheckOfSameOwner(request, call.facts); !owned.ok()) {
    return failed(kCheckPlaceStep, owned.error());
  }
  if (call.facts.is_block) return RunUnmapDevice(parts, call.facts, progress);
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginForTeardown(call.facts.plugin_name);
  if (!plugin.ok()) return failed("FindPluginByName", plugin.error());
  DeviceMountableVolumePlugin* mountable = (*plugin)->AsDeviceMountable();
  if (mountable == nullptr) {
    return failed("NewDeviceUnmounter", MountsNoDevices(call.facts.plugin_name));
  }
  const Result<std::unique_ptr<DeviceUnmounter>> unmounter = mountable->NewDeviceUnmounter();
  if (!unmounter.ok()) return failed("NewDeviceUnmounter", unmounter.error());
  const Result<SafePath> path = PlaceOfDevice(parts.host.paths, call.facts);
  if (!path.ok()) return failed("GetDeviceMountPath", path.error());

  // It goes into the intent: once it is unmounted, nothing else says which device it was.
  const Result<std::optional<MountedSource>> source =
      FindMountedSource(parts.host.kernel, *path, call.facts.fault_domain, CallOptions{});
  if (!source.ok()) return failed("FindDevice", source.error());
  if (*source) call.facts.source = *source;

  call.steps.push_back({.name = "GetDeviceMountRefs",
                        .timeout = parts.settings.unmount_device,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) {
                          return CheckNobodyHasIt(parts, *mountable, call.facts, *path, options);
                        }});
  const std::optional<VolumeSpec> recorded = ReadRecordedVolume(call.facts.volume_json);
  call.steps.push_back({.name = "UnmountDevice",
                        .timeout = parts.settings.unmount_device,
                        .run = [&](const CallOptions& options) {
                          return recorded ? (*unmounter)->UnmountRecorded(*recorded, *path, options)
                                          : (*unmounter)->UnmountDevice(*path, options);
                        }});
  call.steps.push_back({.name = "CheckDeviceUse",
                        .timeout = parts.settings.unmount_device,
                        .changes_volume = false,
                        .run = [&](const CallOptions& options) -> Status {
                          if (!call.facts.source) return OkStatus();
                          return CheckReleasedDevice(parts.host.kernel, parts.logger,
                                                     {call.facts.key, *call.facts.source,
                                                      IsDetachedNext(**plugin, call.facts)},
                                                     OnDevice(options, call.facts.fault_domain));
                        }});
  DeviceStepRunner runner(
      parts.devices, parts.host.clock, progress,
      OperationCall(call.facts.key.str(), call.facts.fault_domain, path->Display(), progress));
  if (Failure failure = runner.Run(call)) return failure;
  return ReleaseDeviceStorage(parts, call.facts, kUnmountDeviceOperation);
}

OperationTraits ForgetDevice::Traits(const OperationParts&) const {
  return DeviceTraits(device, kForgetDeviceOperation, "", std::nullopt);
}

Failure ForgetDevice::Run(const OperationParts& parts, OperationProgress& progress, Unit&) const {
  progress.EnterStep("RemoveRecord");
  const Status forgotten = parts.devices.Forget(device);
  if (forgotten.ok()) return std::nullopt;
  return OperationFailure{kForgetDeviceOperation, "RemoveRecord", forgotten.error()};
}

}  // namespace volumed
