// The way to a manifest directory as text: the places at which a mount that comes or goes would
// make the path lead elsewhere. inotify does not report mounts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/directory_identity.h"
#include "kube/manifest_reader.h"

namespace volumed {

// Returns `directory` as it was given, every link on the way, and where the way ends. It only asks
// for the paths of open descriptors. Threads: any. Blocks: never. All but the first are as the
// kernel names them, without links.
std::vector<std::string> PlacesOnWay(const std::string& directory,
                                     const std::optional<OpenDirectory>& opened,
                                     const PathWalk& way);

// Whether one of the mounts is at one of the places, or at a directory above one. This function is
// pure.
bool ChangesWay(const std::vector<std::string>& mount_points,
                const std::vector<std::string>& places);

}  // namespace volumed
