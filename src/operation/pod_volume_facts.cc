#include "operation/pod_volume_facts.h"

#include <utility>

#include "kube/static_pod.h"
#include "operation/given_place.h"
#include "operation/group_operations.h"
#include "operation/recorded_volume.h"

namespace volumed {
namespace {

void SetGivenPlace(const std::optional<SafePath>& place, PodVolumeRecord& facts) {
  if (!place) return;
  facts.place = place->Display();
  facts.place_root = place->root;
}

}  // namespace

PodVolumeRecord FactsOf(const MountRequest& request, const VolumePlugin& plugin) {
  PodVolumeRecord facts;
  facts.key = request.key();
  if (const PodPtr& pod = request.target.pod) {
    facts.pod_namespace = pod->metadata.name_space;
    facts.pod_name = pod->metadata.name;
    facts.pod_base_name = StaticPodBaseName(*pod).value_or("");
  }
  facts.plugin_name = plugin.GetPluginName();
  facts.fault_domain = plugin.FaultDomain(request.spec);
  // Of the others nothing is asked but what their plugin's name tells.
  if (!CanBeGrouped(request, plugin)) facts.volume_json = EncodeRecordedVolume(request.spec);
  facts.unique_name = request.unique_name;
  facts.has_device = request.has_device;
  facts.is_block = IsBlockVolume(request.spec);
  SetGivenPlace(request.given_place(), facts);
  for (const SubPathRequest& sub_path : request.sub_paths) {
    facts.sub_paths.push_back({sub_path.container, sub_path.index});
  }
  return facts;
}

PodVolumeRecord FactsOf(const UnmountRequest& request, const VolumeRecordKeeper& keeper) {
  const PodVolumeKey key = request.key();
  if (std::optional<PodVolumeRecord> record = keeper.Find(key)) return *std::move(record);
  PodVolumeRecord facts;
  facts.key = key;
  facts.plugin_name = request.plugin_name;
  facts.unique_name = request.device;
  facts.has_device = !request.device.empty();
  if (request.constructed) facts.volume_json = EncodeRecordedVolume(*request.constructed);
  facts.fault_domain = FaultDomainOf(request, keeper);
  SetGivenPlace(request.place, facts);
  return facts;
}

// What no record knows may hang with anything: it gets a domain of its own.
std::string FaultDomainOf(const UnmountRequest& request, const VolumeRecordKeeper& keeper) {
  const PodVolumeKey key = request.key();
  const std::optional<PodVolumeRecord> record = keeper.Find(key);
  return record ? record->fault_domain : "found:" + key.ToString();
}

// The executor keeps the two apart; a bind of a directory that no device is mounted on would give
// the pod the node's own disk.
Status CheckDevice(const DeviceRecordKeeper& devices, const MountRequest& request,
                   const SafePath* map_path) {
  const UniqueVolumeName device = request.device();
  if (device.empty()) return OkStatus();
  const std::optional<DeviceRecord> record = devices.Find(device);
  if (record && HasDeviceSetUp(*record)) {
    // Another PersistentVolume of the same storage may have it, with another mode or name; and
    // nobody has a device that is at its place for somebody else: a CO's is not a pod's.
    const bool is_as_wanted =
        record->is_block ? map_path != nullptr && record->device_mount_path == map_path->Display()
                         : map_path == nullptr;
    const bool is_of_same_owner =
        GivenPlaceOf(*record).has_value() == request.given_place().has_value();
    if (is_as_wanted && is_of_same_owner) return OkStatus();
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the device of volume " + device.str() + " is " +
                                 (record->is_block ? "set up" : "mounted") + " at " +
                                 record->device_mount_path + " for volume " + record->spec.str() +
                                 ", which has to leave first");
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "the device of volume " + device.str() + " is not " +
                               (record && record->is_block ? "set up" : "mounted"));
}

}  // namespace volumed
