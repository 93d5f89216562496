// The path of the directory at which an iSCSI disk is mounted, or in which it is bound, names the
// disk:
//   .. / iface-<iface> / <portal>-<iqn>-lun-<lun>
// Source: kubernetes pkg/volume/iscsi/iscsi_util.go@v1.36.2 (makePDNameInternal,
// extractPortalAndIqn).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "volumehost/kubelet_paths.h"

namespace volumed {

inline constexpr char kIscsiPluginName[] = "kubernetes.io/iscsi";

// This is a value; threads: any.
struct IscsiNames {
  std::string iface;   // "default"
  std::string portal;  // "10.0.0.1:3260", "[fd00::1]:3260"
  std::string iqn;
  int64_t lun = 0;
};

// Parses the last two elements of the path; nullopt for other paths. This function is pure.
std::optional<IscsiNames> ParseIscsiNames(const std::string& path);

// "<portal>:<iqn>:<lun>". Source: iscsi.go (GetVolumeName).
std::string IscsiVolumeName(const std::string& portal, const std::string& iqn, int64_t lun);

// Where iSCSI disks lie, as a KubeletPaths::DeviceLayout:
//   <root>/plugins/kubernetes.io/iscsi/iface-<iface>/<names>
//   <root>/plugins/kubernetes.io/iscsi/volumeDevices/iface-<iface>/<names>/<uid>
std::optional<KubeletPaths::DeviceMount> IscsiDeviceAt(const std::vector<std::string>& elements);

}  // namespace volumed
