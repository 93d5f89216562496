#include "csi/csi_block.h"

#include <utility>
#include <vector>

#include "csi.pb.h"
#include "csi/csi_devices.h"
#include "csi/csi_metrics.h"
#include "csi/csi_mounts.h"
#include "csi/csi_node_requests.h"
#include "csi/csi_owing.h"
#include "csi/csi_proof.h"
#include "csi/csi_volume_files.h"
#include "csi/vol_data.h"
#include "metrics/metrics_block.h"
#include "metrics/metrics_nil.h"
#include "operation/call_options.h"

namespace volumed {
namespace {

constexpr const char* kBlockPublish = "NodePublishVolume";
constexpr uint32_t kBlockDirectoryMode = 0750;

Status MakeBlockPlace(const CsiContext& context, const SafePath& place, const CallOptions& call) {
  RETURN_IF_ERROR(context.kernel().Call(
      MakeDirectory{.path = place, .mode = kBlockDirectoryMode, .parent_mode = kBlockDirectoryMode},
      OnOwnFilesystem(call)));
  return OkStatus();
}

// Other pods may have targets in it, or the driver files.
void RemoveIfEmpty(const CsiContext& context, const SafePath& place, const CallOptions& call) {
  (void)context.kernel().Call(RemoveDirectory{place}, OnOwnFilesystem(call));
}

PodDeviceMapPath LinkOf(const CsiContext& context, const SpecName& spec, const PodUid& pod) {
  return {context.host.paths.GetPodVolumeDeviceDir(pod, kCsiPluginName), spec.str()};
}

Error NotAsRecorded(const CsiVolume& volume, const std::string& is, const std::string& wrong) {
  return Error::MaybeApplied(
      Code::kInternal, "by its record volume " + volume.handle + " is " + is + ", and " + wrong);
}

}  // namespace

// ---- CsiBlockMapper ----

CsiBlockMapper::CsiBlockMapper(const CsiContext& context, SpecName spec, CsiVolume volume,
                               PodPtr pod)
    : context_(context), spec_(std::move(spec)), volume_(std::move(volume)), pod_(std::move(pod)) {}

Result<SafePath> CsiBlockMapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return CsiBlockMapDir(context_.host.paths, spec.name());
}

PodDeviceMapPath CsiBlockMapper::GetPodDeviceMapPath() const {
  return LinkOf(context_, spec_, pod_->uid());
}

std::string CsiBlockMapper::GetStagingPath() const {
  return CsiBlockStagingPath(context_.host.paths, spec_).Display();
}

SafePath CsiBlockMapper::Target() const {
  return CsiBlockPublishPath(context_.host.paths, spec_, pod_->uid());
}

Result<Metrics> CsiBlockMapper::GetMetrics(const CallOptions& options) {
  Result<Metrics> measured =
      CsiMetrics(context_, volume_.driver, volume_.handle, Target().Display()).GetMetrics(options);
  if (measured.ok() || !IsNotSupported(measured.error())) return measured;
  const SafePath node = CsiBlockMapDir(context_.host.paths, spec_).Below(pod_->uid().str());
  return MetricsBlock(context_.kernel(), context_.host.clock, node).GetMetrics(options);
}

Result<std::string> CsiBlockMapper::SetUpDevice(const CallOptions& call) {
  const KubeletPaths& paths = context_.host.paths;
  ASSIGN_OR_RETURN(const CsiDriverFacts driver, FactsOf(context_, volume_.driver));
  RETURN_IF_ERROR(WriteVolData(context_, CsiBlockDataDir(paths, spec_),
                               BlockVolData(volume_, spec_, context_.host.node.GetNodeName()),
                               /*durable=*/true, call));
  const UniqueVolumeName unique = CsiUniqueName(volume_.driver, volume_.handle);
  const SafePath staging_path = CsiBlockStagingPath(paths, spec_);
  ASSIGN_OR_RETURN(const CsiStaging staging, StagingOf(context_, volume_));
  if (!DriverStages(driver)) {
    // What a release of the driver that did stage has left is on record still.
    if (staging.staged == StagedState::kStaged) return std::string();
    RETURN_IF_ERROR(context_.parts.devices.SetStaged(unique, false));
    return std::string();
  }
  ASSIGN_OR_RETURN(const CsiSecretValues secrets,
                   ReadSecret(context_, volume_.node_stage_secret, "node stage secret"));
  RETURN_IF_ERROR(MakeBlockPlace(context_, staging_path, call));
  const Status staged =
      StageVolume(context_, driver, volume_,
                  {staging.publish_context, staging_path.Display(), secrets}, staging_path, call);
  if (staged.ok()) return staging_path.Display();
  if (!staged.error().maybe_applied()) RemoveIfEmpty(context_, staging_path, call);
  return staged.error();
}

Result<std::string> CsiBlockMapper::SetUpDeviceAsRecorded(const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiStaging staging, StagingOf(context_, volume_));
  if (staging.staged != StagedState::kStaged) return std::string();
  const SafePath place = CsiBlockStagingPath(context_.host.paths, spec_);
  const Result<CsiFinding> found = LookAtStaged(context_, place, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  if (found->wrong) return NotAsRecorded(volume_, "staged at " + place.Display(), *found->wrong);
  return place.Display();
}

Result<std::string> CsiBlockMapper::MapPodDevice(const CallOptions& call) {
  const SafePath target = Target();
  RETURN_IF_ERROR(Publish(call));
  const Result<CsiFinding> found = LookAtPublishedDevice(context_, target, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  if (!found->wrong) return target.Display();
  return DriverLied(context_, {volume_.driver, kBlockPublish, volume_.handle},
                    "volume " + volume_.handle + " is published at " + target.Display(),
                    *found->wrong);
}

Status CsiBlockMapper::Publish(const CallOptions& call) {
  ASSIGN_OR_RETURN(const CsiDriverFacts driver, FactsOf(context_, volume_.driver));
  ASSIGN_OR_RETURN(const KubeletHost::CsiDriverPtr object,
                   CsiDriverObjectOf(context_, volume_.driver));
  RETURN_IF_ERROR(CheckLifecycleMode(volume_, object.get()));
  ASSIGN_OR_RETURN(const CsiStaging staging, StagingOf(context_, volume_));
  CsiPublishWish wish;
  wish.publish_context = staging.publish_context;
  wish.staging_path = GetStagingPath();
  wish.target_path = Target().Display();
  ASSIGN_OR_RETURN(wish.secrets,
                   ReadSecret(context_, volume_.node_publish_secret, "node publish secret"));
  wish.object = object.get();
  wish.pod = pod_.get();
  const SafePath directory = CsiBlockPublishDir(context_.host.paths, spec_);
  RETURN_IF_ERROR(MakeBlockPlace(context_, directory, call));
  const auto answer = CallDriver<::csi::v1::NodePublishVolumeResponse>(
      context_, volume_.driver, NodePublishRequest(driver, volume_, wish), call, volume_.migrated);
  if (answer.ok()) return OkStatus();
  if (!answer.error().maybe_applied()) RemoveIfEmpty(context_, directory, call);
  return answer.error();
}

Result<std::string> CsiBlockMapper::MapPodDeviceAsRecorded(const CallOptions& call) {
  const SafePath target = Target();
  const Result<CsiFinding> found = LookAtPublishedDevice(context_, target, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  if (found->wrong) {
    return NotAsRecorded(volume_, "published at " + target.Display(), *found->wrong);
  }
  return target.Display();
}

// ---- CsiBlockUnmapper ----

CsiBlockUnmapper::CsiBlockUnmapper(const CsiContext& context, SpecName spec, PodUid pod,
                                   std::optional<CsiVolumeId> recorded)
    : context_(context),
      spec_(std::move(spec)),
      pod_(std::move(pod)),
      recorded_(std::move(recorded)) {}

Result<SafePath> CsiBlockUnmapper::GetGlobalMapPath(const VolumeSpec& spec) const {
  return CsiBlockMapDir(context_.host.paths, spec.name());
}

PodDeviceMapPath CsiBlockUnmapper::GetPodDeviceMapPath() const {
  return LinkOf(context_, spec_, pod_);
}

Result<Metrics> CsiBlockUnmapper::GetMetrics(const CallOptions& options) {
  return MetricsNil().GetMetrics(options);
}

Result<std::optional<CsiVolumeId>> CsiBlockUnmapper::Volume(const CallOptions& call) const {
  if (recorded_) return recorded_;
  return ReadVolumeId(context_, CsiBlockDataDir(context_.host.paths, spec_), call);
}

Status CsiBlockUnmapper::UnmapPodDevice(const CallOptions& call) {
  const SafePath target = CsiBlockPublishPath(context_.host.paths, spec_, pod_);
  ASSIGN_OR_RETURN(const std::optional<CsiVolumeId> volume, Volume(call));
  if (!volume) {
    ASSIGN_OR_RETURN(const FileInfo there,
                     context_.kernel().Call(Stat{.path = target}, OnOwnFilesystem(call)));
    if (there.type == FileType::kMissing) return OkStatus();
    return Error::NotApplied(Code::kFailedPrecondition,
                             "there is a " + std::string(FileTypeName(there.type)) + " at " +
                                 target.Display() + ", and nothing says of which volume it is");
  }
  RETURN_IF_ERROR(UnpublishVolume(context_, *volume, target, call));
  const Status removed = RemoveTarget(*volume, target, call);
  return removed.ok() ? removed : removed.error().AsMaybeApplied();  // it is not published any more
}

Status CsiBlockUnmapper::RemoveTarget(const CsiVolumeId& volume, const SafePath& target,
                                      const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo there,
                   context_.kernel().Call(Stat{.path = target}, OnOwnFilesystem(call)));
  // The file on which the device was bound: kubelet removes it too.
  if (there.type == FileType::kRegular && there.size_bytes == 0) {
    RETURN_IF_ERROR(context_.kernel().Call(RemoveFile{target}, OnOwnFilesystem(call)));
  } else {
    ASSIGN_OR_RETURN(const std::optional<std::string> left,
                     RemoveLeftPlace(context_, target, call));
    if (left) {
      return LeftBehind(context_, {volume, OwedCall::kUnpublish, target.Display()},
                        "nothing is published at " + target.Display(), *left);
    }
  }
  RemoveIfEmpty(context_, CsiBlockPublishDir(context_.host.paths, spec_), call);
  return OkStatus();
}

Status CsiBlockUnmapper::TearDownDevice(const SafePath& /*map_path*/,
                                        const std::string& /*device_path*/,
                                        const CallOptions& call) {
  const SafePath staging = CsiBlockStagingPath(context_.host.paths, spec_);
  ASSIGN_OR_RETURN(const std::optional<CsiVolumeId> volume, Volume(call));
  if (volume) RETURN_IF_ERROR(UnstageVolume(context_, *volume, staging, call));
  const Status removed = RemoveAll(call);
  return removed.ok() || !volume ? removed : removed.error().AsMaybeApplied();
}

// What a driver keeps in its staging directory goes with it, as with kubelet; mounts stay, and keep
// their directories.
Status CsiBlockUnmapper::RemoveAll(const CallOptions& call) {
  const KubeletPaths& paths = context_.host.paths;
  const CallOptions own = OnOwnFilesystem(call);
  RETURN_IF_ERROR(context_.kernel().Call(RemoveTree{CsiBlockStagingPath(paths, spec_)}, own));
  RemoveIfEmpty(context_, CsiBlockPublishDir(paths, spec_), call);
  RETURN_IF_ERROR(context_.kernel().Call(RemoveTree{CsiBlockDir(paths, spec_)}, own));
  return OkStatus();
}

}  // namespace volumed
