// What a set-up publishes, as a number: a MAC of its effects, kept in the volume's row. A new agent
// that finds the volume where it was, and comes to the same number, knows that it is as it is
// wanted: it asks the kernel nothing and writes nothing.
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

// Of all that the effects would make, but for the content of what is issued anew each time, of
// which it has the issuer. "" if the agent has no key for it.
std::string PublishedMac(const VolumeHost& host, const EnsureVolume& volume,
                         const std::vector<PrepareSubPath>& sub_paths);

// Whether the volume that an agent before this one has set up may be as it is wanted: it was found
// in its place with its sub-paths, its row tells what was published there, and the tokens in it are
// good now.
bool MayBeInPlace(const MountRequest& request, const std::optional<PodVolumeRecord>& record,
                  const Clock& clock);

// The same of a volume whose plugin HandsOutWhatIsThere(): its row alone tells. Never of one with
// sub-paths, which are bound from what its path leads to now.
bool IsHandedOutStill(const MountRequest& request, const VolumePlugin& plugin,
                      const std::optional<PodVolumeRecord>& record);

}  // namespace volumed
