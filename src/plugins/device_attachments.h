// Whether volumes still have the disks that the node uses them by: what a plugin answers that sees
// its disks in sysfs. Private to plugins.
//
// Of a volume that is neither mounted nor mapped nothing can be missing: its disk comes when it is
// waited for, and goes when it is unmounted. One that is has to be on a disk that is the volume's
// now. A disk that left the node is not, and does not become so again when one of its name, or the
// volume's own, comes back: what was mounted from it answers with errors from then on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "attacher/scsi_devices.h"
#include "base/result.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Whether this disk, which is on the node now, is the volume's with this index.
using IsDiskOfVolume =
    std::function<Result<bool>(size_t volume, const ScsiDisk& disk, const CallOptions& call)>;

// One answer for each place: where a device is mounted for the node, or the directory of the nodes
// that pods have of it. The mount table is looked at once for all. Nothing is asked of a disk.
// `plugin_name`'s directory has the places. A multipath device is the volume's while one of its
// paths is.
// Threads: any. Blocks: never for long. Errors: those of the effects.
Result<std::vector<bool>> AreDevicesAttached(VolumeHost& host, ScsiDevices& scsi,
                                             const std::string& plugin_name,
                                             const std::vector<SafePath>& places,
                                             const IsDiskOfVolume& is_disk_of,
                                             const CallOptions& call);

// By VolumesAreAttached, node by node. Threads: any. Blocks: as that.
class NodeByNodeVerifier final : public BulkVolumeVerifier {
 public:
  // Outlives it.
  explicit NodeByNodeVerifier(AttachableVolumePlugin& plugin) : plugin_(plugin) {}
  Result<AttachedByNode> BulkVerifyVolumes(const SpecsByNode& specs,
                                           const CallOptions& call) override;

 private:
  AttachableVolumePlugin& plugin_;
};

// InvalidArgument, not applied, naming both: a node's disks are seen on that node alone.
Status CheckIsThisNode(const VolumeHost& host, const NodeName& node);

}  // namespace volumed
