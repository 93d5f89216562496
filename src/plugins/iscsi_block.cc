#include "plugins/iscsi_block.h"

#include "metrics/metrics_block.h"
#include "metrics/metrics_nil.h"

namespace volumed {
namespace {

Result<SafePath> MapPathOf(const VolumeHost& host, const VolumeSpec& spec) {
  ASSIGN_OR_RETURN(const IscsiVolume volume, IscsiVolumeOf(spec));
  return IscsiMapPlace(host.paths, volume.disk);
}

PodDeviceMapPath PodPath(const VolumeHost& host, const SpecName& spec, const PodUid& pod) {
  return {host.paths.GetPodVolumeDeviceDir(pod, kIscsiPluginName), spec.str()};
}

}  // namespace

Result<SafePath> IscsiMapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return MapPathOf(host_, spec);
}

PodDeviceMapPath IscsiMapper::GetPodDeviceMapPath() const { return PodPath(host_, spec_, pod_); }

Result<Metrics> IscsiMapper::GetMetrics(const CallOptions& call) {
  const SafePath node = IscsiMapPlace(host_.paths, disk_).Below(pod_.str());
  return MetricsBlock(host_.kernel, host_.clock, node).GetMetrics(call);
}

Result<SafePath> IscsiUnmapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return MapPathOf(parts_.host, spec);
}

PodDeviceMapPath IscsiUnmapper::GetPodDeviceMapPath() const {
  return PodPath(parts_.host, spec_, pod_);
}

// What is unmapped is known by its place alone.
Result<Metrics> IscsiUnmapper::GetMetrics(const CallOptions& call) {
  return MetricsNil().GetMetrics(call);
}

Status IscsiUnmapper::TearDownDevice(const SafePath& map_path, const std::string&,
                                     const CallOptions& call) {
  ASSIGN_OR_RETURN(IscsiInitiator * initiator, RequireInitiator(parts_));
  if (!IsIscsiMapPlace(parts_.host.paths, map_path) || !ParseIscsiPlace(map_path.Display())) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "\"" + map_path.Display() + "\" is not a place of iSCSI volumes");
  }
  return initiator->DetachDisk(map_path, call);
}

}  // namespace volumed
