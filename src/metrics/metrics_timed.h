// MetricsTimed: counts how long another provider takes, in kubelet's histogram of measurements,
// under the name of how it measures.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "metrics/exported_families.h"
#include "metrics/metrics_provider.h"

namespace volumed {

// Threads, Blocks, Errors: as the other provider's. Failures count like answers, as in kubelet. A
// plan's answers count with the part of the time that whoever ran the plan says.
class MetricsTimed final : public MetricsProvider {
 public:
  // `source` is kubelet's metric_source: "statfs", "du", "block", or a CSI driver's name. Clock and
  // families outlive this.
  MetricsTimed(std::unique_ptr<MetricsProvider> provider, std::string source, const Clock& clock,
               ExportedFamilies& families);
  // Counts the time from the call to the answer, waits for a worker included.
  Result<Metrics> GetMetrics(const CallOptions& options) override;
  // The other provider's plan, whose `read` counts; nullopt if that has none. This object outlives
  // the plan.
  std::optional<MetricsPlan> PlanMetrics() override;

 private:
  const std::unique_ptr<MetricsProvider> provider_;
  const std::string source_;
  const Clock& clock_;
  ExportedFamilies& families_;
};

}  // namespace volumed
