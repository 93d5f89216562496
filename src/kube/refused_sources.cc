#include "kube/refused_sources.h"

namespace volumed {
namespace {

std::string RefusalOfRemoved(const RemovedVolumeSource& source) {
  std::string gone = source.kind + " volumes are no longer part of Kubernetes";
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

std::string RefusalOfCsi(const std::string& driver) {
  return "csi volumes need a CSI client, which this version of volumed does not have: it can "
         "neither "
         "find the driver " +
         (driver.empty() ? std::string("(none is named)") : driver) +
         " on this node nor call it. Use a source that it has (local, nfs, iscsi, fc, flexVolume, "
         "hostPath), or leave the pod to a kubelet";
}

}  // namespace

std::optional<std::string> RefusalOf(const VolumeSource& source) {
  if (const auto* csi = std::get_if<CsiVolumeSource>(&source)) return RefusalOfCsi(csi->driver);
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
  if (const auto* csi = std::get_if<CsiPersistentVolumeSource>(&source)) {
    return RefusalOfCsi(csi->driver);
  }
  const auto* removed = std::get_if<RemovedVolumeSource>(&source);
  if (removed == nullptr) return std::nullopt;
  return RefusalOfRemoved(*removed);
}

}  // namespace volumed
