#include "kube/refused_sources.h"

namespace volumed {
namespace {

std::string RefusalOfRemoved(const RemovedVolumeSource& source) {
  const std::string gone = source.kind + " volumes are no longer part of Kubernetes";
  for (const RemovedSource& removed : kRemovedSources) {
    if (source.kind != removed.field) continue;
    const std::string remark(removed.remark);
    if (removed.csi_driver.empty()) {
      return gone + ", and no CSI driver replaces them: " + remark;
    }
    return gone + "; use the CSI driver " + std::string(removed.csi_driver) +
           (remark.empty() ? "" : " (" + remark + ")") + " in a source of kind csi";
  }
  return gone;
}

}  // namespace

std::optional<std::string> RefusalOf(const VolumeSource& source) {
  if (const auto* removed = std::get_if<RemovedVolumeSource>(&source)) {
    return RefusalOfRemoved(*removed);
  }
  if (const auto* image = std::get_if<ImageVolumeSource>(&source)) {
    return "image volumes (" + (image->reference.empty() ? "no reference" : image->reference) +
           ") are mounted by a container runtime, which pulls and unpacks images; this agent has "
           "none. Unpack the image to a directory of the node and use hostPath, or a local "
           "PersistentVolume";
  }
  return std::nullopt;
}

std::optional<std::string> RefusalOf(const PersistentVolumeSource& source) {
  const auto* removed = std::get_if<RemovedVolumeSource>(&source);
  if (removed == nullptr) return std::nullopt;
  return RefusalOfRemoved(*removed);
}

}  // namespace volumed
