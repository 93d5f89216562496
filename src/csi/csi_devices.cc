#include "csi/csi_devices.h"

#include <utility>
#include <vector>

#include "csi.pb.h"
#include "csi/csi_before_growth.h"
#include "csi/csi_node_requests.h"
#include "csi/csi_owing.h"
#include "csi/csi_proof.h"
#include "csi/csi_volume_files.h"
#include "csi/vol_data.h"
#include "operation/call_options.h"
#include "os/place_names.h"

namespace volumed {
namespace {

constexpr const char* kStage = "NodeStageVolume";
constexpr const char* kUnstage = "NodeUnstageVolume";

std::string Named(const std::string& handle) { return "volume " + handle; }

Result<bool> IsMounted(const CsiContext& context, const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::vector<MountEntry> layers,
                   MountLayers(context.kernel(), place.Display(), call));
  return !layers.empty();
}

// What is wrong with a staged volume that was not staged by a call, but is by its record.
std::optional<std::string> WhyNotAsRecorded(const CsiStaging& staging, const CsiFinding& found) {
  if (found.wrong || !staging.source) return found.wrong;
  if (!found.mount) return "nothing is mounted at " + staging.path.Display();
  const bool is_same = found.mount->device_major == staging.source->device_major &&
                       found.mount->device_minor == staging.source->device_minor;
  if (is_same) return std::nullopt;
  return "what is mounted there is " + found.mount->source + ", and not " + staging.source->path;
}

Status ProveAsRecorded(const CsiContext& context, const CsiVolume& volume,
                       const CsiStaging& staging, const CallOptions& call) {
  if (staging.staged != StagedState::kStaged && !staging.source) return OkStatus();
  const Result<CsiFinding> found = LookAtStaged(context, staging.path, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  std::optional<std::string> wrong = WhyNotAsRecorded(staging, *found);
  if (!wrong) {
    wrong = WhyNotAsBeforeGrowth(context, {volume.driver, volume.handle}, staging.path.Display(),
                                 found->mount);
  }
  if (!wrong) return OkStatus();
  return Error::MaybeApplied(Code::kInternal, "by its record " + Named(volume.handle) +
                                                  " is staged at " + staging.path.Display() +
                                                  ", and " + *wrong);
}

// Of a volume whose driver stages nothing. What a release of it that did has left is on record
// still, to be taken back.
Status RecordNotStaged(const CsiContext& context, const CsiVolume& volume,
                       const CsiStaging& staging, const CallOptions& call) {
  ASSIGN_OR_RETURN(const bool mounted, IsMounted(context, staging.path, call));
  return context.parts.devices.SetStaged(CsiUniqueName(volume.driver, volume.handle), mounted);
}

class CsiStager final : public DeviceMounter {
 public:
  explicit CsiStager(const CsiContext& context) : context_(context) {}

  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override {
    ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(spec));
    ASSIGN_OR_RETURN(const CsiStaging staging, StagingOf(context_, volume));
    return staging.path;
  }

  Status MountDevice(const VolumeSpec& spec, const std::string& /*device_path*/,
                     const SafePath& place, const DeviceMounterArgs& args) override {
    ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(spec));
    ASSIGN_OR_RETURN(CsiStaging staging, StagingOf(context_, volume));
    staging.path = place;
    if (args.as_recorded) return ProveAsRecorded(context_, volume, staging, args.call);
    ASSIGN_OR_RETURN(const CsiDriverFacts driver, FactsOf(context_, volume.driver));
    if (!DriverStages(driver)) return RecordNotStaged(context_, volume, staging, args.call);
    ASSIGN_OR_RETURN(const CsiSecretValues secrets,
                     ReadSecret(context_, volume.node_stage_secret, "node stage secret"));
    RETURN_IF_ERROR(WriteVolData(context_, ParentOf(place),
                                 StageVolData(volume, args.selinux_label), /*durable=*/true,
                                 args.call));
    RETURN_IF_ERROR(MakePlace(place, args.call));
    const Status staged = StageVolume(
        context_, driver, volume,
        {staging.publish_context, place.Display(), secrets, {args.fs_group, args.selinux_label}},
        place, args.call);
    if (staged.ok()) return staged;
    return AfterRefusal(context_, place, staged.error(), args.call);
  }

 private:
  // A mount that is there is not asked for anything: it may be one that hangs.
  Status MakePlace(const SafePath& place, const CallOptions& call) const {
    ASSIGN_OR_RETURN(const bool mounted, IsMounted(context_, place, call));
    if (mounted) return OkStatus();
    RETURN_IF_ERROR(
        context_.kernel().Call(MakeDirectory{.path = place, .mode = 0750}, OnOwnFilesystem(call)));
    return OkStatus();
  }

  const CsiContext& context_;
};

class CsiUnstager final : public DeviceUnmounter {
 public:
  explicit CsiUnstager(const CsiContext& context) : context_(context) {}

  Status UnmountDevice(const SafePath& place, const CallOptions& call) override {
    const Result<std::optional<CsiVolumeId>> id = ReadVolumeId(context_, ParentOf(place), call);
    if (id.ok() && *id) return UnmountVolume(**id, place, call);
    ASSIGN_OR_RETURN(const bool mounted, IsMounted(context_, place, call));
    // Without the file nothing was staged here by anybody.
    if (!mounted) return id.ok() ? RemoveAll({}, place, call) : Status(id.error());
    return Error::NotApplied(Code::kFailedPrecondition,
                             "something is mounted at " + place.Display() +
                                 ", and nothing says of which volume it is" +
                                 (id.ok() ? "" : ": " + id.error().message()));
  }

  Status UnmountRecorded(const VolumeSpec& recorded, const SafePath& place,
                         const CallOptions& call) override {
    ASSIGN_OR_RETURN(const CsiVolume volume, CsiVolumeOf(recorded));
    return UnmountVolume({volume.driver, volume.handle}, place, call);
  }

 private:
  Status UnmountVolume(const CsiVolumeId& volume, const SafePath& place, const CallOptions& call) {
    RETURN_IF_ERROR(UnstageVolume(context_, volume, place, call));
    const Status removed = RemoveAll(volume, place, call);
    return removed.ok() ? removed : removed.error().AsMaybeApplied();  // it is not staged any more
  }

  // A volume without a driver: nobody was asked.
  Status RemoveAll(const CsiVolumeId& volume, const SafePath& place, const CallOptions& call) {
    ASSIGN_OR_RETURN(const std::optional<std::string> left, RemoveLeftPlace(context_, place, call));
    if (left && !volume.driver.empty()) {
      return LeftBehind(context_, {volume, OwedCall::kUnstage, place.Display()},
                        "nothing is staged at " + place.Display(), *left);
    }
    if (left) return Error::NotApplied(Code::kFailedPrecondition, *left);
    return RemoveVolData(context_, ParentOf(place), call);
  }

  const CsiContext& context_;
};

// Whether the driver has to be called to take the volume back.
Result<bool> HasToUnstage(const CsiContext& context, const CsiVolumeId& volume, bool mounted) {
  const auto record = context.parts.devices.Find(CsiUniqueName(volume.driver, volume.handle));
  if (record && record->staged == StagedState::kStaged) return true;
  if (record && record->staged == StagedState::kNot) return false;
  // A kubelet staged it, or the record is lost.
  const Result<CsiDriverFacts> driver = FactsOf(context, volume.driver);
  if (driver.ok()) return DriverStages(*driver) || mounted;
  return driver.error();
}

// Whether a driver that cannot take back has nothing to take back.
bool StagesNoMore(const CsiContext& context, const std::string& driver, const Error& error) {
  if (error.code() != Code::kUnimplemented) return false;
  const Result<CsiDriverFacts> facts = FactsOf(context, driver);
  return facts.ok() && !DriverStages(*facts);
}

}  // namespace

Result<CsiStaging> StagingOf(const CsiContext& context, const CsiVolume& volume) {
  CsiStaging staging;
  const KubeletPaths& paths = context.host.paths;
  staging.path = CsiStagingPath(paths, volume.driver, volume.handle);
  if (volume.is_ephemeral()) {
    staging.staged = StagedState::kNot;
    return staging;
  }
  const auto record = context.parts.devices.Find(CsiUniqueName(volume.driver, volume.handle));
  if (!record) return staging;
  staging.publish_context = record->publish_context;
  staging.staged = record->staged;
  staging.source = record->source;
  // A block volume's is its map directory.
  if (!record->device_mount_path.empty() && !record->is_block && !volume.is_block) {
    ASSIGN_OR_RETURN(staging.path, paths.BelowRoot(record->device_mount_path));
  }
  return staging;
}

std::string StagingPathFor(const CsiDriverFacts& driver, const CsiStaging& staging) {
  if (!DriverStages(driver) || staging.staged == StagedState::kNot) return "";
  return staging.path.Display();
}

Status StageVolume(const CsiContext& context, const CsiDriverFacts& driver, const CsiVolume& volume,
                   const CsiStageWish& wish, const SafePath& place, const CallOptions& call) {
  const CsiVolumeId id{volume.driver, volume.handle};
  RETURN_IF_ERROR(ForgetIfUnmounted(context, id, place.Display(), call));
  RETURN_IF_ERROR(
      context.parts.devices.SetStaged(CsiUniqueName(volume.driver, volume.handle), true));
  RETURN_IF_ERROR(CallDriver<::csi::v1::NodeStageVolumeResponse>(
      context, volume.driver, NodeStageRequest(driver, volume, wish), call, volume.migrated));
  Result<CsiFinding> found = LookAtStaged(context, place, call);
  if (!found.ok()) return found.error().AsMaybeApplied();
  if (!found->wrong && found->mount) {
    Result<std::optional<std::string>> wrong = WhyPodsDevice(context, id, *found->mount, call);
    if (!wrong.ok()) return wrong.error().AsMaybeApplied();
    found->wrong = *std::move(wrong);
  }
  if (!found->wrong) {
    found->wrong = WhyNotAsBeforeGrowth(context, id, place.Display(), found->mount);
  }
  if (!found->wrong) return OkStatus();
  return DriverLied(context, {volume.driver, kStage, volume.handle},
                    Named(volume.handle) + " is staged at " + wish.staging_path, *found->wrong);
}

Status UnstageVolume(const CsiContext& context, const CsiVolumeId& volume, const SafePath& place,
                     const CallOptions& call) {
  const std::string path = place.Display();
  ASSIGN_OR_RETURN(const bool mounted, IsMounted(context, place, call));
  ASSIGN_OR_RETURN(const bool has_to, HasToUnstage(context, volume, mounted));
  if (!has_to) {
    if (!mounted) return OkStatus();
    return Error::NotApplied(Code::kFailedPrecondition,
                             "something is mounted at " + path + ", and by its record " +
                                 Named(volume.handle) + " was never staged");
  }
  if (MayOwe(context, volume.driver)) return UnstageOwing(context, volume, place, call);
  std::string said = Named(volume.handle) + " is not staged at " + path;
  const auto answer = CallDriver<::csi::v1::NodeUnstageVolumeResponse>(
      context, volume.driver, NodeUnstageRequest(volume.handle, path), call);
  if (!answer.ok()) {
    const bool is_unknown = answer.error().code() == Code::kNotFound;
    if (!is_unknown && !StagesNoMore(context, volume.driver, answer.error())) {
      return answer.error();
    }
    said = is_unknown ? "it knows no " + Named(volume.handle) : "it stages nothing";
  }
  const Result<CsiFinding> left = LookAtTakenAway(context, place, call);
  if (!left.ok()) return left.error().AsMaybeApplied();
  if (left->wrong) {
    return DriverLied(context, {volume.driver, kUnstage, volume.handle}, said, *left->wrong);
  }
  return OkStatus();
}

std::unique_ptr<DeviceMounter> MakeCsiStager(const CsiContext& context) {
  return std::make_unique<CsiStager>(context);
}

std::unique_ptr<DeviceUnmounter> MakeCsiUnstager(const CsiContext& context) {
  return std::make_unique<CsiUnstager>(context);
}

}  // namespace volumed
