#include "plugins/local_block.h"

#include <utility>

#include "metrics/metrics_block.h"
#include "plugins/local.h"

namespace volumed {
namespace {

// Source: kubernetes pkg/volume/local/local.go@v1.36.2 (getGlobalMapPath, getPodDeviceMapPath).
SafePath GlobalMapPath(const VolumeHost& host, const SpecName& volume) {
  return host.paths.GetBlockMapDir(kLocalVolumePluginName, volume);
}

PodDeviceMapPath PodPath(const VolumeHost& host, const SpecName& volume, const PodUid& pod) {
  return {host.paths.GetPodVolumeDeviceDir(pod, kLocalVolumePluginName), volume.str()};
}

Result<Metrics> MeasureNode(const VolumeHost& host, const SpecName& volume, const PodUid& pod,
                            const CallOptions& call) {
  return MetricsBlock(host.kernel, host.clock, GlobalMapPath(host, volume).Below(pod.str()))
      .GetMetrics(call);
}

}  // namespace

LocalVolumeMapper::LocalVolumeMapper(VolumeHost& host, VolumeSpec spec, PodUid pod)
    : host_(host), spec_(std::move(spec)), pod_(std::move(pod)) {}

Result<SafePath> LocalVolumeMapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return GlobalMapPath(host_, spec.name());
}

PodDeviceMapPath LocalVolumeMapper::GetPodDeviceMapPath() const {
  return PodPath(host_, spec_.name(), pod_);
}

Result<Metrics> LocalVolumeMapper::GetMetrics(const CallOptions& call) {
  return MeasureNode(host_, spec_.name(), pod_, call);
}

Result<std::string> LocalVolumeMapper::MapPodDevice(const CallOptions&) {
  return std::get<LocalVolumeSource>(spec_.persistent_volume()->spec.source).path;
}

LocalVolumeUnmapper::LocalVolumeUnmapper(VolumeHost& host, SpecName spec, PodUid pod)
    : host_(host), spec_(std::move(spec)), pod_(std::move(pod)) {}

Result<SafePath> LocalVolumeUnmapper::GetGlobalMapPath(const VolumeSpec&) const {
  return GlobalMapPath(host_, spec_);
}

PodDeviceMapPath LocalVolumeUnmapper::GetPodDeviceMapPath() const {
  return PodPath(host_, spec_, pod_);
}

Result<Metrics> LocalVolumeUnmapper::GetMetrics(const CallOptions& call) {
  return MeasureNode(host_, spec_, pod_, call);
}

}  // namespace volumed
