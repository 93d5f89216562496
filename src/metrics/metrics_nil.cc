#include "metrics/metrics_nil.h"

namespace volumed {

Result<Metrics> MetricsNil::GetMetrics(const CallOptions&) { return NewNotSupportedError(); }

}  // namespace volumed
