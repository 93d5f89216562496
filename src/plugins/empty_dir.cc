#include "plugins/empty_dir.h"

#include <algorithm>
#include <cstdint>
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
std::optional<int64_t> MemorySizeBytes(const HostNode& node, const Pod& pod,
                                       const EmptyDirVolumeSource& source) {
  std::optional<int64_t> size;
  const auto limit_by = [&size](const std::optional<int64_t>& bytes) {
    if (bytes && *bytes > 0) size = size ? std::min(*size, *bytes) : *bytes;
  };
  const auto allocatable = node.GetNodeAllocatable();
  if (const auto memory = allocatable.find("memory"); memory != allocatable.end()) {
    limit_by(memory->second.Value());
  }
  limit_by(PodMemoryLimitBytes(pod));
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
  EmptyDirMounter(VolumeHost& host, SpecName spec, EmptyDirVolumeSource source, PodPtr pod)
      : host_(host),
        spec_(std::move(spec)),
        source_(std::move(source)),
        pod_(std::move(pod)),
        dir_(host.paths.GetPodVolumeDir(pod_->uid(), kEmptyDirPluginName, spec_)),
        metrics_(host.kernel, host.clock, dir_) {}

  std::string GetPath() const override { return dir_.Display(); }
  SafePath GetSafePath() const override { return dir_; }
  Attributes GetAttributes() const override {
    return {.read_only = false, .managed = true, .selinux_relabel = true};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(dir_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  // Nothing is left to do.
  Result<bool> IsSetUp(const SafePath& dir, Medium medium, const CallOptions& call);
  Status MakeVolumeDir(const SafePath& dir, const CallOptions& call);
  Status MountTmpfs(const SafePath& dir, const CallOptions& call);
  Status MountHugePages(const SafePath& dir, const CallOptions& call);
  Status Finish(const SafePath& dir, const MounterArgs& args);

  VolumeHost& host_;
  const SpecName spec_;
  const EmptyDirVolumeSource source_;
  const PodPtr pod_;
  const SafePath dir_;
  MetricsDu metrics_;
};

Status EmptyDirMounter::SetUpAt(const SafePath& dir, const MounterArgs& args) {
  ASSIGN_OR_RETURN(const Medium medium, ParseMedium(source_.medium));
  ASSIGN_OR_RETURN(const bool set_up, IsSetUp(dir, medium, args.call));
  if (set_up) return OkStatus();
  switch (medium) {
    case Medium::kDefault:
      RETURN_IF_ERROR(MakeVolumeDir(dir, args.call));
      break;
    case Medium::kMemory:
      RETURN_IF_ERROR(MountTmpfs(dir, args.call));
      break;
    case Medium::kHugePages:
      RETURN_IF_ERROR(MountHugePages(dir, args.call));
      break;
  }
  // From here on the volume is there, ready or not.
  if (Status status = Finish(dir, args); !status.ok()) return status.error().AsMaybeApplied();
  return OkStatus();
}

Result<bool> EmptyDirMounter::IsSetUp(const SafePath& dir, Medium medium, const CallOptions& call) {
  const SafePath marker_dir = MarkerDir(host_, pod_->uid(), spec_);
  ASSIGN_OR_RETURN(const FileInfo ready,
                   host_.kernel.Call(Stat{.path = marker_dir.Below(kReadyFile)}, call));
  if (ready.type == FileType::kMissing) return false;
  if (ready.type == FileType::kRegular) {
    bool present = false;
    switch (medium) {
      case Medium::kDefault: {
        ASSIGN_OR_RETURN(const FileInfo place,
                         host_.kernel.Call(Stat{.path = dir, .only_mount_point = true}, call));
        present = place.type == FileType::kDirectory;
        break;
      }
      case Medium::kMemory: {
        ASSIGN_OR_RETURN(const Medium mounted, MountedMedium(host_.kernel, dir, call));
        present = mounted == medium;
        break;
      }
      case Medium::kHugePages:
        // As in kubelet, the mount is looked at each time: its page size may be another one's.
        return false;
    }
    if (present) return true;
  }
  // A marker of a volume that is gone (a reboot takes the tmpfs and leaves the marker), or none of
  // ours: it must not vouch for what comes now.
  RETURN_IF_ERROR(host_.kernel.Call(RemoveTree{marker_dir}, call));
  return false;
}

Status EmptyDirMounter::MakeVolumeDir(const SafePath& dir, const CallOptions& call) {
  RETURN_IF_ERROR(host_.kernel.Call(
      MakeDirectory{
          .path = dir, .mode = kVolumeMode, .parent_mode = kParentMode, .exact_mode = true},
      call));
  return OkStatus();
}

Status EmptyDirMounter::MountTmpfs(const SafePath& dir, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo place,
                   host_.kernel.Call(Stat{.path = dir, .only_mount_point = true}, call));
  if (place.is_mount_point) {
    ASSIGN_OR_RETURN(const Medium mounted, MountedMedium(host_.kernel, dir, call));
    if (mounted == Medium::kMemory) return OkStatus();  // a set-up that was interrupted before its marker
    return Error::NotApplied(Code::kFailedPrecondition,
                             dir.Display() + " has another filesystem than a tmpfs mounted");
  }
  RETURN_IF_ERROR(MakeVolumeDir(dir, call));
  Mount mount{.fs_type = "tmpfs", .source = "tmpfs", .target = dir, .options = {}};
  if (const auto size = MemorySizeBytes(host_.node, *pod_, source_)) {
    mount.options.push_back("size=" + std::to_string(*size));
  }
  if (host_.node.GetKernelFeatures().tmpfs_noswap) mount.options.push_back("noswap");
  if (const auto mounted = host_.kernel.Call(mount, call); !mounted.ok()) {
    return mounted.error().AsMaybeApplied();  // the directory is there
  }
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
                                      .pod = pod_->uid()},
                                     args.call));
  const SafePath marker_dir = MarkerDir(host_, pod_->uid(), spec_);
  RETURN_IF_ERROR(host_.kernel.Call(
      MakeDirectory{.path = marker_dir, .mode = kParentMode, .parent_mode = kParentMode},
      args.call));
  RETURN_IF_ERROR(
      host_.kernel.Call(MakeFile{.path = marker_dir.Below(kReadyFile), .mode = 0644}, args.call));
  return OkStatus();
}

class EmptyDirUnmounter final : public Unmounter {
 public:
  EmptyDirUnmounter(VolumeHost& host, SpecName spec, PodUid pod)
      : host_(host),
        spec_(std::move(spec)),
        pod_(std::move(pod)),
        dir_(host.paths.GetPodVolumeDir(pod_, kEmptyDirPluginName, spec_)),
        metrics_(host.kernel, host.clock, dir_) {}

  std::string GetPath() const override { return dir_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status TearDown(const CallOptions& call) override { return TearDownAt(dir_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override;

 private:
  Status RemoveVolume(const SafePath& dir, const CallOptions& call);

  VolumeHost& host_;
  const SpecName spec_;
  const PodUid pod_;
  const SafePath dir_;
  MetricsDu metrics_;
};

Status EmptyDirUnmounter::TearDownAt(const SafePath& dir, const CallOptions& call) {
  RETURN_IF_ERROR(host_.kernel.Call(RemoveTree{MarkerDir(host_, pod_, spec_)}, call));
  // Without its marker the volume is no longer one that a pod may use.
  if (Status status = RemoveVolume(dir, call); !status.ok()) {
    return status.error().AsMaybeApplied();
  }
  return OkStatus();
}

Status EmptyDirUnmounter::RemoveVolume(const SafePath& dir, const CallOptions& call) {
  // A crash between mount and marker on a kernel that lost track may have stacked two.
  while (true) {
    ASSIGN_OR_RETURN(const Medium mounted, MountedMedium(host_.kernel, dir, call));
    if (mounted == Medium::kDefault) break;
    RETURN_IF_ERROR(host_.kernel.Call(Unmount{.target = dir}, call));
  }
  // Stops at any mount: nothing else than these was ever mounted by us.
  RETURN_IF_ERROR(host_.kernel.Call(RemoveTree{dir}, call));
  return OkStatus();
}

}  // namespace

Status EmptyDirPlugin::Init(PluginContext context) {
  host_ = &context.host;
  return OkStatus();
}

Result<std::string> EmptyDirPlugin::GetVolumeName(const VolumeSpec& spec) const {
  if (SourceOf(spec) == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "Spec does not reference an EmptyDir volume type");
  }
  // An ephemeral volume is identified by the name that the pod gives it.
  return spec.name().str();
}

bool EmptyDirPlugin::CanSupport(const VolumeSpec& spec) const { return SourceOf(spec) != nullptr; }

Result<std::unique_ptr<Mounter>> EmptyDirPlugin::NewMounter(const VolumeSpec& spec, PodPtr pod) {
  const EmptyDirVolumeSource* source = SourceOf(spec);
  if (source == nullptr) return GetVolumeName(spec).error();
  return std::unique_ptr<Mounter>(
      std::make_unique<EmptyDirMounter>(*host_, spec.name(), *source, std::move(pod)));
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
