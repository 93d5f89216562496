#include "plugins/virtio_fs.h"

#include <optional>
#include <utility>
#include <vector>

#include "metrics/metrics_statfs.h"
#include "mounter/mount_refs.h"
#include "operation/call_options.h"
#include "plugins/device_bind.h"
#include "plugins/volume_places.h"

namespace volumed {
namespace {

constexpr char kVirtioFsType[] = "virtiofs";

const VirtioFsVolumeSource* VirtioFsOf(const VolumeSpec& spec) {
  return spec.SourceAs<VirtioFsVolumeSource>();
}

Error NotVirtioFs() {
  return Error::NotApplied(Code::kInvalidArgument,
                           "spec does not reference a virtioFs volume type");
}

class VirtioFsMounter final : public Mounter {
 public:
  VirtioFsMounter(VolumeHost& host, VirtioFsVolumeSource source, SafePath place)
      : host_(host), source_(std::move(source)), place_(std::move(place)) {}

  std::string GetPath() const override { return place_.Display(); }
  SafePath GetSafePath() const override { return place_; }
  Attributes GetAttributes() const override {
    return {.read_only = source_.read_only, .managed = false, .selinux_relabel = false};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return MetricsStatFs(host_.kernel, host_.clock, place_).GetMetrics(call);
  }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  VolumeHost& host_;
  const VirtioFsVolumeSource source_;
  const SafePath place_;
};

Status VirtioFsMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  const CallOptions own = OnOwnFilesystem(args.call);
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_.kernel, dir.Display(), own));
  if (mount && mount->fs_type == kVirtioFsType) return OkStatus();
  if (mount) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             mount->fs_type + " is mounted at " + dir.Display());
  }
  RETURN_IF_ERROR(MakePlace(host_.kernel, dir, own));
  std::vector<std::string> options;
  if (source_.read_only) options.emplace_back("ro");
  const auto mounted = host_.kernel.Call(
      Mount{.fs_type = kVirtioFsType, .source = source_.tag, .target = dir, .options = options},
      args.call);
  return OrNothing(host_.kernel, dir, mounted.ok() ? OkStatus() : Status(mounted.error()), own);
}

}  // namespace

Result<std::string> VirtioFsPlugin::GetVolumeName(const VolumeSpec& spec) const {
  const VirtioFsVolumeSource* source = VirtioFsOf(spec);
  if (source == nullptr) return NotVirtioFs();
  return source->tag;
}

bool VirtioFsPlugin::CanSupport(const VolumeSpec& spec) const {
  return VirtioFsOf(spec) != nullptr;
}

Result<std::unique_ptr<Mounter>> VirtioFsPlugin::NewMounter(const VolumeSpec& spec,
                                                            const VolumeTarget& target) {
  if (!CanSupport(spec)) return NotVirtioFs();
  return std::unique_ptr<Mounter>(
      std::make_unique<VirtioFsMounter>(*host_, *VirtioFsOf(spec), target.place));
}

Result<std::unique_ptr<Unmounter>> VirtioFsPlugin::NewUnmounter(const SpecName& spec,
                                                                const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<DeviceBindUnmounter>(
      *host_, host_->paths.GetPodVolumeDir(pod, kVirtioFsPluginName, spec)));
}

Result<ReconstructedVolume> VirtioFsPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                const SafePath& volume_path,
                                                                const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(host_->kernel, volume_path.Display(), call));
  VirtioFsVolumeSource source{spec.str(), false};
  if (mount) source = {mount->source, TakesNoWrites(*mount)};
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), std::move(source)})};
}

std::string VirtioFsPlugin::FaultDomain(const VolumeSpec& spec) const {
  const VirtioFsVolumeSource* source = VirtioFsOf(spec);
  return source == nullptr ? "" : "virtiofs:" + source->tag;
}

}  // namespace volumed
