// MetricsCached: the first answer of another provider, for volumes whose content does not change
// while they are mounted. A remount makes a new provider, and so a new answer.
// Source: kubernetes pkg/volume/metrics_cached.go@v1.36.2.
#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "metrics/metrics_provider.h"

namespace volumed {

// Threads: any; no caller waits behind another one's measurement (kubelet's do), so two may measure
// at once, and the first answer stays. Blocks, Errors: as the other provider's, until one answer
// was good; errors are not kept.
class MetricsCached final : public MetricsProvider {
 public:
  explicit MetricsCached(std::unique_ptr<MetricsProvider> provider);
  Result<Metrics> GetMetrics(const CallOptions& options) override EXCLUDES(mu_);
  // Nullopt also if there is an answer already: GetMetrics() then gives it without asking anybody.
  // The plan keeps its answer here, so this object has to outlive it.
  std::optional<MetricsPlan> PlanMetrics() override EXCLUDES(mu_);

 private:
  Metrics Keep(Metrics metrics) EXCLUDES(mu_);

  const std::unique_ptr<MetricsProvider> provider_;
  Mutex mu_;
  std::optional<Metrics> first_ GUARDED_BY(mu_);
};

}  // namespace volumed
