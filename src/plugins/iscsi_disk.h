// What an iSCSI volume is: its target, LUN, portals and interface. These come from a spec, from the
// file beside its mount (iscsi.json), or from the name of the directory at which it is mounted.
// This header has only values and pure functions. Private to iscsi.
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
#include "plugins/iscsi_names.h"
#include "volume/volume_spec.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

inline constexpr char kIscsiFile[] = "iscsi.json";
// Beside it: the portal for whose discovery the agent has made a record with the secret, as long as
// that record is there. An agent that ends amid the discovery leaves both.
inline constexpr char kIscsiDiscoveryFile[] = "discovery";

// This is a value; threads: any.
struct IscsiDisk {
  std::string vol_name;  // the name of the spec
  // "10.0.0.1:3260", "[fd00::1]:3260"; the first one names the volume's place.
  std::vector<std::string> portals;
  std::string iqn;
  int64_t lun = 0;
  std::string init_iface = "default";  // as in the spec
  // The interface of the sessions: init_iface, or its copy that has `initiator_name`.
  std::string iface = "default";
  std::string initiator_name;  // empty: the node's name is used
  friend bool operator==(const IscsiDisk&, const IscsiDisk&) = default;

  bool has_own_iface() const { return !initiator_name.empty() && iface != init_iface; }
};

struct IscsiVolume {
  IscsiDisk disk;
  std::string fs_type;
  bool read_only = false;  // because of the pod's source, or its claim
  bool chap_discovery = false;
  bool chap_session = false;
  std::string secret_name;       // empty: there is no secret
  std::string secret_namespace;  // empty: the pod's namespace
};

// Errors, not applied: InvalidArgument if the spec is of another kind, or has names that portals,
// targets or interfaces cannot have.
Result<IscsiVolume> IscsiVolumeOf(const VolumeSpec& spec);

// "<portal>:<iqn>:<lun>". Source: iscsi.go (GetVolumeName), which has the portal as it is written:
// without its port, a volume that is found on the node would be another one, as its place has the
// port.
std::string GetIscsiVolumeName(const IscsiVolume& volume);

// Makes "10.0.0.1:3260" of "10.0.0.1", and "[fd00::1]:3260" of "fd00::1" and "[fd00::1]".
std::string PortalWithPort(const std::string& portal);
struct PortalParts {
  std::string address;  // "fd00::1"
  std::string port;
};
// REQUIRES: `portal` is a result of PortalWithPort.
PortalParts SplitPortal(const std::string& portal);
// Whether both are the same portal, however an IPv6 address is written.
bool IsSamePortal(const std::string& a, const std::string& b);
// Whether the portal is one of the disk's.
bool HasPortal(const IscsiDisk& disk, const std::string& portal);

// The name of udevd's link to the disk, below /dev/disk/by-path. `pci_address` is that of the host
// of a transport other than tcp; empty for tcp. Source: systemd src/udev/udev-builtin-path_id.c
// (handle_scsi_iscsi, format_lun_number).
std::string ByPathLink(const IscsiDisk& disk, const std::string& portal,
                       const std::string& pci_address);

// Where the disk is mounted for the node, and where its device node is bound for pods.
SafePath IscsiMountPlace(const KubeletPaths& paths, const IscsiDisk& disk);
SafePath IscsiMapPlace(const KubeletPaths& paths, const IscsiDisk& disk);
// What such a path tells: one portal, and no names of volume or initiator. nullopt for another
// path.
std::optional<IscsiDisk> ParseIscsiPlace(const std::string& path);
// Whether the place is one of a block volume, of which pods have the device itself.
bool IsIscsiMapPlace(const KubeletPaths& paths, const SafePath& place);

// iscsi.json: kubelet can read what this program writes, and this program what kubelet wrote. It
// has no secrets.
std::string EncodeIscsiDisk(const IscsiDisk& disk);
// Errors: DataLoss, not applied, if the text is not such a file.
Result<IscsiDisk> DecodeIscsiDisk(std::string_view json);

}  // namespace volumed
