#include "volumemanager/found_devices.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "pluginmgr/device_mountable_volume_plugin.h"

namespace volumed {
namespace {

// The plugins that have a mount which is on no record.
std::set<std::string> PluginsWithUnknown(const FoundAtStart& found, const KubeletPaths& paths) {
  std::set<std::string> recorded;
  for (const DeviceRecord& record : found.devices) recorded.insert(record.device_mount_path);
  std::set<std::string> plugins;
  for (const KubeletPaths::DeviceMount& mount : found.device_mounts) {
    if (!recorded.contains(DevicePlaceOf(mount, paths))) plugins.insert(mount.plugin);
  }
  return plugins;
}

void TakeDevice(const std::string& plugin, const UnrecordedDevice& device, bool also_unmounted,
                const KubeletPaths& paths, FoundAtStart& found) {
  KubeletPaths::DeviceMount known{plugin, SpecName(device.volume_name), device.is_block,
                                  device.place.Display()};
  if (device.is_block) known.spec = device.spec.name();
  const auto same = std::find_if(found.device_mounts.begin(), found.device_mounts.end(),
                                 [&](const KubeletPaths::DeviceMount& mount) {
                                   return DevicePlaceOf(mount, paths) == known.place;
                                 });
  if (same != found.device_mounts.end()) {
    known.pods_place = same->pods_place;
    known.node_place = same->node_place;
    *same = std::move(known);
  } else if (also_unmounted) {
    found.device_mounts.push_back(std::move(known));
  }
}

}  // namespace

std::string DevicePlaceOf(const KubeletPaths::DeviceMount& device, const KubeletPaths& paths) {
  if (!device.place.empty()) return device.place;
  return (device.is_block ? paths.GetBlockMapDir(device.plugin, device.volume)
                          : paths.GetDeviceMountDir(device.plugin, device.volume))
      .Display();
}

void FindMountedDevices(const MountListing& listing, const KubeletPaths& paths,
                        FoundAtStart& found) {
  std::set<std::string> places;
  for (const MountEntry& mount : listing.mounts) {
    std::optional<KubeletPaths::DeviceMount> device = paths.ParseDeviceMount(mount.mount_point);
    if (!device) continue;
    // Several pods may have one device.
    const PodUid pod = std::exchange(device->pod, PodUid());
    if (!pod.empty()) found.device_pods[device->place].insert(pod);
    if (places.insert(device->place).second) found.device_mounts.push_back(*std::move(device));
  }
}

void AskPluginsForDevices(const FindParts& parts, const FindOptions& options, FoundAtStart& found) {
  const std::set<std::string> with_unknown = PluginsWithUnknown(found, parts.paths);
  for (DeviceMountableVolumePlugin* plugin : parts.plugins.ListDeviceMountablePlugins()) {
    const std::string name = plugin->plugin().GetPluginName();
    if (!options.all_directories && !with_unknown.contains(name)) continue;
    CallOptions call;
    call.deadline = Deadline::After(parts.clock, options.call_timeout);
    const Result<std::vector<UnrecordedDevice>> devices = plugin->FindDevices(call);
    if (!devices.ok()) {
      parts.log.Warning("a plugin does not say which volumes its devices are",
                        {{"plugin", name}, {"error", devices.error()}});
      continue;
    }
    for (const UnrecordedDevice& device : *devices) {
      TakeDevice(name, device, options.all_directories, parts.paths, found);
    }
  }
}

}  // namespace volumed
