#include "operation/only_pod.h"

#include <algorithm>
#include <optional>
#include <string>

#include "operation/given_place.h"

namespace volumed {
namespace {

// "namespace/name", or the target, if a row of the pod's volume tells it, or else its uid.
std::string NameOf(const VolumeRecordKeeper& volumes, const UniqueVolumeName& device,
                   const PodUid& pod) {
  const std::vector<PodVolumeRecord> had = volumes.FindOfPod(pod);
  const auto its = std::find_if(had.begin(), had.end(), [&device](const PodVolumeRecord& record) {
    return record.unique_name == device && (!record.pod_name.empty() || GivenPlaceOf(record));
  });
  if (its == had.end()) return pod.str();
  return GivenPlaceOf(*its) ? its->place : its->pod_namespace + "/" + its->pod_name;
}

// What a pod has left of which no record tells is its own, and nobody knows whether it has ended.
// What a record tells is in the row of the device.
Status CheckNoLostPodHas(const OperationParts& parts, const MountRequest& request,
                         const CallOptions& call) {
  const std::optional<DeviceRecord> record = parts.devices.Find(request.unique_name);
  const std::string plugin = record ? record->plugin_name : std::string();
  return parts.unrecorded->CheckNone({request.unique_name, plugin, request.spec.name()},
                                     parts.host.kernel, call,
                                     [&](const UnrecordedMounts::Mounted& mounted) {
                                       if (mounted.pod.empty() || mounted.pod == request.key().pod)
                                         return false;
                                       return !parts.volumes->Find({mounted.pod, mounted.spec});
                                     });
}

Status Take(const OperationParts& parts, const MountRequest& request, const CallOptions& call) {
  RETURN_IF_ERROR(CheckNoLostPodHas(parts, request, call));
  const UniqueVolumeName& device = request.unique_name;
  const PodUid& pod = request.key().pod;
  Status taken = parts.devices.TakeOnlyPod(device, pod);
  if (taken.ok()) return taken;
  const std::optional<DeviceRecord> record = parts.devices.Find(device);
  if (!record || record->only_pod.empty() || record->only_pod == pod) return taken;
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume uses the ReadWriteOncePod access mode and is already in use by another pod: " +
          NameOf(*parts.volumes, device, record->only_pod));
}

}  // namespace

void AddTakeOnlyPod(const OperationParts& parts, const MountRequest& request,
                    std::vector<Step>& steps) {
  if (!request.one_pod_only || !request.has_device) return;
  steps.push_back({.name = "TakeOnlyPod",
                   .timeout = parts.settings.make_pod_directories,
                   .changes_volume = false,
                   .run = [&](const CallOptions& call) { return Take(parts, request, call); }});
}

void GiveBackOnlyPod(const OperationParts& parts, const MountRequest& request) {
  if (!request.one_pod_only || !request.has_device) return;
  if (parts.volumes->Find(request.key())) return;
  // If it cannot be written, it goes with the pod.
  (void)parts.devices.ReleaseOnlyPod(request.unique_name, request.key().pod);
}

void AddReleaseOnlyPod(const OperationParts& parts, const PodVolumeRecord& facts,
                       std::vector<Step>& steps) {
  const std::optional<DeviceRecord> device = parts.devices.Find(facts.unique_name);
  if (!device || device->only_pod != facts.key.pod) return;
  steps.push_back({.name = "ReleaseOnlyPod",
                   .timeout = parts.settings.clean_sub_paths,
                   .changes_volume = false,
                   .run = [&parts, &facts](const CallOptions&) {
                     return parts.devices.ReleaseOnlyPod(facts.unique_name, facts.key.pod);
                   }});
}

}  // namespace volumed
