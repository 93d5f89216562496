// MetricsBlock: the capacity of a raw block volume.
// Source: kubernetes pkg/volume/metrics_block.go@v1.36.2. Its size comes from sysfs here, where
// kubelet opens the device.
#pragma once

#include "base/clock.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"

namespace volumed {

// Fills the capacity alone. Threads: any. Blocks: until the options' deadline. Errors: NoPathDefined
// for a path without root; FsInfoFailed for what is no block device, or whose size is unknown.
class MetricsBlock final : public MetricsProvider {
 public:
  // `device` may be a link to it.
  MetricsBlock(Kernel& kernel, const Clock& clock, SafePath device);
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  Kernel& kernel_;
  const Clock& clock_;
  const SafePath device_;
};

}  // namespace volumed
