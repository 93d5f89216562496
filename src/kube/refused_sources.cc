#include "kube/refused_sources.h"

#include <type_traits>
#include <variant>

namespace volumed {
namespace {

std::string Gone(const std::string& kind) {
  return kind + " volumes are no longer part of Kubernetes";
}

std::string UseDriver(const std::string& kind, std::string_view driver, const std::string& remark) {
  return Gone(kind) + "; use the CSI driver " + std::string(driver) +
         (remark.empty() ? "" : " (" + remark + ")") + " in a source of kind csi";
}

std::string RefusalOfRemoved(const RemovedVolumeSource& source) {
  for (const RemovedSource& removed : kRemovedSources) {
    if (source.kind != removed.field) continue;
    const std::string remark(removed.remark);
    if (!removed.csi_driver.empty()) return UseDriver(source.kind, removed.csi_driver, remark);
    return Gone(source.kind) + ", and no CSI driver replaces them: " + remark;
  }
  return Gone(source.kind);
}

std::string RefusalOfCsi(const std::string& driver) {
  return "csi volumes need a CSI client, which this version of volumed does not have: it can "
         "neither "
         "find the driver " +
         (driver.empty() ? std::string("(none is named)") : driver) +
         " on this node nor call it. Use a source that it has (local, nfs, iscsi, fc, flexVolume, "
         "hostPath), or leave the pod to a kubelet";
}

std::string RefusalOfImage(const ImageVolumeSource& image) {
  return "image volumes (" + (image.reference.empty() ? "no reference" : image.reference) +
         ") are mounted by a container runtime, which pulls and unpacks images; this agent has "
         "none. Unpack the image to a directory of the node and use hostPath, or a local "
         "PersistentVolume";
}

template <typename Source>
std::optional<std::string> RefusalOfSource(const Source& source) {
  if constexpr (MigratedSource<Source>) {
    return UseDriver(Source::kKind, Source::kCsiDriver, "");
  } else if constexpr (std::is_same_v<Source, CsiVolumeSource> ||
                       std::is_same_v<Source, CsiPersistentVolumeSource>) {
    return RefusalOfCsi(source.driver);
  } else if constexpr (std::is_same_v<Source, RemovedVolumeSource>) {
    return RefusalOfRemoved(source);
  } else if constexpr (std::is_same_v<Source, ImageVolumeSource>) {
    return RefusalOfImage(source);
  } else {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> RefusalOf(const VolumeSource& source) {
  return std::visit([](const auto& one) { return RefusalOfSource(one); }, source);
}

std::optional<std::string> RefusalOf(const PersistentVolumeSource& source) {
  return std::visit([](const auto& one) { return RefusalOfSource(one); }, source);
}

}  // namespace volumed
