#include "plugins/flex_volume.h"

#include <utility>

#include "mounter/volume_places.h"
#include "plugins/flex_volume_devices.h"
#include "plugins/flex_volume_mounts.h"

namespace volumed {

FlexVolumePlugin::FlexVolumePlugin(std::shared_ptr<FlexVolumeDriver> driver,
                                   FlexCapabilities capabilities, DeviceVolumeSettings settings,
                                   const AttachLimitSettings* limits)
    : driver_(std::move(driver)),
      capabilities_(capabilities),
      settings_(settings),
      limits_(*this, limits) {}

bool FlexVolumePlugin::CanSupport(const VolumeSpec& spec) const {
  return spec.IsKubeletExpandable() && spec.KubeletExpandablePluginName() == driver_->name();
}

Result<std::string> FlexVolumePlugin::GetVolumeName(const VolumeSpec& spec) const {
  if (!CanSupport(spec)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "not a flexVolume of driver " + driver_->name());
  }
  return FlexVolumeName(spec);
}

Result<std::unique_ptr<Mounter>> FlexVolumePlugin::NewMounter(const VolumeSpec& spec,
                                                              const VolumeTarget& target) {
  RETURN_IF_ERROR(GetVolumeName(spec));
  if (target.pod == nullptr) return NoPod("a flexVolume", target);
  return std::unique_ptr<Mounter>(
      std::make_unique<FlexVolumeMounter>(*host_, driver_, capabilities_, spec, target));
}

Result<std::unique_ptr<Unmounter>> FlexVolumePlugin::NewUnmounter(const SpecName& spec,
                                                                  const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<FlexVolumeUnmounter>(
      *host_, driver_, capabilities_, host_->paths.GetPodVolumeDir(pod, driver_->name(), spec)));
}

Result<ReconstructedVolume> FlexVolumePlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                  const SafePath&,
                                                                  const CallOptions&) {
  FlexVolumeSource source;
  source.driver = driver_->name();
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), std::move(source)})};
}

Result<std::unique_ptr<Attacher>> FlexVolumePlugin::NewAttacher() {
  return std::unique_ptr<Attacher>(
      std::make_unique<FlexVolumeAttacher>(*host_, driver_, settings_));
}

Result<std::unique_ptr<DeviceMounter>> FlexVolumePlugin::NewDeviceMounter() {
  return std::unique_ptr<DeviceMounter>(
      std::make_unique<FlexVolumeAttacher>(*host_, driver_, settings_));
}

Result<std::unique_ptr<Detacher>> FlexVolumePlugin::NewDetacher() {
  return std::unique_ptr<Detacher>(std::make_unique<FlexVolumeDetacher>(*host_, driver_));
}

Result<std::unique_ptr<DeviceUnmounter>> FlexVolumePlugin::NewDeviceUnmounter() {
  return std::unique_ptr<DeviceUnmounter>(std::make_unique<FlexVolumeDetacher>(*host_, driver_));
}

Result<std::vector<std::string>> FlexVolumePlugin::GetDeviceMountRefs(const SafePath& place,
                                                                      const CallOptions& call) {
  return FindDeviceMountRefs(host_->kernel, place, call);
}

}  // namespace volumed
