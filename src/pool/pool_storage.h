// The storage of a pool's volumes: how it is made for a claim, and deleted. Private to PoolPlugin.
#pragma once

#include <memory>
#include <optional>

#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "pool/pool_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// What the planned volume is to have in it: by the plan, if there is one. Pure. Errors, not
// applied: DataLoss for a plan that cannot be read.
Result<std::optional<VolumeContent>> PoolContentOf(const VolumeOptions& options);

// A plan has the id that the volume is going to have, and its text says everything else that a
// repeated Provision() needs. So the planned volume is the one that is made, and Undo() deletes it
// only if nobody has ever opened it. Errors of Plan(), not applied: InvalidArgument for what a
// pool does not have (a selector, another driver's content, access from other nodes, an unknown
// parameter), those of PoolVolumes::ShapeOf;
// OutOfRange; NotFound for a pool that is not configured; Unavailable while it is not open;
// FailedPrecondition while the node lacks the label that the volume's affinity names. Of
// Provision(): those of PoolVolumes::Create and of VolumeOptions::may_be_new.
// `host` and `parts` outlive what is made.
std::unique_ptr<Provisioner> MakePoolProvisioner(VolumeHost& host, const PoolPluginParts& parts,
                                                 VolumeOptions options);

// Errors of the deleter, besides those of PoolVolumes::Delete: IsDeletedVolumeInUse(), if the
// volume is mounted on the node or a pod has its device. `host` and `parts` outlive what is made.
std::unique_ptr<Deleter> MakePoolDeleter(VolumeHost& host, const PoolPluginParts& parts,
                                         std::string id);

}  // namespace volumed
