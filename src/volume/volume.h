// Volume: a place on the node with a path and metrics. (The volume of a pod's spec is PodVolume.)
// Source: kubernetes pkg/volume/volume.go@v1.36.2 (Volume).
#pragma once

#include <string>

#include "metrics/metrics_provider.h"

namespace volumed {

// Threads: one at a time. GetPath never blocks.
class Volume : public MetricsProvider {
 public:
  // Where the volume's content is, or will be, on the node: an absolute path, for display and for a
  // pod. Effects use a checked root instead (Mounter).
  virtual std::string GetPath() const = 0;
};

}  // namespace volumed
