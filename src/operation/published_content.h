// Sums up what a set-up publishes as a MAC of its effects, which is kept in the volume's row. If a
// new agent finds the volume in its place and computes the same MAC, the volume is as it is wanted:
// the agent asks the kernel nothing and writes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mounter/mounter.h"
#include "operation/volume_record.h"
#include "operation/volume_requests.h"
#include "os/composite_requests.h"
#include "pluginmgr/volume_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: any. Blocks: never.

// The MAC of all that the effects would make. Content that is issued anew each time is not in it;
// instead of that content the MAC has its issuer. "" if the agent has no key for the MAC.
std::string PublishedMac(const VolumeHost& host, const EnsureVolume& volume,
                         const std::vector<PrepareSubPath>& sub_paths);

// Whether a volume that an earlier agent has set up may be as it is wanted: it was found in its
// place with its sub-paths, its row says what was published there, and its tokens are still good.
bool MayBeInPlace(const MountRequest& request, const std::optional<PodVolumeRecord>& record,
                  const Clock& clock);

// The same for a volume whose plugin HandsOutWhatIsThere(): only its row decides. False for a
// volume with sub-paths, since they are bound from what its path leads to now.
bool IsHandedOutStill(const MountRequest& request, const VolumePlugin& plugin,
                      const std::optional<PodVolumeRecord>& record);

}  // namespace volumed
