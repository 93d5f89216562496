// MetricsStatFs: the figures of the whole filesystem that a volume is, or lies on.
// Source: kubernetes pkg/volume/metrics_statfs.go@v1.36.2.
#pragma once

#include "base/clock.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"

namespace volumed {

// Fills everything that statfs(2) knows, and not the time: whoever got the answer sets that. Pure.
void FillFromFsInfo(const FsInfo& info, Metrics& metrics);

// If several volumes lie on one filesystem, each has the figures of all. Threads: any. Blocks:
// until the options' deadline. Errors, all not applied: NoPathDefined for a path without root,
// FsInfoFailed for any failure of the Kernel.
class MetricsStatFs final : public MetricsProvider {
 public:
  // Kernel and clock outlive this.
  MetricsStatFs(Kernel& kernel, const Clock& clock, SafePath path);
  Result<Metrics> GetMetrics(const CallOptions& options) override;

 private:
  Kernel& kernel_;
  const Clock& clock_;
  const SafePath path_;
};

}  // namespace volumed
