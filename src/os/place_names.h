// The parts of a place on the node: the directory in which it lies, and its name there.
#pragma once

#include <string>

#include "os/safe_path.h"

namespace volumed {

// Threads: any. Blocks: never. A place that is its root has no name, and is its own parent.

inline SafePath ParentOf(const SafePath& place) {
  const size_t slash = place.relative.rfind('/');
  return {place.root, slash == std::string::npos ? "" : place.relative.substr(0, slash),
          place.resolve};
}

inline std::string NameOf(const SafePath& place) {
  return place.relative.substr(place.relative.rfind('/') + 1);
}

}  // namespace volumed
