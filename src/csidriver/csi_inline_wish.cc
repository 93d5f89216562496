#include "csidriver/csi_inline_wish.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "csidriver/csi_volume_wish.h"
#include "kube/value_rules.h"
#include "pool/pool_parameters.h"

namespace volumed {
namespace {

using ::csi::v1::NodePublishVolumeRequest;
using Attributes = google::protobuf::Map<std::string, std::string>;

constexpr std::string_view kHandlePrefix = "csi-";
constexpr size_t kHandleDigits = 64;  // of a SHA-256
constexpr std::string_view kInlineName = "inline:";
constexpr char kEphemeralKey[] = "csi.storage.k8s.io/ephemeral";
constexpr char kPodNameKey[] = "csi.storage.k8s.io/pod.name";
constexpr char kPodNamespaceKey[] = "csi.storage.k8s.io/pod.namespace";
constexpr char kSizeKey[] = "size";
// Of the parameters of a class those that a pod may say.
constexpr std::array<std::string_view, 3> kPodsParameters = {"pool", "backend", "allocation"};

constexpr size_t kShownAttribute = 128;  // bytes of a text of a pod, in a message

Error RefusedInline(const std::string& why) {
  return Error::NotApplied(Code::kInvalidArgument, why);
}

std::string ValueOf(const Attributes& attributes, const std::string& key) {
  const auto found = attributes.find(key);
  return found == attributes.end() ? "" : found->second;
}

Status CheckIsInline(const NodePublishVolumeRequest& request, const CsiCapabilityWish& capability) {
  if (!IsInlineHandle(request.volume_id()) || !request.staging_target_path().empty()) {
    return RefusedInline("volume " + Quoted(request.volume_id(), kShownAttribute) +
                         " is no inline volume of a pod: the attribute " + kEphemeralKey +
                         " is the kubelet's, and no PersistentVolume may have it");
  }
  if (capability.is_block) return RefusedInline("an inline volume of a pod is no block volume");
  return OkStatus();
}

Result<PoolInline> PodOf(const Attributes& attributes, const SafePath& target) {
  PoolInline use;
  use.target = target.Display();
  use.target_root = target.root;
  use.pod_namespace = ValueOf(attributes, kPodNamespaceKey);
  use.pod_name = ValueOf(attributes, kPodNameKey);
  use.pod_uid = ValueOf(attributes, kCsiPodUidKey);
  if (use.pod_namespace.empty() || use.pod_name.empty() || use.pod_uid.empty()) {
    return RefusedInline(
        "volume_context does not say whose inline volume it is: the CSIDriver has to have "
        "podInfoOnMount: true");
  }
  if (const auto broken = rules::kUid.broken(use.pod_uid)) {
    return RefusedInline("the attribute " + std::string(kCsiPodUidKey) + ", " +
                         Quoted(use.pod_uid, kShownAttribute) + ", is no uid: " + *broken);
  }
  return use;
}

Result<int64_t> SizeOf(const std::string& text) {
  const Result<Quantity> size = Quantity::Parse(text);
  if (size.ok() && size->Sign() > 0) return size->Value();
  return RefusedInline("the attribute size, " + Quoted(text, kShownAttribute) +
                       ", is no size: it is written as that of a claim (\"1Gi\")");
}

// What says nothing to a kubelet is the pod's own.
Status TakeAttributes(const Attributes& attributes, PoolVolumeWish& wish) {
  for (const auto& [key, value] : attributes) {
    if (key == kPoolFsTypeParameter) {
      return RefusedInline("the filesystem of an inline volume is its fsType, and no attribute");
    }
    if (IsSidecarParameter(key)) continue;
    if (key == kSizeKey) {
      ASSIGN_OR_RETURN(wish.size.required_bytes, SizeOf(value));
      continue;
    }
    if (std::find(kPodsParameters.begin(), kPodsParameters.end(), key) == kPodsParameters.end()) {
      return RefusedInline("the attribute " + Quoted(key, kShownAttribute) +
                           " is none of an inline volume, which has size, pool, backend and "
                           "allocation");
    }
    wish.parameters[key] = value;
  }
  return OkStatus();
}

}  // namespace

bool IsInlineHandle(std::string_view volume_id) {
  const std::optional<std::string_view> digits = StripPrefix(volume_id, kHandlePrefix);
  return digits && digits->size() == kHandleDigits &&
         digits->find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string PoolNameOfInline(const std::string& handle) {
  return std::string(kInlineName) + handle;
}

std::string InlineHandleOf(const PoolVolumeRecord& volume) {
  return std::string(StripPrefix(volume.name, kInlineName).value_or(volume.name));
}

bool IsInlinePublish(const NodePublishVolumeRequest& request) {
  return ValueOf(request.volume_context(), kEphemeralKey) == "true";
}

Result<PoolVolumeWish> ParseCsiInlineWish(const NodePublishVolumeRequest& request,
                                          const CsiCapabilityWish& capability,
                                          const SafePath& target) {
  RETURN_IF_ERROR(CheckIsInline(request, capability));
  PoolVolumeWish wish;
  wish.name = PoolNameOfInline(request.volume_id());
  ASSIGN_OR_RETURN(wish.inline_use, PodOf(request.volume_context(), target));
  RETURN_IF_ERROR(TakeAttributes(request.volume_context(), wish));
  if (!capability.fs_type.empty()) wish.parameters[kPoolFsTypeParameter] = capability.fs_type;
  return wish;
}

Status CheckNotInline(const PoolVolumes& volumes, const std::string& volume_id) {
  if (IsInlineHandle(volume_id)) {
    const std::optional<PoolVolumeRecord> by_handle =
        volumes.FindByName(PoolNameOfInline(volume_id));
    return by_handle ? CheckNotInline(*by_handle) : OkStatus();
  }
  const Result<PoolVolumeRecord> volume = volumes.Find(volume_id);
  return volume.ok() ? CheckNotInline(*volume) : OkStatus();
}

}  // namespace volumed
