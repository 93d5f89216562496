// MetricsNil: the provider of a volume that has nothing to measure.
// Source: kubernetes pkg/volume/metrics_nil.go@v1.36.2.
#pragma once

#include "metrics/metrics_provider.h"

namespace volumed {

// Threads: any. Blocks: never. Errors: NotSupported, always.
class MetricsNil final : public MetricsProvider {
 public:
  Result<Metrics> GetMetrics(const CallOptions& options) override;
};

}  // namespace volumed
