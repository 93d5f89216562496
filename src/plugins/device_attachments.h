// Finds out whether volumes still have the disks by which the node uses them; for plugins that see
// their disks in sysfs. Private to plugins.
//
// A volume that is neither mounted nor mapped always counts as attached: its disk comes when it is
// waited for, and goes when it is unmounted. A volume that is mounted or mapped must be on a disk
// that is the volume's now. A disk that has left the node is not, and does not become the volume's
// disk again when a disk of the same name, or the volume's own, comes back: what was mounted from
// it answers with errors from then on.
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

// Whether this disk, which is on the node now, belongs to the volume with this index. It is called
// on the thread of AreDevicesAttached, once for each disk of a volume that is in use.
using IsDiskOfVolume =
    std::function<Result<bool>(size_t volume, const ScsiDisk& disk, const CallOptions& call)>;

// One answer for each place: where a device is mounted for the node, or the directory of the device
// nodes that pods have of it. The mount table is read once for all, and no disk is asked. The
// places are in the directory of `plugin_name`. A multipath device is the volume's as long as one
// of its paths is.
// Threads: any. Blocks: for short questions to the kernel. Errors: those of the effects. After an
// error nothing is known of any place.
Result<std::vector<bool>> AreDevicesAttached(VolumeHost& host, ScsiDevices& scsi,
                                             const std::string& plugin_name,
                                             const std::vector<SafePath>& places,
                                             const IsDiskOfVolume& is_disk_of,
                                             const CallOptions& call);

// Asks VolumesAreAttached for one node after the other. Threads: any. Blocks: as
// VolumesAreAttached. The first node that fails ends it with that error.
class NodeByNodeVerifier final : public BulkVolumeVerifier {
 public:
  // `plugin` outlives this object.
  explicit NodeByNodeVerifier(AttachableVolumePlugin& plugin) : plugin_(plugin) {}
  Result<AttachedByNode> BulkVerifyVolumes(const SpecsByNode& specs,
                                           const CallOptions& call) override;

 private:
  AttachableVolumePlugin& plugin_;
};

// Errors: InvalidArgument, not applied, naming both nodes: the disks of a node are visible only
// there.
Status CheckIsThisNode(const VolumeHost& host, const NodeName& node);

}  // namespace volumed
