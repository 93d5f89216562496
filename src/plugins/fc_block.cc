#include "plugins/fc_block.h"

#include <optional>
#include <utility>

#include "metrics/metrics_block.h"
#include "plugins/fc_mounts.h"

namespace volumed {
namespace {

PodDeviceMapPath PodPath(const VolumeHost& host, const SpecName& spec, const PodUid& pod) {
  return {host.paths.GetPodVolumeDeviceDir(pod, kFcPluginName), spec.str()};
}

Result<SafePath> MapPlaceOf(const VolumeHost& host, const VolumeSpec& spec) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesOf(spec));
  return FcMapPlace(host, names);
}

Result<Metrics> MeasureLink(const VolumeHost& host, const PodDeviceMapPath& path,
                            const CallOptions& call) {
  return MetricsBlock(host.kernel, host.clock, path.directory.Below(path.link_name))
      .GetMetrics(call);
}

}  // namespace

FcMapper::FcMapper(VolumeHost& host, VolumeSpec spec, PodUid pod)
    : host_(host), spec_(std::move(spec)), pod_(std::move(pod)) {}

Result<SafePath> FcMapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return MapPlaceOf(host_, spec);
}

PodDeviceMapPath FcMapper::GetPodDeviceMapPath() const {
  return PodPath(host_, spec_.name(), pod_);
}

Result<Metrics> FcMapper::GetMetrics(const CallOptions& call) {
  ASSIGN_OR_RETURN(const SafePath place, MapPlaceOf(host_, spec_));
  return MetricsBlock(host_.kernel, host_.clock, place.Below(pod_.str())).GetMetrics(call);
}

FcUnmapper::FcUnmapper(VolumeHost& host, FcDisks& disks, SpecName spec, PodUid pod)
    : host_(host), disks_(disks), spec_(std::move(spec)), pod_(std::move(pod)) {}

Result<SafePath> FcUnmapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return MapPlaceOf(host_, spec);
}

PodDeviceMapPath FcUnmapper::GetPodDeviceMapPath() const { return PodPath(host_, spec_, pod_); }

Result<Metrics> FcUnmapper::GetMetrics(const CallOptions& call) {
  return MeasureLink(host_, GetPodDeviceMapPath(), call);
}

Status FcUnmapper::TearDownDevice(const SafePath& map_path, const std::string& device_path,
                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const FcNames names, FcNamesAt(host_, map_path));
  std::optional<std::string> device;
  if (!device_path.empty()) device = device_path;
  return disks_.Remove(names, device, call);
}

}  // namespace volumed
