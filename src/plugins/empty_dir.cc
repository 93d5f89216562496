#include "plugins/empty_dir.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "kube/pod_facts.h"
#include "metrics/metrics_du.h"
#include "mounter/volume_ownership.h"
#include "plugins/huge_pages.h"

namespace volumed {
namespace {

constexpr uint32_t kVolumeMode = 0777;
constexpr uint32_t kParentMode = 0750;
constexpr char kReadyFile[] = "ready";
// Source: statfs(2), linux/magic.h (TMPFS_MAGIC).
constexpr uint64_t kTmpfsMagic = 0x01021994;

enum class Medium { kDefault, kMemory, kHugePages };

Result<Medium> ParseMedium(const std::string& medium) {
  if (medium.empty()) return Medium::kDefault;
  if (medium == kMediumMemory) return Medium::kMemory;
  if (IsHugePagesMedium(medium)) return Medium::kHugePages;
  return Error::NotApplied(Code::kInvalidArgument, "unknown storage medium \"" + medium + "\"");
}

const EmptyDirVolumeSource* SourceOf(const VolumeSpec& spec) {
  return spec.volume() == nullptr ? nullptr
                                  : std::get_if<EmptyDirVolumeSource>(&spec.volume()->source);
}

// The least of the limits that there are; a zero or negative one is none.
// Source: empty_dir.go@v1.36.2 (calculateEmptyDirMemorySize).
std::optional<int64_t> MemorySizeBytes(const HostNode& node, const Pod* pod,
                                       const EmptyDirVolumeSource& source) {
  std::optional<int64_t> size;
  const auto limit_by = [&size](const std::optional<int64_t>& bytes) {
    if (bytes && *bytes > 0) size = size ? std::min(*size, *bytes) : *bytes;
  };
  const auto allocatable = node.GetNodeAllocatable();
  if (const auto memory = allocatable.find("memory"); memory != allocatable.end()) {
    limit_by(memory->second.Value());
  }
  if (pod != nullptr) limit_by(PodMemoryLimitBytes(*pod));
  if (source.size_limit) limit_by(source.size_limit->Value());
  return size;
}

// What a filesystem mounted at `dir` itself says that it is; kDefault where nothing, or something
// that is not ours, is mounted.
Result<Medium> MountedMedium(Kernel& kernel, const SafePath& dir, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info,
                   kernel.Call(Stat{.path = dir, .only_mount_point = true}, call));
  if (!info.is_mount_point) return Medium::kDefault;
  ASSIGN_OR_RETURN(const FsInfo fs, kernel.Call(StatFs{dir}, call));
  if (fs.fs_magic == kTmpfsMagic) return Medium::kMemory;
  return fs.fs_magic == kHugetlbfsMagic ? Medium::kHugePages : Medium::kDefault;
}

SafePath MarkerDir(const VolumeHost& host, const PodUid& pod, const SpecName& spec) {
  return host.paths.GetPodPluginDir(pod, kEmptyDirPluginName, spec);
}

class EmptyDirMounter final : public Mounter {
 public:
  EmptyDirMounter(VolumeHost& host, EmptyDirVolumeSource source, const VolumeTarget& target)
      : host_(host),
        source_(std::move(source)),
        pod_(target.pod),
        uid_(target.key.pod),
        marker_dir_(MarksOf(target, kEmptyDirPluginName)),
        dir_(target.place),
        metrics_(NewTimedMetricsDu(host.kernel, host.clock, dir_, host.metrics)) {}

  std::string GetPath() const override { return dir_.Display(); }
  SafePath GetSafePath() const override { return dir_; }
  Attributes GetAttributes() const override {
    return {.read_only = false, .managed = true, .selinux_relabel = true};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return metrics_->GetMetrics(call);
  }
  std::optional<MetricsPlan> PlanMetrics() override { return metrics_->PlanMetrics(); }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(dir_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;
  Result<std::optional<EnsureVolume>> PlanSetUpAt(const SafePath& dir,
                                                  const MounterArgs& args) override;
  void SetUpDone(const EnsuredVolume& answer) override {
    ObserveOwnership(host_.metrics, kEmptyDirPluginName, answer.owned_made_ns);
  }

 private:
  Status SetUpHugePages(const SafePath& dir, const MounterArgs& args);
  Status MountHugePages(const SafePath& dir, const CallOptions& call);
  Status MakeVolumeDir(const SafePath& dir, const CallOptions& call);
  Status Finish(const SafePath& dir, const MounterArgs& args);
  std::vector<std::string> TmpfsOptions() const;

  VolumeHost& host_;
  const EmptyDirVolumeSource source_;
  const PodPtr pod_;  // null: its limits bound nothing
  const PodUid uid_;  // whom the events are about
  const SafePath marker_dir_;
  const SafePath dir_;
  const std::unique_ptr<MetricsProvider> metrics_;
};

Result<std::optional<EnsureVolume>> EmptyDirMounter::PlanSetUpAt(const SafePath& dir,
                                                                 const MounterArgs& args) {
  ASSIGN_OR_RETURN(const Medium medium, ParseMedium(source_.medium));
  // The size of a page is found out by looking at what is mounted.
  if (medium == Medium::kHugePages) return std::optional<EnsureVolume>();
  EnsureVolume effect{.target = dir,
                      .mode = kVolumeMode,
                      .parent_mode = kParentMode,
                      .marker = marker_dir_.Below(kReadyFile)};
  if (medium == Medium::kMemory) effect.tmpfs = TmpfsOptions();
  // Always: the tree is new or small, and kubelet does not ask the policy here either.
  if (args.fs_group) {
    ASSIGN_OR_RETURN(effect.gid, GroupId(*args.fs_group));
  }
  return std::optional(std::move(effect));
}

Status EmptyDirMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const std::optional<EnsureVolume> effect, PlanSetUpAt(dir, args));
  if (!effect) return SetUpHugePages(dir, args);
  ASSIGN_OR_RETURN(const EnsuredVolume done, host_.kernel.Call(*effect, args.call));
  SetUpDone(done);
  return OkStatus();
}

std::vector<std::string> EmptyDirMounter::TmpfsOptions() const {
  std::vector<std::string> options;
  if (const auto size = MemorySizeBytes(host_.node, pod_.get(), source_)) {
    options.push_back("size=" + std::to_string(*size));
  }
  if (host_.node.GetKernelFeatures().tmpfs_noswap) options.push_back("noswap");
  return options;
}

// As in kubelet, the mount is looked at each time: its page size may be another one's.
Status EmptyDirMounter::SetUpHugePages(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const FileInfo ready,
                   host_.kernel.Call(Stat{.path = marker_dir_.Below(kReadyFile)}, args.call));
  // A marker of a volume that is gone, or none of ours, must not vouch for what comes now.
  if (ready.type != FileType::kMissing && ready.type != FileType::kRegular) {
    RETURN_IF_ERROR(host_.kernel.Call(RemoveTree{marker_dir_}, args.call));
  }
  RETURN_IF_ERROR(MountHugePages(dir, args.call));
  // From here on the volume is there, ready or not.
  if (Status status = Finish(dir, args); !status.ok()) return status.error().AsMaybeApplied();
  return OkStatus();
}

Status EmptyDirMounter::MakeVolumeDir(const SafePath& dir, const CallOptions& call) {
  RETURN_IF_ERROR(host_.kernel.Call(
      MakeDirectory{
          .path = dir, .mode = kVolumeMode, .parent_mode = kParentMode, .exact_mode = true},
      call));
  return OkStatus();
}

Status EmptyDirMounter::MountHugePages(const SafePath& dir, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Quantity page_size, HugePageSizeOf(*pod_, source_.medium));
  ASSIGN_OR_RETURN(const FileInfo place,
                   host_.kernel.Call(Stat{.path = dir, .only_mount_point = true}, call));
  if (place.type == FileType::kMissing) RETURN_IF_ERROR(MakeVolumeDir(dir, call));
  if (Status mounted = MountHugetlbfs(host_.kernel, dir, page_size, call); !mounted.ok()) {
    return mounted.error().AsMaybeApplied();  // the directory is there
  }
  // hugetlbfs has 0755 and the root's owner, unless told otherwise; the volume is for everybody.
  return MakeVolumeDir(dir, call);
}

Status EmptyDirMounter::Finish(const SafePath& dir, const MounterArgs& args) {
  // Always: the tree is new or small, and kubelet does not ask the policy here either.
  RETURN_IF_ERROR(SetVolumeOwnership(host_.kernel, host_.events, host_.clock,
                                     {.dir = dir,
                                      .fs_group = args.fs_group,
                                      .policy = FsGroupChangePolicy::kAlways,
                                      .read_only = false,
                                      .pod = uid_,
                                      .metrics = &host_.metrics,
                                      .plugin_name = kEmptyDirPluginName},
                                     args.call));
  RETURN_IF_ERROR(host_.kernel.Call(
      MakeDirectory{.path = marker_dir_, .mode = kParentMode, .parent_mode = kParentMode},
      args.call));
  RETURN_IF_ERROR(
      host_.kernel.Call(MakeFile{.path = marker_dir_.Below(kReadyFile), .mode = 0644}, args.call));
  return OkStatus();
}

class EmptyDirUnmounter final : public Unmounter {
 public:
  EmptyDirUnmounter(VolumeHost& host, SpecName spec, PodUid pod)
      : host_(host),
        spec_(std::move(spec)),
        pod_(std::move(pod)),
        dir_(host.paths.GetPodVolumeDir(pod_, kEmptyDirPluginName, spec_)),
        metrics_(NewTimedMetricsDu(host.kernel, host.clock, dir_, host.metrics)) {}

  std::string GetPath() const override { return dir_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return metrics_->GetMetrics(call);
  }
  Status TearDown(const CallOptions& call) override { return TearDownAt(dir_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override {
    RETURN_IF_ERROR(host_.kernel.Call(*PlanTearDownAt(dir), call));
    return OkStatus();
  }
  std::optional<RemoveVolume> PlanTearDownAt(const SafePath& dir) override {
    return RemoveVolume{.target = dir, .marker = MarkerDir(host_, pod_, spec_).Below(kReadyFile)};
  }

 private:
  VolumeHost& host_;
  const SpecName spec_;
  const PodUid pod_;
  const SafePath dir_;
  const std::unique_ptr<MetricsProvider> metrics_;
};

}  // namespace

Result<std::string> EmptyDirPlugin::GetVolumeName(const VolumeSpec& spec) const {
  if (SourceOf(spec) == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "Spec does not reference an EmptyDir volume type");
  }
  // An ephemeral volume is identified by the name that the pod gives it.
  return spec.name().str();
}

bool EmptyDirPlugin::CanSupport(const VolumeSpec& spec) const { return SourceOf(spec) != nullptr; }

Result<std::unique_ptr<Mounter>> EmptyDirPlugin::NewMounter(const VolumeSpec& spec,
                                                            const VolumeTarget& target) {
  const EmptyDirVolumeSource* source = SourceOf(spec);
  if (source == nullptr) return GetVolumeName(spec).error();
  if (IsHugePagesMedium(source->medium) && target.pod == nullptr) {
    return NoPod("an emptyDir on huge pages", target);
  }
  return std::unique_ptr<Mounter>(std::make_unique<EmptyDirMounter>(*host_, *source, target));
}

Result<std::unique_ptr<Unmounter>> EmptyDirPlugin::NewUnmounter(const SpecName& spec,
                                                                const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<EmptyDirUnmounter>(*host_, spec, pod));
}

Result<ReconstructedVolume> EmptyDirPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                const SafePath& volume_path,
                                                                const CallOptions& call) {
  ASSIGN_OR_RETURN(const Medium mounted, MountedMedium(host_->kernel, volume_path, call));
  EmptyDirVolumeSource source;
  if (mounted == Medium::kMemory) source.medium = kMediumMemory;
  if (mounted == Medium::kHugePages) source.medium = kMediumHugePages;
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), std::move(source)})};
}

}  // namespace volumed
