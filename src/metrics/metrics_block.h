// MetricsBlock: the capacity of a raw block volume. Its size comes from sysfs; kubelet opens the
// device for it.
// Source: kubernetes pkg/volume/metrics_block.go@v1.36.2.
#pragma once

#include "base/clock.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"

namespace volumed {

// Fills the capacity alone: what of a raw device is used, only its user knows. Threads: any.
// Blocks: until the options' deadline. Errors, all not applied: NoPathDefined for a path without
// root; FsInfoFailed if the device cannot be looked at, is no block device, or has a size that is
// unknown.
class MetricsBlock final : public MetricsProvider {
 public:
  // `device` may be a link to the device. Kernel and clock outlive this.
  MetricsBlock(Kernel& kernel, const Clock& clock, SafePath device);
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  Kernel& kernel_;
  const Clock& clock_;
  const SafePath device_;
};

}  // namespace volumed
