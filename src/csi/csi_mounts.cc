#include "csi/csi_mounts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csi.pb.h"
#include "csi/csi_before_growth.h"
#include "csi/csi_metrics.h"
#include "csi/csi_owing.h"
#include "csi/csi_volume_files.h"
#include "csi/vol_data.h"
#include "metrics/metrics_nil.h"
#include "mounter/shared_group.h"
#include "mounter/volume_ownership.h"
#include "operation/call_options.h"
#include "os/place_names.h"

namespace volumed {
namespace {

constexpr const char* kPublish = "NodePublishVolume";
constexpr const char* kUnpublish = "NodeUnpublishVolume";
// Source: kubernetes pkg/apis/storage/v1/defaults.go@v1.36.2 has none; TokenRequest's is this.
constexpr int64_t kTokenSeconds = 3600;

// Whether the node labels what is in the volume, and would change that for a pod.
bool HasLabels(const std::optional<MountEntry>& mount) {
  return mount && std::find(mount->super_options.begin(), mount->super_options.end(), "seclabel") !=
                      mount->super_options.end();
}

}  // namespace

Result<std::vector<CsiToken>> TokensFor(const CsiContext& context, const CsiVolume& volume,
                                        const CsiDriverObject* object, const VolumeTarget& target) {
  std::vector<CsiToken> tokens;
  if (!WantsTokens(volume, object)) return tokens;
  if (target.pod == nullptr) return NoPod("a CSI volume whose driver asks for tokens", target);
  const Pod& pod = *target.pod;
  for (const CsiTokenRequest& asked : object->token_requests) {
    TokenRequest request;
    request.ns = pod.metadata.name_space;
    request.service_account = pod.spec.service_account_name;
    request.audience = asked.audience;
    request.expiration_seconds = asked.expiration_seconds.value_or(kTokenSeconds);
    request.pod_name = pod.metadata.name;
    request.pod_uid = pod.uid();
    Result<ServiceAccountToken> token = context.host.tokens.GetServiceAccountToken(request);
    if (!token.ok()) {
      return Error::NotApplied(Code::kUnavailable, "no token for driver " + volume.driver + ": " +
                                                       token.error().message());
    }
    tokens.push_back({asked.audience, *std::move(token)});
  }
  return tokens;
}

Status UnpublishVolume(const CsiContext& context, const CsiVolumeId& volume, const SafePath& target,
                       const CallOptions& call) {
  if (MayOwe(context, volume.driver)) return UnpublishOwing(context, volume, target, call);
  const std::string path = target.Display();
  std::string said = "volume " + volume.handle + " is not published at " + path;
  const auto answer = CallDriver<::csi::v1::NodeUnpublishVolumeResponse>(
      context, volume.driver, NodeUnpublishRequest(volume.handle, path), call);
  if (!answer.ok()) {
    if (answer.error().code() != Code::kNotFound) return answer.error();
    said = "it knows no volume " + volume.handle;
  }
  const Result<CsiFinding> left = LookAtTakenAway(context, target, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  if (left->wrong) {
    return DriverLied(context, {volume.driver, kUnpublish, volume.handle}, said, *left->wrong);
  }
  return OkStatus();
}

// ---- CsiMounter ----

CsiMounter::CsiMounter(const CsiContext& context, CsiVolume volume, VolumeTarget target)
    : context_(context),
      volume_(std::move(volume)),
      target_(std::move(target)),
      path_(target_.place.Below("mount")) {
  attributes_.read_only = volume_.read_only;
  attributes_.managed = !volume_.read_only;
}

Result<Metrics> CsiMounter::GetMetrics(const CallOptions& options) {
  return CsiMetrics(context_, volume_.driver, volume_.handle, path_.Display()).GetMetrics(options);
}

Result<CsiMounter::SettingUp> CsiMounter::Prepare(const SafePath& dir,
                                                  const MounterArgs& args) const {
  SettingUp made;
  ASSIGN_OR_RETURN(made.driver, FactsOf(context_, volume_.driver));
  ASSIGN_OR_RETURN(made.object, CsiDriverObjectOf(context_, volume_.driver));
  const CsiDriverObject* object = made.object.get();
  RETURN_IF_ERROR(CheckLifecycleMode(volume_, object));
  ASSIGN_OR_RETURN(made.staging, StagingOf(context_, volume_));
  made.wish.publish_context = made.staging.publish_context;
  made.wish.staging_path = StagingPathFor(made.driver, made.staging);
  made.wish.target_path = dir.Display();
  ASSIGN_OR_RETURN(made.wish.secrets,
                   ReadSecret(context_, volume_.node_publish_secret, "node publish secret"));
  made.wish.object = object;
  if (WantsPodInfo(object) && target_.pod == nullptr) {
    return NoPod("a CSI volume whose driver asks for its pod", target_);
  }
  made.wish.pod = target_.pod.get();
  ASSIGN_OR_RETURN(made.wish.tokens, TokensFor(context_, volume_, object, target_));
  made.wish.mount.fs_group = args.fs_group;
  made.wish.mount.selinux_label = args.selinux_label;
  return made;
}

Status CsiMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  if (args.as_recorded) return ProveAsRecorded(dir, args.call);
  ASSIGN_OR_RETURN(const SettingUp setting_up, Prepare(dir, args));
  RETURN_IF_ERROR(
      WriteVolData(context_, ParentOf(dir),
                   PublishVolData(volume_, target_.key.spec, context_.host.node.GetNodeName(),
                                  setting_up.wish.mount.selinux_label),
                   /*durable=*/false, args.call));
  const Status published = Publish(setting_up, dir, args);
  if (!published.ok()) {
    // A pod may be at work in what was set up before.
    const bool was_there = args.is_remount || args.reconstructed_volume;
    return was_there ? published.error()
                     : AfterRefusal(context_, dir, published.error(), args.call);
  }
  const Status given = GiveGroup(setting_up, dir, args);
  if (!given.ok()) return given.error().AsMaybeApplied();
  SetFreshness(setting_up.object.get(), setting_up.wish.tokens);
  return OkStatus();
}

Status CsiMounter::Publish(const SettingUp& setting_up, const SafePath& dir,
                           const MounterArgs& args) {
  RETURN_IF_ERROR(
      ForgetIfUnmounted(context_, {volume_.driver, volume_.handle}, dir.Display(), args.call));
  RETURN_IF_ERROR(CallDriver<::csi::v1::NodePublishVolumeResponse>(
      context_, volume_.driver, NodePublishRequest(setting_up.driver, volume_, setting_up.wish),
      args.call, volume_.migrated));
  PublishedLook look{volume_.driver, dir, volume_.read_only};
  // A release of the driver that stages nothing may find what the one before it has staged.
  const bool is_staged = setting_up.staging.staged == StagedState::kStaged;
  if (is_staged || !setting_up.wish.staging_path.empty()) look.staging = setting_up.staging.path;
  if (!volume_.is_ephemeral()) look.persistent = CsiVolumeId{volume_.driver, volume_.handle};
  const Result<CsiFinding> found = LookAtGiven(look, args.call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  if (found->wrong) {
    return DriverLied(context_, {volume_.driver, kPublish, volume_.handle},
                      "volume " + volume_.handle + " is published at " + dir.Display(),
                      *found->wrong);
  }
  attributes_.selinux_relabel =
      HasLabels(found->mount) && setting_up.wish.mount.selinux_label.empty();
  return OkStatus();
}

Result<CsiFinding> CsiMounter::LookAtGiven(const PublishedLook& look,
                                           const CallOptions& call) const {
  ASSIGN_OR_RETURN(CsiFinding found, LookAtPublished(context_, look, call));
  if (found.wrong) return found;
  found.wrong = WhyNotAsBeforeGrowth(context_, {volume_.driver, volume_.handle},
                                     look.target.Display(), found.mount);
  return found;
}

Status CsiMounter::GiveGroup(const SettingUp& setting_up, const SafePath& dir,
                             const MounterArgs& args) const {
  if (!AgentAppliesFsGroup(setting_up.driver, volume_, setting_up.object.get(), args.fs_group)) {
    return OkStatus();
  }
  const auto shared = WarnOfOtherGroup(
      context_.host, {dir, dir, args.fs_group, target_.key.pod, target_.key.spec}, args.call);
  if (!shared.ok()) return shared.error();
  const auto owned =
      SetVolumeOwnership(context_.kernel(), context_.host.events, context_.host.clock,
                         {.dir = dir,
                          .fs_group = args.fs_group,
                          .policy = args.fs_group_change_policy,
                          .read_only = false,
                          .pod = target_.key.pod,
                          .metrics = &context_.host.metrics,
                          .plugin_name = CsiFullPluginName(volume_.driver)},
                         args.call);
  if (owned.ok()) return OkStatus();
  return owned.error().With("applyFSGroup failed for vol " + volume_.handle);
}

Status CsiMounter::ProveAsRecorded(const SafePath& dir, const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiStaging staging, StagingOf(context_, volume_));
  PublishedLook look{volume_.driver, dir, volume_.read_only};
  if (staging.staged == StagedState::kStaged) look.staging = staging.path;
  const Result<CsiFinding> found = LookAtGiven(look, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  if (found->wrong) {
    return Error::MaybeApplied(Code::kInternal, "by its record volume " + volume_.handle +
                                                    " is published at " + dir.Display() + ", and " +
                                                    *found->wrong);
  }
  attributes_.selinux_relabel = HasLabels(found->mount);
  const Result<KubeletHost::CsiDriverPtr> object = CsiDriverObjectOf(context_, volume_.driver);
  if (object.ok()) SetFreshness(object->get(), {});
  return OkStatus();
}

void CsiMounter::SetFreshness(const CsiDriverObject* object, const std::vector<CsiToken>& tokens) {
  freshness_.reset();
  if (object == nullptr) return;
  const bool has_tokens = WantsTokens(volume_, object);
  if (!object->requires_republish && !has_tokens) return;
  const int64_t now = context_.host.clock.WallUnixMillis();
  const int64_t period = std::chrono::duration_cast<std::chrono::milliseconds>(
                             context_.parts.settings.Get().republish_period)
                             .count();
  // Tokens of an earlier run are not known any more: they are as old as any may be.
  const bool are_known = tokens.size() == object->token_requests.size();
  Freshness fresh{now, now + period};
  if (!object->requires_republish && has_tokens && are_known) {
    fresh.until_unix_ms = tokens.front().token.refresh_unix_ms;
  }
  for (const CsiToken& token : tokens) {
    fresh.from_unix_ms = std::min(fresh.from_unix_ms, token.token.issued_unix_ms);
    fresh.until_unix_ms = std::min(fresh.until_unix_ms, token.token.refresh_unix_ms);
  }
  freshness_ = fresh;
}

// ---- CsiUnmounter ----

CsiUnmounter::CsiUnmounter(const CsiContext& context, SafePath path,
                           std::optional<CsiVolumeId> recorded)
    : context_(context), path_(std::move(path)), recorded_(std::move(recorded)) {}

Result<Metrics> CsiUnmounter::GetMetrics(const CallOptions& options) {
  return MetricsNil().GetMetrics(options);
}

Status CsiUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  const SafePath directory = ParentOf(dir);
  std::optional<CsiVolumeId> volume = recorded_;
  if (!volume) {
    const Result<std::optional<CsiVolumeId>> said = ReadVolumeId(context_, directory, call);
    if (!said.ok()) return TearDownUnknown(dir, ": " + said.error().message(), call);
    if (!*said) return TearDownUnknown(dir, "", call);
    volume = *said;
  }
  RETURN_IF_ERROR(UnpublishVolume(context_, *volume, dir, call));
  const Result<std::optional<std::string>> left = RemoveLeftPlace(context_, dir, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  if (*left) {
    return LeftBehind(context_, {*volume, OwedCall::kUnpublish, dir.Display()},
                      "nothing is published at " + dir.Display(), **left);
  }
  const Status removed = RemoveVolData(context_, directory, call);
  return removed.ok() ? removed : removed.error().AsMaybeApplied();  // it is not published any more
}

// Nobody can be called: nothing says whom, about which volume.
Status CsiUnmounter::TearDownUnknown(const SafePath& dir, const std::string& why,
                                     const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers,
                   MountLayers(context_.kernel(), dir.Display(), call));
  if (!layers.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "something is mounted at " + dir.Display() +
                                 ", and nothing says of which volume it is" + why);
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> left, RemoveLeftPlace(context_, dir, call));
  if (left) return Error::NotApplied(Code::kFailedPrecondition, *left + why);
  return RemoveVolData(context_, ParentOf(dir), call);
}

}  // namespace volumed
