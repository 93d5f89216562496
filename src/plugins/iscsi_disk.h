// What an iSCSI volume is: its target, LUN, portals and interface, from a spec, from the file that
// lies beside its mount (iscsi.json), or from the name of the directory it is mounted at. Values
// and pure functions alone. Private to iscsi.
//
//   <root>/plugins/kubernetes.io/iscsi/iface-<iface>/<portal>-<iqn>-lun-<lun>/iscsi.json
//   <root>/plugins/kubernetes.io/iscsi/volumeDevices/iface-<iface>/<portal>-<iqn>-lun-<lun>/..
//
// Source: kubernetes pkg/volume/iscsi/iscsi.go, iscsi_util.go@v1.36.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "volume/volume_spec.h"
#include "volumehost/iscsi_names.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

inline constexpr char kIscsiFile[] = "iscsi.json";

// A value; threads: any.
struct IscsiDisk {
  std::string vol_name;              // the spec's
  std::vector<std::string> portals;  // "10.0.0.1:3260", "[fd00::1]:3260"; the first names its place
  std::string iqn;
  int64_t lun = 0;
  std::string init_iface = "default";  // as the spec has it
  // Through which sessions are made: init_iface, or the clone of it that has `initiator_name`.
  std::string iface = "default";
  std::string initiator_name;  // empty: the node's
  friend bool operator==(const IscsiDisk&, const IscsiDisk&) = default;

  bool has_own_iface() const { return !initiator_name.empty() && iface != init_iface; }
};

struct IscsiVolume {
  IscsiDisk disk;
  std::string fs_type;
  bool read_only = false;  // by the pod's source, or its claim
  bool chap_discovery = false;
  bool chap_session = false;
  std::string secret_name;       // empty: none
  std::string secret_namespace;  // empty: the pod's
};

// Errors, not applied: InvalidArgument for a spec of another kind, or with names that cannot be
// those of portals, targets or interfaces.
Result<IscsiVolume> IscsiVolumeOf(const VolumeSpec& spec);

// "<portal>:<iqn>:<lun>". Source: iscsi.go (GetVolumeName), which has the portal as it is written:
// without its port, a volume that is found on the node would be another one, as its place has the
// port.
std::string GetIscsiVolumeName(const IscsiVolume& volume);

// "10.0.0.1" is "10.0.0.1:3260", "fd00::1" and "[fd00::1]" are "[fd00::1]:3260".
std::string PortalWithPort(const std::string& portal);
struct PortalParts {
  std::string address;  // "fd00::1"
  std::string port;
};
// REQUIRES: of PortalWithPort.
PortalParts SplitPortal(const std::string& portal);
// The same portal, however an IPv6 address is written.
bool IsSamePortal(const std::string& a, const std::string& b);
// One of the disk's.
bool HasPortal(const IscsiDisk& disk, const std::string& portal);

// The name of udevd's link to the disk, below /dev/disk/by-path. `pci_address` is of the host of a
// transport other than tcp; empty for tcp. Source: systemd src/udev/udev-builtin-path_id.c
// (handle_scsi_iscsi, format_lun_number).
std::string ByPathLink(const IscsiDisk& disk, const std::string& portal,
                       const std::string& pci_address);

// Where the disk is mounted for the node, and where its node is bound for pods.
SafePath IscsiMountPlace(const KubeletPaths& paths, const IscsiDisk& disk);
SafePath IscsiMapPlace(const KubeletPaths& paths, const IscsiDisk& disk);
// What such a path says: one portal, no names. Nothing for another one.
std::optional<IscsiDisk> ParseIscsiPlace(const std::string& path);
// Whether pods have the device itself, by its place.
bool IsIscsiMapPlace(const KubeletPaths& paths, const SafePath& place);

// iscsi.json: kubelet reads what we write, and we what kubelet wrote. It has no secrets.
std::string EncodeIscsiDisk(const IscsiDisk& disk);
// DataLoss, not applied, for what is no such file.
Result<IscsiDisk> DecodeIscsiDisk(std::string_view json);

}  // namespace volumed
