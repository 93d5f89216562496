#include "csi/csi_metrics.h"

#include <optional>
#include <utility>

#include "csi/csi_health.h"
#include "csi/csi_node_requests.h"
#include "csi/rpc/csi_outcome.h"
#include "metrics/exported_families.h"

namespace volumed {
namespace {

using NodeCan = ::csi::v1::NodeServiceCapability_RPC;
using UsageOf = ::csi::v1::VolumeUsage;

// Of one unit, as far as the driver says them.
struct Figures {
  std::optional<int64_t> used;
  std::optional<int64_t> total;
  std::optional<int64_t> available;
};

// What cannot be; empty: all can.
std::string WhatCannotBe(const UsageOf& usage, const char* of) {
  const auto says = [of](int64_t number, const char* what) {
    return std::to_string(number) + " " + of + " are " + what;
  };
  if (usage.total() < 0) return "there are " + std::to_string(usage.total()) + " " + of;
  if (usage.used() < 0) return says(usage.used(), "used");
  if (usage.available() < 0) return says(usage.available(), "left");
  // Who does not know how many there are says none.
  if (usage.total() == 0) return "";
  const std::string all = " of " + std::to_string(usage.total());
  if (usage.used() > usage.total()) return says(usage.used(), "used") + all;
  if (usage.available() > usage.total()) return says(usage.available(), "left") + all;
  return "";
}

// A number that is not said is zero on the wire, too.
Figures FiguresOfUsage(const UsageOf& usage) {
  Figures figures;
  if (usage.total() > 0) figures.total = usage.total();
  // Of a raw device nobody knows what is used.
  if (usage.used() == 0 && usage.available() == 0) return figures;
  figures.used = usage.used();
  figures.available = usage.available();
  return figures;
}

Error SenselessFigures(const std::string& why) { return Error::NotApplied(Code::kInternal, why); }

bool MayBeAsked(CsiDriverState state) {
  switch (state) {
    case CsiDriverState::kReady:
    case CsiDriverState::kUnhealthy:
    // Whoever measures asks one at a time then, which shows when it answers again.
    case CsiDriverState::kSilent:
      return true;
    case CsiDriverState::kGone:
    case CsiDriverState::kUnregistered:
    case CsiDriverState::kOtherNode:
    case CsiDriverState::kStarting:
      return false;
  }
  return false;
}

}  // namespace

Result<Metrics> FiguresOf(const ::csi::v1::NodeGetVolumeStatsResponse& answer) {
  Metrics metrics;
  for (const UsageOf& usage : answer.usage()) {
    if (usage.unit() == UsageOf::UNKNOWN) return SenselessFigures("they are of no unit");
    if (usage.unit() != UsageOf::BYTES && usage.unit() != UsageOf::INODES) continue;
    const bool is_bytes = usage.unit() == UsageOf::BYTES;
    if (const std::string why = WhatCannotBe(usage, is_bytes ? "bytes" : "inodes"); !why.empty()) {
      return SenselessFigures(why);
    }
    const Figures figures = FiguresOfUsage(usage);
    (is_bytes ? metrics.used_bytes : metrics.inodes_used) = figures.used;
    (is_bytes ? metrics.capacity_bytes : metrics.inodes) = figures.total;
    (is_bytes ? metrics.available_bytes : metrics.inodes_free) = figures.available;
  }
  return metrics;
}

CsiMetrics::CsiMetrics(const CsiContext& context, std::string driver, std::string handle,
                       std::string path)
    : context_(context),
      driver_(std::move(driver)),
      handle_(std::move(handle)),
      path_(std::move(path)) {}

Result<Metrics> CsiMetrics::GetMetrics(const CallOptions& options) {
  const Clock& clock = context_.host.clock;
  const TimePoint began = clock.Now();
  Result<Metrics> measured = Measure(options);
  context_.host.metrics.ObserveVolumeMetricCollection(driver_, clock.Now() - began);
  return measured;
}

Result<Metrics> CsiMetrics::Measure(const CallOptions& options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<CsiDriver> found, FindDriver(context_, driver_));
  const CsiDriverFacts driver = found->facts();
  const bool has_figures = driver.HasNode(NodeCan::GET_VOLUME_STATS);
  const bool has_health = TellsHealth(driver, context_.parts.settings.Get().level);
  if (!has_figures && !has_health) return NewNotSupportedErrorWithDriverName(driver_);
  if (!MayBeAsked(found->health().state)) {
    return Error::NotApplied(Code::kUnavailable, found->WhyAway());
  }
  Metrics metrics;
  if (has_figures) {
    ASSIGN_OR_RETURN(metrics, Ask(driver, options));
  }
  if (has_health) RETURN_IF_ERROR(AddHealth(options, metrics));
  metrics.time_unix_ms = context_.host.clock.WallUnixMillis();
  return metrics;
}

Result<Metrics> CsiMetrics::Ask(const CsiDriverFacts& driver, const CallOptions& options) const {
  const auto answer = CallDriver<::csi::v1::NodeGetVolumeStatsResponse>(
      context_, driver_, NodeStatsRequest(handle_, path_), options);
  if (!answer.ok()) {
    const Error& error = answer.error();
    const bool was_asked = !error.IsAbout(kCsiNeverSent);
    if (error.code() == Code::kDeadlineExceeded && was_asked) return error.AsMaybeApplied();
    return error;
  }
  Result<Metrics> metrics = FiguresOf(*answer);
  if (!metrics.ok()) {
    const Error lie = DriverLied(context_, {driver_, "NodeGetVolumeStats", handle_},
                                 "the volume has these figures", metrics.error().message());
    // Nothing was changed.
    return Error::NotApplied(lie.code(), lie.message());
  }
  const bool tells = TellsCondition(driver);
  if (answer->usage().empty() && !tells) {
    return Error::NotApplied(Code::kInternal,
                             driver_ + ": failed to get usage from response. usage is nil");
  }
  if (!tells) return metrics;
  if (const auto condition = ConditionOf(*answer, SecretsOf(context_, driver_))) {
    metrics->abnormal = condition->abnormal;
    metrics->message = condition->message;
  }
  return metrics;
}

Status CsiMetrics::AddHealth(const CallOptions& options, Metrics& metrics) const {
  ASSIGN_OR_RETURN(const CsiCondition condition,
                   AskVolumeHealth(context_, driver_, handle_, path_, options));
  metrics.abnormal = condition.abnormal;
  metrics.message = condition.message;
  return OkStatus();
}

}  // namespace volumed
