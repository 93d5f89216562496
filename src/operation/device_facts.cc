#include "operation/device_facts.h"

#include <optional>
#include <vector>

#include "operation/given_place.h"
#include "operation/recorded_volume.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Pods share a mounted device, under several names too.
bool IsHadOtherwise(const PodVolumeRecord& record, const DeviceRecord& wanted,
                    const PlaceOfVolume& place_of) {
  if (record.state == VolumeState::kNotSetUp && !record.uncertain) return false;
  if (record.is_block != wanted.is_block) return true;
  if (!record.is_block || !place_of || record.key.spec == wanted.spec) return false;
  // Its own place is no map directory: where the device is for it, the device's row alone says.
  if (GivenPlaceOf(record)) return false;
  const std::optional<VolumeSpec> recorded = ReadRecordedVolume(record.volume_json);
  if (!recorded) return true;
  const Result<SafePath> place = place_of(*recorded);
  return !place.ok() || place->Display() != wanted.device_mount_path;
}

bool IsMountedOtherwise(const UnrecordedMounts::Mounted& mounted, const DeviceRecord& wanted) {
  if (mounted.is_block != wanted.is_block) return true;
  if (mounted.device_place.empty() || wanted.device_mount_path.empty()) return false;
  // A driver's filesystem has its place by its handle. Another one is that which kubelets before
  // 1.24 gave the same volume, and the driver stages it beside that, as for a kubelet.
  if (!wanted.is_block && IsDriverDomain(wanted.fault_domain)) return false;
  return mounted.device_place != wanted.device_mount_path;
}

}  // namespace

DeviceRecord DeviceFactsOf(const UniqueVolumeName& device, const VolumePlugin& plugin,
                           const VolumeSpec& spec, const SafePath& device_mount_path) {
  DeviceRecord facts;
  facts.key = device;
  facts.plugin_name = plugin.GetPluginName();
  facts.spec = spec.name();
  facts.device_mount_path = device_mount_path.Display();
  facts.fault_domain = plugin.FaultDomain(spec);
  facts.volume_json = EncodeRecordedVolume(spec);
  return facts;
}

// What no record knows may hang with anything: it gets a domain of its own.
std::string FaultDomainOf(const UnmountDeviceRequest& request, const DeviceRecordKeeper& devices) {
  const std::optional<DeviceRecord> record = devices.Find(request.device);
  return record ? record->fault_domain : "found:" + request.device.str();
}

bool IsDetachedNext(VolumePlugin& plugin, const DeviceRecord& facts) {
  return IsDriverDomain(facts.fault_domain) ? facts.attachable : plugin.AsAttachable() != nullptr;
}

Status CheckNotElsewhere(const DeviceRecordKeeper& devices, const DeviceRecord& facts) {
  const std::optional<DeviceRecord> there = devices.Find(facts.key);
  if (!there || !MayBeAtPlace(there->state) || there->device_mount_path.empty()) return OkStatus();
  const bool is_same =
      there->is_block == facts.is_block && there->device_mount_path == facts.device_mount_path;
  if (is_same) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + facts.key.str() + " is still " + std::string(VolumeStateName(there->state)) +
          " at " + there->device_mount_path + " for volume " + there->spec.str() +
          ": it has to leave that place before it can come to " + facts.device_mount_path);
}

Status CheckNotHadOtherwise(const OperationParts& parts, const DeviceRecord& wanted,
                            const PlaceOfVolume& place_of) {
  for (const PodVolumeRecord& record : parts.volumes->FindOfDevice(wanted.key)) {
    if (!IsHadOtherwise(record, wanted, place_of)) continue;
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "volume " + wanted.spec.str() + " is still " + std::string(VolumeStateName(record.state)) +
            " for " + HolderOf(record) + " as volume " + record.key.spec.str() +
            (record.is_block ? ", a block volume" : ", a filesystem") + ": it has to leave that " +
            (GivenPlaceOf(record) ? "target" : "pod") + " first");
  }
  return parts.unrecorded->CheckNone({wanted.key, wanted.plugin_name, wanted.spec},
                                     parts.host.kernel, CallOptions{},
                                     [&wanted](const UnrecordedMounts::Mounted& mounted) {
                                       return IsMountedOtherwise(mounted, wanted);
                                     });
}

Status CheckNoPodHas(const VolumeRecordKeeper& volumes, const UniqueVolumeName& device) {
  const std::vector<PodVolumeRecord> users = volumes.FindOfDevice(device);
  if (users.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the volume is still " +
                               std::string(VolumeStateName(users.front().state)) + " for " +
                               HolderOf(users.front()));
}

Status CheckNoPodHas(const OperationParts& parts, const DeviceRecord& device,
                     const CallOptions& call) {
  RETURN_IF_ERROR(CheckNoPodHas(*parts.volumes, device.key));
  return parts.unrecorded->CheckNone(
      {device.key, device.plugin_name, device.spec}, parts.host.kernel, call,
      [](const UnrecordedMounts::Mounted& mounted) { return !mounted.pod.empty(); });
}

}  // namespace volumed
