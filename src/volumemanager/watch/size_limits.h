// SizeLimits: finds emptyDir volumes that hold more than their sizeLimit. A disk does not enforce
// the limit, so each measurement is compared with it, and the configured action is taken. Source:
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
  kReport,  // an event, and a problem of the volume until it holds less
};
// What kubelet names as the cause of such an eviction. Source: eviction_manager.go
// (signalEmptyDirFsLimit).
inline constexpr char kEmptyDirLimitSignal[] = "emptydirfs.limit";

// "evict" or "report".
std::string_view SizeLimitActionName(SizeLimitAction action);
// Errors: InvalidArgument, not applied, naming the two words.
Result<SizeLimitAction> ParseSizeLimitAction(std::string_view name);

// A volume that holds more than its limit.
struct SizeLimitBreach {
  std::string message;  // in kubelet's words
  int64_t used_bytes = 0;
  int64_t since_unix_ms = 0;  // when it was first seen
};

// `Usage of EmptyDir volume "v" exceeds the limit "1Gi". `; empty if it does not, if nothing was
// measured, or if there is no limit. A limit of zero counts as none.
std::string SizeLimitMessage(const VolumeSpec& spec, const Metrics& metrics);

// Threads: the control thread. Blocks: never. Errors: none. Nothing is recorded: an agent that
// starts anew takes the action again once it has measured.
class SizeLimits {
 public:
  // Makes the pod leave; may be called again for a pod that is leaving.
  using Evict = std::function<void(const PodUid& pod, const std::string& message)>;

  // `events` and `clock` outlive this object.
  SizeLimits(HostEvents& events, const Clock& clock, SizeLimitAction action, Evict evict);

  // Takes a measurement. The action is taken when the limit is first exceeded, and again if it is
  // exceeded after it was kept.
  void Measured(const PodVolumeKey& key, const VolumeSpec& spec, const Metrics& metrics);
  // The volume is not on the node any more. Has no effect if it was within its limit.
  void Forget(const PodVolumeKey& key) { breaches_.erase(key); }
  // Null if the volume is within its limit. The pointer is valid until the next change.
  const SizeLimitBreach* Find(const PodVolumeKey& key) const;

 private:
  HostEvents& events_;
  const Clock& clock_;
  const SizeLimitAction action_;
  const Evict evict_;
  std::map<PodVolumeKey, SizeLimitBreach> breaches_;
};

}  // namespace volumed
