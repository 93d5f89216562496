// Payloads: Kubernetes objects turned into the files of a volume. Pure; the writing is the kernel
// effect WriteAtomicPayload. The error texts are kubelet's.
// Source: kubernetes pkg/volume/{secret,configmap,downwardapi,projected}@v1.36.2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "mounter/mounter.h"
#include "os/kernel.h"
#include "volumehost/volume_host.h"

namespace volumed {

// By path, so that a later source of a projected volume replaces an earlier one's file.
using Payload = std::map<std::string, PayloadFile>;

// What all sources of a volume have in common.
struct PayloadContext {
  const HostObjects& objects;
  HostTokens& tokens;
  const HostNode& node;
  const Pod& pod;
  int32_t default_mode = kDefaultPayloadMode;
  std::optional<int64_t> fs_user;
  std::optional<int64_t> fs_group;
  // False: for what a volume would hold, and not to be put into one. Its tokens have no content.
  bool issue_tokens = true;
};

struct CollectedPayload {
  Payload files;
  // The earliest moment at which a token in it should be replaced.
  std::optional<Freshness> freshness;
};

// The files of one object. With `items`, those keys only, under their paths; otherwise every key.
// Threads: any. Blocks: never.
// Errors, all not applied: NotFound `secret "x" not found`, unless optional (then: no files);
// NotFound "references non-existent secret key: k", unless optional (then: without it);
// Unavailable while not every source has delivered, also for optional ones: the object may come.
Result<Payload> CollectSecret(const PayloadContext& context, const std::string& name,
                              const std::vector<KeyToPath>& items, bool optional);
// As CollectSecret; looks in data first, then in binaryData.
Result<Payload> CollectConfigMap(const PayloadContext& context, const std::string& name,
                                 const std::vector<KeyToPath>& items, bool optional);
// All errors of the items in one.
Result<Payload> CollectDownwardApi(const PayloadContext& context,
                                   const std::vector<DownwardApiVolumeFile>& items);
// A token file is 0600 and the user's where the pod has a user or a group of its own; the group
// gets its read bit when the payload is given to it.
Result<CollectedPayload> CollectToken(const PayloadContext& context,
                                      const ServiceAccountTokenProjection& source);
// All sources; their errors in one. Unimplemented for clusterTrustBundle and podCertificate, which
// need an API server.
Result<CollectedPayload> CollectProjected(const PayloadContext& context,
                                          const ProjectedVolumeSource& source);

// The payload as the kernel effect takes it.
std::vector<PayloadFile> FilesOf(Payload payload);

}  // namespace volumed
