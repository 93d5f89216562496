#include "operation/operation_traits.h"

#include <optional>
#include <utility>

#include "operation/as_recorded.h"
#include "operation/pod_volume_facts.h"
#include "operation/recorded_volume.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (FailedMountVolume).
constexpr const char* kFailedMount = "FailedMount";
// (FailedMapVolume).
constexpr const char* kFailedMap = "FailedMapVolume";

// Source: operation_generator.go@v1.36.2 (GenerateError): '<prefix> for volume "<name>" <suffix>'.
std::string FailureText(const std::string& what, const SpecName& spec,
                        const OperationFailure& failure) {
  const bool making = failure.step == "NewMounter" || failure.step == "NewBlockVolumeMapper";
  return what + "." + failure.step + (making ? " initialization" : "") + " failed for volume \"" +
         spec.str() + "\" : " + failure.error.message();
}

// Without a plugin nothing is changed.
void NameBySpec(const OperationParts& parts, const VolumeSpec& spec, OperationTraits& traits) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  if (!plugin.ok()) return;
  traits.plugin_name =
      GetFullQualifiedPluginName((*plugin)->GetPluginName(), (*plugin)->FaultDomain(spec));
  traits.migrated = spec.migrated();
}

// A volume of which only its record tells.
void NameRecorded(const std::string& domain, const std::string& volume_json,
                  OperationTraits& traits) {
  if (!IsDriverDomain(domain)) return;
  traits.plugin_name = GetFullQualifiedPluginName(traits.plugin_name, domain);
  const std::optional<VolumeSpec> recorded = ReadRecordedVolume(volume_json);
  traits.migrated = recorded && recorded->migrated();
}

}  // namespace

OperationTraits TraitsOf(const OperationParts& parts, OperationKey key, const char* name,
                         const VolumeSpec& spec) {
  OperationTraits traits{
      .key = std::move(key), .name = name, .plugin_name = "", .pod_display_name = ""};
  NameBySpec(parts, spec, traits);
  return traits;
}

FaultDomain DomainOf(const OperationParts& parts, const VolumeSpec& spec) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  if (!plugin.ok()) return {};
  return {(*plugin)->FaultDomain(spec), (*plugin)->FaultDomainName(spec)};
}

FaultDomain DomainOf(const OperationParts& parts, const MountRequest& request) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(request.spec);
  if (plugin.ok() && IsProvenAsRecorded(parts, request, **plugin)) {
    return {request.target.place.Display(), ""};
  }
  return DomainOf(parts, request.spec);
}

FaultDomain DriverLaneOf(const OperationParts& parts, const VolumeSpec& spec) {
  const Result<VolumePlugin*> plugin = parts.plugins.FindPluginBySpec(spec);
  if (!plugin.ok() || !(*plugin)->WorksInLane(spec)) return {};
  return {(*plugin)->FaultDomain(spec), (*plugin)->FaultDomainName(spec)};
}

OperationTraits UnmountTraits(const OperationParts& parts, const char* name,
                              const UnmountRequest& request) {
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(request.key());
  std::string domain = record ? record->fault_domain : FaultDomainOf(request, *parts.volumes);
  // A driver has one call of a volume at a time, though it be of two pods; and what no record knows
  // may be a driver's.
  const bool may_be_drivers = IsDriverDomain(domain) || !record;
  const DeviceUse use = may_be_drivers ? DeviceUse::kExclusive : DeviceUse::kShared;
  OperationTraits traits{.key = request.key(),
                         .name = name,
                         .plugin_name = request.plugin_name,
                         .pod_display_name = request.pod_display_name,
                         .device = request.device,
                         .use = request.device.empty() ? DeviceUse::kNone : use,
                         .domain = {std::move(domain), ""},
                         .on_own_filesystem = true,
                         .takes_away = true,
                         .with_many = request.with_many};
  if (record) {
    NameRecorded(record->fault_domain, record->volume_json, traits);
  } else if (request.constructed) {
    NameBySpec(parts, *request.constructed, traits);
  }
  return traits;
}

OperationTraits DeviceTraits(const UniqueVolumeName& device, const char* name,
                             const std::string& plugin_name,
                             const std::optional<DeviceRecord>& record) {
  OperationTraits traits{.key = OperationKey(device),
                         .name = name,
                         .plugin_name = plugin_name,
                         .pod_display_name = "",
                         .device = device,
                         .use = DeviceUse::kExclusive};
  if (record) NameRecorded(record->fault_domain, record->volume_json, traits);
  return traits;
}

void TellOfFailure(HostEvents& events, const PodUid& pod, const SpecName& spec, bool is_block,
                   const OperationFailure& failure) {
  events.RecordPodEvent(pod, EventType::kWarning, is_block ? kFailedMap : kFailedMount,
                        FailureText(is_block ? "MapVolume" : "MountVolume", spec, failure));
}

}  // namespace volumed
