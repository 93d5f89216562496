// Payloads: makes the files of a volume from Kubernetes objects. All of this is pure; the kernel
// effect WriteAtomicPayload writes the files. The error texts are kubelet's.
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
#include "os/kernel_requests.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Files by path, so that a later source of a projected volume replaces the file of an earlier one.
using Payload = std::map<std::string, PayloadFile>;

// What all sources of a volume share. The references outlive the call; nothing keeps them.
struct PayloadContext {
  const HostObjects& objects;
  HostTokens& tokens;
  const HostNode& node;
  const Pod& pod;
  int32_t default_mode = kDefaultPayloadMode;
  // Of the pod: the common runAsUser and the fsGroup. Tokens alone look at them here.
  std::optional<int64_t> fs_user;
  std::optional<int64_t> fs_group;
  // False: only computes what a volume would hold; the tokens have no content then.
  bool issue_tokens = true;
};

struct CollectedPayload {
  Payload files;
  // In which wall time every token in it is good: from the latest issue to the earliest refresh.
  // nullopt: there is no token.
  std::optional<Freshness> freshness;
};

// The files of one object. With `items`, only those keys, under their paths; otherwise every key.
// Threads: any. Blocks: never.
// Errors, all not applied: NotFound `secret "x" not found`, unless it is optional (no files then);
// NotFound `references non-existent secret key: k, of secret "x"`, unless it is optional (left out
// then);
// Unavailable until every source has delivered, also for optional ones, since the object may still
// come.
Result<Payload> CollectSecret(const PayloadContext& context, const std::string& name,
                              const std::vector<KeyToPath>& items, bool optional);
// Like CollectSecret. With `items`, a key that is in data and in binaryData is that of data;
// without items it is that of binaryData.
Result<Payload> CollectConfigMap(const PayloadContext& context, const std::string& name,
                                 const std::vector<KeyToPath>& items, bool optional);
// The files of the items, each from a field of the pod or of a container's resources. Threads: any.
// Blocks: never. Errors, not applied: InvalidArgument for an item with neither; those of
// PodFieldValue and ResourceFieldValue. One error has the texts of all items that failed, and the
// code of the first.
Result<Payload> CollectDownwardApi(const PayloadContext& context,
                                   const std::vector<DownwardApiVolumeFile>& items);
// A token file has the mode 0600 and belongs to the user if the pod has a user or a group of its
// own; the group gets its read bit when the payload is given to it. Without `issue_tokens` the file
// is empty and its freshness is zero. Blocks: as HostTokens. Errors: InvalidArgument, not applied,
// if the user is none that chown(2) takes; those of HostTokens.
Result<CollectedPayload> CollectToken(const PayloadContext& context,
                                      const ServiceAccountTokenProjection& source);
// Collects all sources; of two files at one path the later source's is taken. One error has the
// texts of all sources that failed, and the code of the first. Errors, not applied, besides those
// of each source: Unimplemented for clusterTrustBundle and podCertificate, which need an API
// server.
Result<CollectedPayload> CollectProjected(const PayloadContext& context,
                                          const ProjectedVolumeSource& source);

// The payload in the form that the kernel effect takes.
std::vector<PayloadFile> FilesOf(Payload&& payload);

}  // namespace volumed
