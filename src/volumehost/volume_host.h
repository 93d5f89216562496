// VolumeHost: what the node gives to volume plugins, in narrow parts; a plugin takes the parts it
// uses. It names no plugin and no mounter.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (VolumeHost).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/secret.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

class ExportedFamilies;  // metrics/exported_families.h

// Objects that volumes are filled from, as the sources last delivered them.
// Threads: any. Blocks: never. Errors: NotFound, not applied; Unavailable, not applied, when not
// every source has delivered a complete list yet (the object may still come).
class HostObjects {
 public:
  virtual ~HostObjects() = default;
  virtual Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                                const std::string& name) const = 0;
  virtual Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(
      const std::string& ns, const std::string& name) const = 0;
};

struct TokenRequest {
  std::string ns;
  std::string service_account;
  std::string audience;  // empty: the issuer's default
  int64_t expiration_seconds = 3600;
  std::string pod_name;
  PodUid pod_uid;
};

struct ServiceAccountToken {
  Secret<std::string> token;
  int64_t expires_unix_ms = 0;
  // When a new one should be asked for: 80 % of its life, or 24 h, whichever is first.
  int64_t refresh_unix_ms = 0;
};

// Bound service account tokens; cached until they are due for rotation.
// Threads: any. Blocks: never (local issuer).
class HostTokens {
 public:
  virtual ~HostTokens() = default;
  virtual Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) = 0;
  // Forgets the tokens of a pod that is gone.
  virtual void DeleteServiceAccountTokens(const PodUid& pod) = 0;
};

enum class EventType { kNormal, kWarning };

// Kubernetes events about an object of this node; kept by the agent and shown by volumectl.
// Threads: any. Blocks: never.
class HostEvents {
 public:
  virtual ~HostEvents() = default;
  virtual void RecordPodEvent(const PodUid& pod, EventType type, const std::string& reason,
                              const std::string& message) = 0;
};

// Facts about the node. Threads: any. Blocks: never.
class HostNode {
 public:
  virtual ~HostNode() = default;
  virtual NodeName GetNodeName() const = 0;
  virtual std::map<std::string, std::string> GetNodeLabels() const = 0;
  // "memory", "cpu", "ephemeral-storage" ...
  virtual std::map<std::string, Quantity> GetNodeAllocatable() const = 0;
  virtual KernelFeatures GetKernelFeatures() const = 0;
};

// The parts together, as the composition root has them; all outlive every plugin. A struct of
// references: it adds nothing of its own.
struct VolumeHost {
  const KubeletPaths& paths;
  Kernel& kernel;
  const Clock& clock;
  HostObjects& objects;
  HostTokens& tokens;
  HostEvents& events;
  HostNode& node;
  ExportedFamilies& metrics;  // of the exposition, for what only plugins can measure
};

}  // namespace volumed
