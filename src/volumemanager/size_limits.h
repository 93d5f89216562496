// SizeLimits: emptyDir volumes that hold more than their sizeLimit. A disk does not enforce it, so
// it is compared with what was measured last, and then acted on as the configuration says. Source:
// kubernetes pkg/kubelet/eviction/eviction_manager.go@v1.36.2 (emptyDirLimitEviction).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/quantity.h"
#include "base/result.h"
#include "metrics/metrics_provider.h"
#include "operation/volume_operations.h"
#include "volume/volume_spec.h"
#include "volumehost/volume_host.h"

namespace volumed {

enum class SizeLimitAction {
  kEvict,   // the pod has to leave, as in kubelet
  kReport,  // an event and a problem of the volume, until it holds less again
};
// What kubelet names as the cause of such an eviction. Source: eviction_manager.go
// (signalEmptyDirFsLimit).
inline constexpr char kEmptyDirLimitSignal[] = "emptydirfs.limit";

// "evict", "report".
std::string_view SizeLimitActionName(SizeLimitAction action);
// InvalidArgument, not applied, naming the two.
Result<SizeLimitAction> ParseSizeLimitAction(std::string_view name);

// A volume that holds too much.
struct SizeLimitBreach {
  std::string message;  // kubelet's words
  int64_t used_bytes = 0;
  int64_t since_unix_ms = 0;  // when it was first seen
};

// `Usage of EmptyDir volume "v" exceeds the limit "1Gi". `; empty when it does not, when nothing
// was measured, or when it has no limit. A limit of zero is none.
std::string SizeLimitMessage(const VolumeSpec& spec, const Metrics& metrics);

// Threads: the control thread. Blocks: never.
class SizeLimits {
 public:
  // Takes the pod away; may be called again for a pod that is leaving.
  using Evict = std::function<void(const PodUid& pod, const std::string& message)>;

  // Both outlive this.
  SizeLimits(HostEvents& events, const Clock& clock, SizeLimitAction action, Evict evict);

  // One event, and one eviction, when the limit is first exceeded; again after it was kept.
  void Measured(const PodVolumeKey& key, const VolumeSpec& spec, const Metrics& metrics);
  void Forget(const PodVolumeKey& key) { breaches_.erase(key); }
  // Null when it is within its limit. Valid until the next change.
  const SizeLimitBreach* Find(const PodVolumeKey& key) const;

 private:
  HostEvents& events_;
  const Clock& clock_;
  const SizeLimitAction action_;
  const Evict evict_;
  std::map<PodVolumeKey, SizeLimitBreach> breaches_;
};

}  // namespace volumed
