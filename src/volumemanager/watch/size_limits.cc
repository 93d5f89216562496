#include "volumemanager/watch/size_limits.h"

#include <utility>

namespace volumed {
namespace {

// The first is kubelet's reason for a pod that the node had to end, the second this program's
// reason for a pod that may stay.
constexpr char kEvicted[] = "Evicted";
constexpr char kExceeded[] = "SizeLimitExceeded";

}  // namespace

std::string_view SizeLimitActionName(SizeLimitAction action) {
  switch (action) {
    case SizeLimitAction::kEvict:
      return "evict";
    case SizeLimitAction::kReport:
      return "report";
  }
  return "";
}

Result<SizeLimitAction> ParseSizeLimitAction(std::string_view name) {
  for (const SizeLimitAction action : {SizeLimitAction::kEvict, SizeLimitAction::kReport}) {
    if (name == SizeLimitActionName(action)) return action;
  }
  return Error::NotApplied(Code::kInvalidArgument,
                           "must be evict or report, not '" + std::string(name) + "'");
}

std::string SizeLimitMessage(const VolumeSpec& spec, const Metrics& metrics) {
  const auto* source = spec.SourceAs<EmptyDirVolumeSource>();
  if (source == nullptr || !source->size_limit || source->size_limit->Sign() <= 0) return "";
  if (!metrics.used_bytes) return "";
  if (Quantity::FromBytes(*metrics.used_bytes) <= *source->size_limit) return "";
  return "Usage of EmptyDir volume \"" + spec.name().str() + "\" exceeds the limit \"" +
         source->size_limit->String() + "\". ";
}

SizeLimits::SizeLimits(HostEvents& events, const Clock& clock, SizeLimitAction action, Evict evict)
    : events_(events), clock_(clock), action_(action), evict_(std::move(evict)) {}

void SizeLimits::Measured(const PodVolumeKey& key, const VolumeSpec& spec, const Metrics& metrics) {
  const std::string message = SizeLimitMessage(spec, metrics);
  if (message.empty()) {
    breaches_.erase(key);
    return;
  }
  const auto [at, is_new] = breaches_.try_emplace(key);
  at->second.message = message;
  at->second.used_bytes = *metrics.used_bytes;
  if (!is_new) return;
  at->second.since_unix_ms = clock_.WallUnixMillis();
  switch (action_) {
    case SizeLimitAction::kEvict:
      events_.RecordPodEvent(key.pod, EventType::kWarning, kEvicted, message);
      evict_(key.pod, message);
      break;
    case SizeLimitAction::kReport:
      events_.RecordPodEvent(key.pod, EventType::kWarning, kExceeded, message);
      break;
  }
}

const SizeLimitBreach* SizeLimits::Find(const PodVolumeKey& key) const {
  const auto found = breaches_.find(key);
  return found == breaches_.end() ? nullptr : &found->second;
}

}  // namespace volumed
