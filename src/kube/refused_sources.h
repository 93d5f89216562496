// Volume sources that a manifest may hold and this program refuses: those that were removed from
// Kubernetes' own tree without a translation (volume/csi_translation.h has the others), and image
// volumes. Each refusal says what to use instead. Threads: any. Blocks: no.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "kube/storage_objects.h"
#include "kube/volume_sources.h"

namespace volumed {

// An in-tree source of core/v1 without an implementation or a translation in Kubernetes v1.36. Its
// texts live as long as the program.
struct RemovedSource {
  const char* field;            // its name in a manifest
  std::string_view csi_driver;  // the driver that replaces it; "" if none does
  std::string_view remark;      // what else a reader has to know; may be ""
};

// Kubernetes translates none of these (of those that it does, kube/migrated_sources.h has the
// driver). Source: the names of the drivers are from the vendors' own documentation.
inline constexpr std::array<RemovedSource, 8> kRemovedSources = {{
    {"cephfs", "cephfs.csi.ceph.com", ""},
    {"rbd", "rbd.csi.ceph.com", ""},
    {"glusterfs", "org.gluster.glusterfs", "no longer maintained"},
    {"quobyte", "csi.quobyte.com", ""},
    {"scaleIO", "csi-vxflexos.dellemc.com", "Dell PowerFlex, as ScaleIO is called now"},
    {"storageos", "csi.storageos.com", "no longer maintained"},
    {"flocker", "", "Flocker was discontinued"},
    {"photonPersistentDisk", "", "the Photon platform was discontinued"},
}};

// Why no volume is made of this source, for people; nullopt if the source's kind is not refused. A
// plugin for the kind may still be missing, or refuse it (gitRepo).
std::optional<std::string> RefusalOf(const VolumeSource& source);
std::optional<std::string> RefusalOf(const PersistentVolumeSource& source);

// Of a source that is translated: what to say of it while its driver has never registered here;
// nullopt for every other source.
std::optional<std::string> MissingDriverOf(const VolumeSource& source);
std::optional<std::string> MissingDriverOf(const PersistentVolumeSource& source);

}  // namespace volumed
