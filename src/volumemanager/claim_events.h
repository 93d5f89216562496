// The Kubernetes events of claims and of what is made for them. All of the volume manager's go
// through Tell(): to the log, and to the pods of this node that use the claim.
// Source: of reasons and texts, kubernetes pkg/controller/volume/persistentvolume/pv_controller.go
// and pkg/controller/volume/events/event.go@v1.36.2.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "kube/object_catalog.h"
#include "volume/claim_binding.h"
#include "volumehost/volume_host.h"

namespace volumed {

inline constexpr const char* kProvisioningSucceeded = "ProvisioningSucceeded";
inline constexpr const char* kProvisioningFailed = "ProvisioningFailed";
inline constexpr const char* kExternalProvisioning = "ExternalProvisioning";
inline constexpr const char* kWaitForFirstConsumer = "WaitForFirstConsumer";

// Threads: the control thread. Blocks: never. What it is given outlives it.
class ClaimEvents {
 public:
  ClaimEvents(Logger& log, HostEvents& events, const ObjectCatalog& catalog)
      : log_(log), events_(events), catalog_(catalog) {}

  // The only place from which an event of a claim comes.
  void Tell(const ClaimKey& claim, EventType type, const char* reason,
            const std::string& message) const;

  // What a claim has come to wait for, if that is an event.
  void TellWait(const ClaimDecision& decision) const;

 private:
  Logger& log_;
  HostEvents& events_;
  const ObjectCatalog& catalog_;
};

}  // namespace volumed
