// StorageName: where a volume says that its storage is. Two names may lead to one storage; only
// IdentifyStorage (os/storage_requests.h) tells. What a driver has, has one name: the driver's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "volume/volume_spec.h"

namespace volumed {

// A value. A path on this node is absolute, without "." and empty names; a server's is as the
// source has it.
struct StorageName {
  std::string path;         // on this node: a directory, a file or a device
  std::string server = {};  // of an NFS export; then `path` is the server's
  std::string driver = {};  // of a CSI driver's volume; then `path` is its handle, and no path
  friend bool operator==(const StorageName&, const StorageName&) = default;

  // Whether it is a place on this node, at which one can look.
  bool IsOnNode() const { return server.empty() && driver.empty(); }
  // "/srv/a", "nas:/srv/a", "disks.example.com^vol-1".
  std::string ToString() const {
    if (!driver.empty()) return driver + "^" + path;
    return server.empty() ? path : server + ":" + path;
  }
};

// Of hostPath, local and nfs volumes and of persistent csi volumes, whose sources say so
// (kube/source_facts.h); also of those that are translated for a CSI driver
// (volume/csi_translation.h). Others have storage of their own (emptyDir), none that can hold data
// (secret), or a device that is known once it is attached. Nullopt for these, and for a path on
// this node that is relative or has "..": plugins refuse it. Threads: any. Blocks: never.
std::optional<StorageName> StorageNameOf(const VolumeSpec& spec);
// The same of a volume of this pod. A csi volume of the pod's own is known to its driver by a
// handle that is made of both. Threads: any. Blocks: never.
std::optional<StorageName> StorageNameInPod(const PodUid& pod, const VolumeSpec& spec);
// "csi-<hash>": how a driver knows a pod's inline volume. Pure; threads: any. Source: kubernetes
// pkg/volume/csi/csi_mounter.go@v1.36.2 (makeVolumeHandle).
std::string CsiInlineHandle(const PodUid& pod, const SpecName& spec);
// Whether it is made as those are; whose it is, it does not say. Pure; threads: any.
bool IsLikeCsiInlineHandle(std::string_view handle);
// The kinds of source ("hostPath") of which StorageNameOf() knows a name, but for those that it
// translates; sorted. The reference is valid for ever.
const std::vector<std::string>& KindsWithStorageName();

}  // namespace volumed
