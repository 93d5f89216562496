// Decides which event of a claim tells of its binding, in the words of the PV controller.
// Source: kubernetes pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (syncClaim,
// syncUnboundClaim, syncBoundClaim), pkg/controller/volume/events/event.go.
#pragma once

#include <optional>
#include <string>

#include "volume/claim_binding.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct ClaimEvent {
  EventType type = EventType::kNormal;
  std::string reason;
  std::string message;
  friend bool operator==(const ClaimEvent&, const ClaimEvent&) = default;
};

// nullopt if there is nothing to tell: the claim is bound, it leaves, or not every source has
// delivered. The controller is silent about a claim that names a volume which does not exist, and
// for a class that no plugin provisions it says that there is no plugin; here both are
// FailedBinding, with the reason. `volume_exists` is about the volume that the claim names.
// Threads: any. Blocks: never.
std::optional<ClaimEvent> EventOf(const ClaimDecision& decision, bool volume_exists);

}  // namespace volumed
