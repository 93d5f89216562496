#include "operation/pin_operations.h"

#include "base/printable_text.h"
#include "mounter/host_directory.h"
#include "operation/call_options.h"
#include "operation/operation_parts.h"
#include "operation/operation_traits.h"
#include "operation/step_runner.h"

namespace volumed {
namespace {

std::string DeviceDifference(const MappedDeviceRecord& known, const DeviceIdentity& now,
                             const BootId& boot) {
  DeviceIdentity expected = known.device;
  expected.size_bytes = now.size_bytes;
  if (known.boot_id == boot) return IdentityDifference(expected, now);
  if (expected.stable_id.empty() || expected.stable_id == now.stable_id) return "";
  return "its own identity is " + (now.stable_id.empty() ? "none" : PrintableText(now.stable_id)) +
         ", not " + PrintableText(expected.stable_id);
}

Status OpenAgain(const OperationParts& parts, const PinDevice& pin, PinnedDevice& result,
                 const CallOptions& call) {
  const UniqueVolumeName& volume = pin.device;
  const std::optional<DeviceRecord> record = parts.devices.Find(volume);
  const std::string path = record && record->mapped ? record->mapped->path : pin.pod_node;
  if (path.empty()) {
    return Error::NotApplied(Code::kNotFound,
                             "no record says which device pods have as volume " + volume.str());
  }
  ASSIGN_OR_RETURN(const IdentifiedDevice device,
                   parts.host.kernel.Call(IdentifyDevice{HostPath(path), true}, call));
  if (record) RETURN_IF_ERROR(CheckMappedDevice(*record, device));
  parts.pins->Keep(volume, device.pin);
  result.device_path = device.node;
  return OkStatus();
}

}  // namespace

Status CheckMappedDevice(const DeviceRecord& record, const IdentifiedDevice& device) {
  if (!record.mapped) return OkStatus();
  const std::string difference =
      DeviceDifference(*record.mapped, device.facts.identity, record.boot_id);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "device " + device.path +
                               " is not the one that pods were given as this volume: " +
                               difference + "; all pods with the volume have to leave first");
}

OperationTraits PinDevice::Traits(const OperationParts& parts) const {
  const std::optional<DeviceRecord> record = parts.devices.Find(device);
  OperationTraits traits = DeviceTraits(device, kPinDeviceOperation, plugin_name, record);
  traits.use = DeviceUse::kShared;
  if (!record) return traits;
  // Opening the device hangs with the device, not with the driver that has attached it.
  const std::string path = record->mapped ? record->mapped->path : pod_node;
  traits.domain = {EffectDomain(record->fault_domain, path), ""};
  return traits;
}

std::optional<OperationFailure> PinDevice::Run(const OperationParts& parts,
                                               OperationProgress& progress,
                                               PinnedDevice& result) const {
  const std::optional<DeviceRecord> record = parts.devices.Find(device);
  DeviceStepRunner runner(
      parts.devices, parts.host.clock, progress,
      OperationCall(device.str(), record ? record->fault_domain : std::string(), "", progress));
  return runner.RunWithoutRecord(
      kPinDeviceOperation,
      {{.name = "HoldDevice",
        .timeout = parts.settings.set_up,
        .changes_volume = false,
        .run = [&](const CallOptions& call) { return OpenAgain(parts, *this, result, call); }}});
}

}  // namespace volumed
