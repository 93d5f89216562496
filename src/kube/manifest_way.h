// The way to a manifest directory as text: where a mount that comes or goes makes its path lead
// elsewhere. inotify tells nothing of mounts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/directory_identity.h"
#include "kube/manifest_reader.h"

namespace volumed {

// `directory` as it was given, every link on the way, and where the way ends. Asks only where open
// descriptors are. Threads: any. Blocks: never.
std::vector<std::string> PlacesOnWay(const std::string& directory,
                                     const std::optional<OpenDirectory>& opened,
                                     const PathWalk& way);

// Whether one of the mounts is at one of the places or at a directory above it. Pure.
bool ChangesWay(const std::vector<std::string>& mount_points,
                const std::vector<std::string>& places);

}  // namespace volumed
