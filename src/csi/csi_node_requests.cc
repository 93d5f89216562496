#include "csi/csi_node_requests.h"

#include <map>
#include <utility>

#include "csi/go_json.h"
#include "csi/request_maps.h"
#include "kube/field_rules.h"

namespace volumed {
namespace {

constexpr char kInfoPodName[] = "csi.storage.k8s.io/pod.name";
constexpr char kInfoPodNamespace[] = "csi.storage.k8s.io/pod.namespace";
constexpr char kInfoPodUid[] = "csi.storage.k8s.io/pod.uid";
constexpr char kInfoServiceAccount[] = "csi.storage.k8s.io/serviceAccount.name";
constexpr char kInfoEphemeral[] = "csi.storage.k8s.io/ephemeral";
constexpr char kInfoTokens[] = "csi.storage.k8s.io/serviceAccount.tokens";

void PutPod(const Pod& pod, const CsiVolume& volume, RequestMap& context) {
  context[kInfoPodName] = pod.metadata.name;
  context[kInfoPodNamespace] = pod.metadata.name_space;
  context[kInfoPodUid] = pod.metadata.uid;
  context[kInfoServiceAccount] = pod.spec.service_account_name;
  context[kInfoEphemeral] = volume.is_ephemeral() ? "true" : "false";
}

// {"<audience>":{"token":"..","expirationTimestamp":".."}}. The last token of an audience counts.
Secret<std::string> TokensJson(const std::vector<CsiToken>& tokens) {
  constexpr int64_t kMillisPerSecond = 1000;
  std::map<std::string, const ServiceAccountToken*> by_audience;
  for (const CsiToken& token : tokens) by_audience[token.audience] = &token.token;
  std::string out = "{";
  for (const auto& [audience, token] : by_audience) {
    if (out.size() > 1) out += ',';
    AppendGoJsonText(audience, out);
    out += ":{\"token\":";
    AppendGoJsonText(token->token.Reveal(), out);
    out += ",\"expirationTimestamp\":";
    // Kubernetes' times have no fraction of a second.
    AppendGoJsonText(FormatTimestamp(token->expires_unix_ms / kMillisPerSecond * kMillisPerSecond),
                     out);
    out += '}';
  }
  return Secret<std::string>(out + "}");
}

}  // namespace

bool WantsPodInfo(const CsiDriverObject* object) {
  return object != nullptr && object->pod_info_on_mount;
}

bool WantsTokens(const CsiVolume& volume, const CsiDriverObject* object) {
  return object != nullptr && !object->token_requests.empty() && !volume.is_block;
}

::csi::v1::NodeStageVolumeRequest NodeStageRequest(const CsiDriverFacts& driver,
                                                   const CsiVolume& volume,
                                                   const CsiStageWish& wish) {
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id(volume.handle);
  PutTexts(wish.publish_context, *request.mutable_publish_context());
  request.set_staging_target_path(wish.staging_path);
  *request.mutable_volume_capability() = CsiNodeCapability(driver, volume, wish.mount);
  PutSecrets(wish.secrets, *request.mutable_secrets());
  PutTexts(volume.attributes, *request.mutable_volume_context());
  return request;
}

::csi::v1::NodePublishVolumeRequest NodePublishRequest(const CsiDriverFacts& driver,
                                                       const CsiVolume& volume,
                                                       const CsiPublishWish& wish) {
  ::csi::v1::NodePublishVolumeRequest request;
  request.set_volume_id(volume.handle);
  request.set_target_path(wish.target_path);
  request.set_readonly(volume.read_only);
  if (!volume.is_ephemeral()) {
    PutTexts(wish.publish_context, *request.mutable_publish_context());
    request.set_staging_target_path(wish.staging_path);
  }
  *request.mutable_volume_capability() = CsiNodeCapability(driver, volume, wish.mount);
  PutSecrets(wish.secrets, *request.mutable_secrets());
  RequestMap& context = *request.mutable_volume_context();
  PutTexts(volume.attributes, context);
  if (WantsPodInfo(wish.object) && wish.pod != nullptr) PutPod(*wish.pod, volume, context);
  if (WantsTokens(volume, wish.object) && !wish.tokens.empty()) {
    const bool in_secrets = wish.object->service_account_token_in_secrets.value_or(false);
    RequestMap& place = in_secrets ? *request.mutable_secrets() : context;
    place[kInfoTokens] = TokensJson(wish.tokens).Reveal();
  }
  return request;
}

::csi::v1::NodeUnpublishVolumeRequest NodeUnpublishRequest(const std::string& handle,
                                                           const std::string& target_path) {
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id(handle);
  request.set_target_path(target_path);
  return request;
}

::csi::v1::NodeUnstageVolumeRequest NodeUnstageRequest(const std::string& handle,
                                                       const std::string& staging_path) {
  ::csi::v1::NodeUnstageVolumeRequest request;
  request.set_volume_id(handle);
  request.set_staging_target_path(staging_path);
  return request;
}

::csi::v1::NodeExpandVolumeRequest NodeExpandRequest(const CsiDriverFacts& driver,
                                                     const CsiVolume& volume,
                                                     const CsiNodeExpandWish& wish) {
  ::csi::v1::NodeExpandVolumeRequest request;
  request.set_volume_id(volume.handle);
  request.set_volume_path(wish.volume_path);
  request.mutable_capacity_range()->set_required_bytes(wish.required_bytes);
  request.set_staging_target_path(wish.staging_path);
  *request.mutable_volume_capability() = CsiNodeCapability(driver, volume);
  PutSecrets(wish.secrets, *request.mutable_secrets());
  return request;
}

::csi::v1::NodeGetVolumeStatsRequest NodeStatsRequest(const std::string& handle,
                                                      const std::string& volume_path) {
  ::csi::v1::NodeGetVolumeStatsRequest request;
  request.set_volume_id(handle);
  request.set_volume_path(volume_path);
  return request;
}

::csi::v1::NodeGetVolumeHealthRequest NodeHealthRequest(const std::string& handle,
                                                        const std::string& publish_path,
                                                        const std::string& staging_path) {
  ::csi::v1::NodeGetVolumeHealthRequest request;
  request.set_volume_id(handle);
  request.set_volume_publish_path(publish_path);
  request.set_staging_target_path(staging_path);
  return request;
}

}  // namespace volumed
