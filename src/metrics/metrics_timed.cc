#include "metrics/metrics_timed.h"

#include <utility>

namespace volumed {

MetricsTimed::MetricsTimed(std::unique_ptr<MetricsProvider> provider, std::string source,
                           const Clock& clock, ExportedFamilies& families)
    : provider_(std::move(provider)),
      source_(std::move(source)),
      clock_(clock),
      families_(families) {}

Result<Metrics> MetricsTimed::GetMetrics(const CallOptions& options) {
  const TimePoint start = clock_.Now();
  Result<Metrics> metrics = provider_->GetMetrics(options);
  families_.ObserveVolumeMetricCollection(source_, clock_.Now() - start);
  return metrics;
}

std::optional<MetricsPlan> MetricsTimed::PlanMetrics() {
  std::optional<MetricsPlan> plan = provider_->PlanMetrics();
  if (!plan) return std::nullopt;
  plan->read = [this, read = std::move(plan->read)](const std::vector<Result<AnyAnswer>>& answers,
                                                    Duration took) {
    families_.ObserveVolumeMetricCollection(source_, took);
    return read(answers, took);
  };
  return plan;
}

}  // namespace volumed
