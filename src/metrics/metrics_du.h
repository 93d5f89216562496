// MetricsDu: what a directory uses, counted by a walk, on a filesystem that it shares with others.
// Source: kubernetes pkg/volume/metrics_du.go@v1.36.2.
#pragma once

#include <memory>

#include "base/clock.h"
#include "metrics/exported_families.h"
#include "metrics/metrics_provider.h"
#include "os/kernel.h"

namespace volumed {

// Used bytes and inodes come from the walk; capacity, available, inodes and free inodes are those
// of the filesystem. The walk and statfs are two looks: what changes between them is in one alone.
// Threads: any. Blocks: until the options' deadline; a walk may take long.
// Errors: NoPathDefined for a path without root; that of the walk as it is, which may say "maybe
// applied" although nothing was changed, and is none of MetricsErrorCode; FsInfoFailed if statfs
// fails.
class MetricsDu final : public MetricsProvider {
 public:
  // Kernel and clock outlive this, and every plan that it made.
  MetricsDu(Kernel& kernel, const Clock& clock, SafePath path);
  Result<Metrics> GetMetrics(const CallOptions& options) override;
  std::optional<MetricsPlan> PlanMetrics() override;

 private:
  Result<Metrics> Read(const Result<UsageInfo>& usage, const Result<FsInfo>& info) const;

  Kernel& kernel_;
  const Clock& clock_;
  const SafePath path_;
};

// The same, with each measurement counted in `families`, which outlives it, under kubelet's
// metric_source "du".
std::unique_ptr<MetricsProvider> NewTimedMetricsDu(Kernel& kernel, const Clock& clock,
                                                   SafePath path, ExportedFamilies& families);

}  // namespace volumed
