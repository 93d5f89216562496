// VolumeHost: what the node offers to volume plugins, in narrow parts; a plugin uses the parts that
// it needs. It names no plugin and no mounter.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (VolumeHost).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/secret.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volumehost/content_key.h"
#include "volumehost/irreversible_steps.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

class ExportedFamilies;  // metrics/exported_families.h

// The objects that give volumes their content, as the sources last delivered them.
// Threads: any. Blocks: never. Errors: NotFound, not applied; Unavailable, not applied, until every
// source has delivered a complete list (the object may still come).
class HostObjects {
 public:
  virtual ~HostObjects() = default;
  virtual Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                                const std::string& name) const = 0;
  virtual Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(
      const std::string& ns, const std::string& name) const = 0;
  // Why an object that its owner sees in a manifest counts as not found, as words that follow "not
  // found: "; "" if nothing is known but that no source has it.
  virtual std::string WhyNotFound(const ObjectKey& /*object*/) const { return ""; }
};

// A token for one pod: what a projected volume or a CSI driver asks for. Two requests that differ
// in anything get two tokens.
struct TokenRequest {
  std::string ns;
  std::string service_account;
  std::string audience;  // empty: the issuer's default
  int64_t expiration_seconds = 3600;
  std::string pod_name;
  PodUid pod_uid;
};

// A token as it is written into a volume, and its times, as wall time.
struct ServiceAccountToken {
  Secret<std::string> token;
  // Valid from this time on. A time in the future makes the token useless: the wall clock was set
  // back.
  int64_t issued_unix_ms = 0;
  int64_t expires_unix_ms = 0;
  // When a new token should be requested: after 80 % of its life or 24 h, whichever is first.
  int64_t refresh_unix_ms = 0;
};

// Bound service account tokens; cached until they are due for rotation.
// Threads: any. Blocks: never (local issuer).
class HostTokens {
 public:
  virtual ~HostTokens() = default;
  // Errors, not applied: InvalidArgument for a lifetime that Kubernetes does not allow.
  virtual Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) = 0;
  // Forgets the tokens of a pod that is gone.
  virtual void DeleteServiceAccountTokens(const PodUid& pod) = 0;
  // What all its tokens have in common: who issues them, with which key. "" if that is not known.
  virtual std::string Issuer() const { return ""; }
};

enum class EventType { kNormal, kWarning };

// Records Kubernetes events about objects of this node; the agent keeps them and volumectl shows
// them.
// Threads: any. Blocks: never.
class HostEvents {
 public:
  virtual ~HostEvents() = default;
  // `reason` is a word of Kubernetes ("FailedMount"), `message` is for people. An event that equals
  // an earlier one counts it up.
  virtual void RecordPodEvent(const PodUid& pod, EventType type, const std::string& reason,
                              const std::string& message) = 0;
  // For an object that is not a pod: a PersistentVolume, a PersistentVolumeClaim.
  virtual void RecordObjectEvent(const ObjectKey& object, EventType type, const std::string& reason,
                                 const std::string& message) = 0;
  void RecordVolumeEvent(const std::string& persistent_volume, EventType type,
                         const std::string& reason, const std::string& message) {
    RecordObjectEvent({ObjectKind::kPersistentVolume, "", persistent_volume}, type, reason,
                      message);
  }
};

// Facts about the node. Threads: any. Blocks: never.
class HostNode {
 public:
  virtual ~HostNode() = default;
  virtual NodeName GetNodeName() const = 0;
  // The labels that node affinity is held against, the default ones among them.
  virtual std::map<std::string, std::string> GetNodeLabels() const = 0;
  // "memory", "cpu", "ephemeral-storage" ...
  virtual std::map<std::string, Quantity> GetNodeAllocatable() const = 0;
  virtual KernelFeatures GetKernelFeatures() const = 0;
  // Whether the kernel labels files and processes.
  virtual bool HasSelinux() const { return false; }
  // The machine's own name; if it is not known, the node's.
  virtual std::string GetHostName() const { return GetNodeName().str(); }
  // Errors: NotFound, not applied, "host IP unknown; ...", if the node has no address that others
  // can reach.
  virtual Result<std::string> GetHostIp() const {
    return Error::NotApplied(Code::kNotFound, "host IP unknown; known addresses: []");
  }
  // The cloud in which the node is; nullopt if it is in none, or if its driver does not need to
  // know.
  virtual std::optional<std::string> GetCloudProvider() const { return std::nullopt; }
};

// What only the host of a kubelet offers. Source: kubernetes pkg/volume/plugins.go@v1.36.2
// (KubeletVolumeHost). Its GetHostUtil is VolumeHost::kernel here.
// Threads: any. Blocks: only WaitForCacheSync.
class KubeletHost {
 public:
  virtual ~KubeletHost() = default;
  // Sets what keeps the node from being ready, in a plugin's words; nullopt if nothing does any
  // more.
  virtual void SetKubeletError(std::optional<Error> error) = 0;

  using CsiDriverPtr = std::shared_ptr<const CsiDriverObject>;
  // A driver of which it is not known any more whether it exists is found as it was last. Errors:
  // NotFound, not applied, if it is certainly absent; Unavailable, not applied, before
  // CsiDriversSynced(), or if it may exist and what it holds was never known.
  virtual Result<CsiDriverPtr> GetCsiDriver(const std::string& name) const = 0;
  // All that are known by now, by name: before CsiDriversSynced() there may be others.
  virtual std::vector<CsiDriverPtr> ListCsiDrivers() const = 0;
  // Whether every source has delivered a complete list.
  virtual bool CsiDriversSynced() const = 0;
  // Blocks: until CsiDriversSynced(), or the deadline (DeadlineExceeded, not applied).
  virtual Status WaitForCacheSync(const CallOptions& call) = 0;
  // Called after every change of a driver, on the thread that made the change; `driver` is null if
  // it is gone. (An informer of the seed's GetInformerFactory.)
  using CsiDriverListener = std::function<void(const std::string& name, CsiDriverPtr driver)>;
  virtual void AddCsiDriverListener(CsiDriverListener listener) = 0;
};

// What only the host of a controller that attaches volumes to nodes offers. A kubelet has none of
// it; this agent does, since it attaches the volumes of its node itself.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (AttachDetachVolumeHost). Its marker
// IsAttachDetachController is that VolumeHost::attach_detach is not null.
// Threads: any. Blocks: never. Errors: NotFound, not applied, if the object is certainly absent;
// Unavailable, not applied, if that is not known, or not yet.
class AttachDetachHost {
 public:
  using CsiNodePtr = std::shared_ptr<const CsiNodeObject>;
  using VolumeAttachmentPtr = std::shared_ptr<const VolumeAttachment>;

  virtual ~AttachDetachHost() = default;
  virtual Result<CsiNodePtr> GetCsiNode(const NodeName& node) const = 0;
  virtual std::vector<CsiNodePtr> ListCsiNodes() const = 0;
  virtual Result<KubeletHost::CsiDriverPtr> GetCsiDriver(const std::string& name) const = 0;
  virtual std::vector<KubeletHost::CsiDriverPtr> ListCsiDrivers() const = 0;
  virtual Result<VolumeAttachmentPtr> GetVolumeAttachment(const std::string& name) const = 0;
  // By name.
  virtual std::vector<VolumeAttachmentPtr> ListVolumeAttachments() const = 0;
};

// The parts together, as the composition root has them; all outlive every plugin. This is a struct
// of references and adds nothing of its own.
struct VolumeHost {
  const KubeletPaths& paths;
  Kernel& kernel;
  const Clock& clock;
  HostObjects& objects;
  HostTokens& tokens;
  HostEvents& events;
  HostNode& node;
  // The exposition, for figures that only plugins can measure.
  ExportedFamilies& metrics;
  IrreversibleSteps& irreversible;
  // Null if the host is not of this kind; in kubelet a type assertion would fail.
  KubeletHost* kubelet = nullptr;
  AttachDetachHost* attach_detach = nullptr;
  // Null: it is not known what was published before the agent's start, so each volume is set up
  // again.
  std::shared_ptr<const ContentKey> content_key = nullptr;
};

}  // namespace volumed
