#include "pool/pool_block.h"

#include <utility>

#include "metrics/metrics_block.h"
#include "pool/pool_names.h"

namespace volumed {
namespace {

PodDeviceMapPath PodPath(const VolumeHost& host, const SpecName& spec, const PodUid& pod) {
  return {host.paths.GetPodVolumeDeviceDir(pod, kPoolPluginName), spec.str()};
}

// What is bound for a reader is the node of the one device of the volume, so the device itself has
// to be read-only. A pod's own word on its claim is not asked: pods that write may have it, too.
bool IsForReaders(const VolumeSpec& spec) {
  const auto* const source = spec.SourceAs<CsiPersistentVolumeSource>();
  return source != nullptr && source->read_only;
}

}  // namespace

PoolVolumeMapper::PoolVolumeMapper(VolumeHost& host, const PoolPluginParts& parts, VolumeSpec spec,
                                   std::string id, PodUid pod)
    : host_(host),
      parts_(parts),
      spec_(std::move(spec)),
      id_(std::move(id)),
      pod_(std::move(pod)) {}

Result<SafePath> PoolVolumeMapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdOf(spec, parts_.driver));
  return PoolMapPlace(host_.paths, id);
}

PodDeviceMapPath PoolVolumeMapper::GetPodDeviceMapPath() const {
  return PodPath(host_, spec_.name(), pod_);
}

Result<Metrics> PoolVolumeMapper::GetMetrics(const CallOptions& call) {
  const SafePath node = PoolMapPlace(host_.paths, id_).Below(pod_.str());
  return MetricsBlock(host_.kernel, host_.clock, node).GetMetrics(call);
}

Result<std::string> PoolVolumeMapper::Open(const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, parts_.volumes.Find(id_));
  if (!volume.is_block) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        "volume " + id_ + " was made to have a filesystem, and is no block volume");
  }
  ASSIGN_OR_RETURN(const OpenedVolume opened, parts_.volumes.Open(id_, IsForReaders(spec_), call));
  return opened.device;
}

Result<std::string> PoolVolumeMapper::SetUpDevice(const CallOptions& call) {
  RETURN_IF_ERROR(Open(call));
  return GetStagingPath();
}

// The pod of what a CO publishes is not known here: csidriver throttles it.
Result<std::string> PoolVolumeMapper::MapPodDevice(const CallOptions& call) {
  ASSIGN_OR_RETURN(std::string device, Open(call));
  if (!pod_.str().empty()) RETURN_IF_ERROR(parts_.volumes.Throttle(id_, pod_.str(), call));
  return device;
}

PoolVolumeUnmapper::PoolVolumeUnmapper(VolumeHost& host, const PoolPluginParts& parts,
                                       SpecName spec, PodUid pod, std::string id)
    : host_(host),
      parts_(parts),
      spec_(std::move(spec)),
      pod_(std::move(pod)),
      id_(std::move(id)) {}

Result<SafePath> PoolVolumeUnmapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const std::string id, RecordedPoolVolumeId(spec));
  return PoolMapPlace(host_.paths, id);
}

PodDeviceMapPath PoolVolumeUnmapper::GetPodDeviceMapPath() const {
  return PodPath(host_, spec_, pod_);
}

Result<Metrics> PoolVolumeUnmapper::GetMetrics(const CallOptions& call) {
  const PodDeviceMapPath path = GetPodDeviceMapPath();
  return MetricsBlock(host_.kernel, host_.clock, path.directory.Below(path.link_name))
      .GetMetrics(call);
}

Status PoolVolumeUnmapper::TearDownDevice(const SafePath& map_path, const std::string&,
                                          const CallOptions& call) {
  if (!id_.empty()) return parts_.volumes.Close(id_, call);
  ASSIGN_OR_RETURN(const std::string id, PoolVolumeIdAt(host_.paths, map_path));
  return parts_.volumes.Close(id, call);
}

}  // namespace volumed
