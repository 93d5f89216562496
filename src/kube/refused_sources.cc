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

std::string RefusalOfImage(const ImageVolumeSource& image) {
  return "image volumes (" + (image.reference.empty() ? "no reference" : image.reference) +
         ") are mounted by a container runtime, which pulls and unpacks images; this agent has "
         "none. Unpack the image to a directory of the node and use hostPath, or a local "
         "PersistentVolume";
}

template <typename Source>
std::optional<std::string> RefusalOfSource(const Source& source) {
  if constexpr (std::is_same_v<Source, RemovedVolumeSource>) {
    return RefusalOfRemoved(source);
  } else if constexpr (std::is_same_v<Source, ImageVolumeSource>) {
    return RefusalOfImage(source);
  } else {
    return std::nullopt;
  }
}

template <typename Source>
std::optional<std::string> MissingDriverOfSource(const Source& /*source*/) {
  if constexpr (MigratedSource<Source>) {
    return Gone(Source::kKind) + "; the CSI driver " + Source::kCsiDriver +
           ", which replaces them, has not registered on this node";
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

std::optional<std::string> MissingDriverOf(const VolumeSource& source) {
  return std::visit([](const auto& one) { return MissingDriverOfSource(one); }, source);
}

std::optional<std::string> MissingDriverOf(const PersistentVolumeSource& source) {
  return std::visit([](const auto& one) { return MissingDriverOfSource(one); }, source);
}

}  // namespace volumed
