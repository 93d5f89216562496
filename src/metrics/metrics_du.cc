#include "metrics/metrics_du.h"

#include <utility>
#include <variant>

#include "metrics/metrics_statfs.h"
#include "metrics/metrics_timed.h"

namespace volumed {

namespace {

template <typename Request>
Result<typename Request::Answer> AnswerTo(const Result<AnyAnswer>& answer) {
  if (!answer.ok()) return answer.error();
  return std::get<typename Request::Answer>(*answer);
}

}  // namespace

MetricsDu::MetricsDu(Kernel& kernel, const Clock& clock, SafePath path)
    : kernel_(kernel), clock_(clock), path_(std::move(path)) {}

Result<Metrics> MetricsDu::GetMetrics(const CallOptions& options) {
  if (path_.root.empty()) return NewNoPathDefinedError();
  const Result<UsageInfo> usage = kernel_.Call(Usage{path_}, options);
  if (!usage.ok()) return usage.error();
  return Read(usage, kernel_.Call(StatFs{path_}, options));
}

std::optional<MetricsPlan> MetricsDu::PlanMetrics() {
  if (path_.root.empty()) return std::nullopt;
  return MetricsPlan{{Usage{path_}, StatFs{path_}},
                     [this](const std::vector<Result<AnyAnswer>>& answers, Duration) {
                       return Read(AnswerTo<Usage>(answers[0]), AnswerTo<StatFs>(answers[1]));
                     }};
}

Result<Metrics> MetricsDu::Read(const Result<UsageInfo>& usage, const Result<FsInfo>& info) const {
  if (!usage.ok()) return usage.error();
  if (!info.ok()) return NewFsInfoFailedError(info.error());
  Metrics metrics;
  FillFromFsInfo(*info, metrics);
  metrics.used_bytes = usage->used_bytes;
  metrics.inodes_used = usage->inodes_used;
  metrics.time_unix_ms = clock_.WallUnixMillis();
  return metrics;
}

std::unique_ptr<MetricsProvider> NewTimedMetricsDu(Kernel& kernel, const Clock& clock,
                                                   SafePath path, ExportedFamilies& families) {
  return std::make_unique<MetricsTimed>(std::make_unique<MetricsDu>(kernel, clock, std::move(path)),
                                        "du", clock, families);
}

}  // namespace volumed
