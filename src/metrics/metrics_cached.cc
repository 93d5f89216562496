#include "metrics/metrics_cached.h"

#include <utility>

namespace volumed {

MetricsCached::MetricsCached(std::unique_ptr<MetricsProvider> provider)
    : provider_(std::move(provider)) {}

Result<Metrics> MetricsCached::GetMetrics(const CallOptions& options) {
  {
    MutexLock lock(mu_);
    if (first_) return *first_;
  }
  ASSIGN_OR_RETURN(Metrics metrics, provider_->GetMetrics(options));
  MutexLock lock(mu_);
  if (!first_) first_ = std::move(metrics);
  return *first_;
}

}  // namespace volumed
