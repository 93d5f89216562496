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
  return Keep(std::move(metrics));
}

std::optional<MetricsPlan> MetricsCached::PlanMetrics() {
  {
    MutexLock lock(mu_);
    if (first_) return std::nullopt;  // there is nothing to be asked any more
  }
  std::optional<MetricsPlan> plan = provider_->PlanMetrics();
  if (!plan) return std::nullopt;
  plan->read = [this, read = std::move(plan->read)](const std::vector<Result<AnyAnswer>>& answers,
                                                    Duration took) -> Result<Metrics> {
    ASSIGN_OR_RETURN(Metrics metrics, read(answers, took));
    return Keep(std::move(metrics));
  };
  return plan;
}

Metrics MetricsCached::Keep(Metrics metrics) {
  MutexLock lock(mu_);
  if (!first_) first_ = std::move(metrics);
  return *first_;
}

}  // namespace volumed
