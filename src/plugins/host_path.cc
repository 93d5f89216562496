#include "plugins/host_path.h"

#include <utility>

#include "metrics/metrics_nil.h"
#include "mounter/host_directory.h"
#include "plugins/host_path_storage.h"

namespace volumed {
namespace {

constexpr uint32_t kNewDirectoryMode = 0755;
constexpr uint32_t kNewFileMode = 0644;

const HostPathVolumeSource* SourceOf(const VolumeSpec& spec) {
  return spec.SourceAs<HostPathVolumeSource>();
}

Error WrongType(const std::string& path, const std::string& wanted) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "hostPath type check failed: " + path + " is not a " + wanted);
}

class HostPathMounter final : public Mounter {
 public:
  HostPathMounter(VolumeHost& host, HostPathVolumeSource source, bool read_only)
      : host_(host),
        source_(std::move(source)),
        path_(CleanHostPath(source_.path)),
        read_only_(read_only) {}

  std::string GetPath() const override { return path_; }
  // An administrator allowed this path, so it is a root of its own.
  SafePath GetSafePath() const override { return HostPath(path_); }
  Attributes GetAttributes() const override {
    return {.read_only = read_only_, .managed = false, .selinux_relabel = false};
  }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status SetUp(const MounterArgs& args) override;
  Status SetUpAt(const SafePath&, const MounterArgs&) override {
    return Error::NotApplied(Code::kInvalidArgument,
                             "SetUpAt() does not make sense for host paths");
  }

 private:
  Result<FileType> TypeOfPath(const CallOptions& call) const;
  Status ExpectType(FileType type, const std::string& wanted, const CallOptions& call) const;
  Status MakeMissingDirectory(const CallOptions& call) const;
  Status MakeMissingFile(const CallOptions& call) const;

  VolumeHost& host_;
  const HostPathVolumeSource source_;
  const std::string path_;
  const bool read_only_;
  MetricsNil metrics_;
};

Status HostPathMounter::SetUp(const MounterArgs& args) {
  RETURN_IF_ERROR(CheckHostPath(source_.path));
  switch (source_.type) {
    case HostPathType::kUnset:
      return OkStatus();
    case HostPathType::kDirectoryOrCreate:
      RETURN_IF_ERROR(MakeMissingDirectory(args.call));
      return ExpectType(FileType::kDirectory, "directory", args.call);
    case HostPathType::kDirectory:
      return ExpectType(FileType::kDirectory, "directory", args.call);
    case HostPathType::kFileOrCreate:
      RETURN_IF_ERROR(MakeMissingFile(args.call));
      return ExpectType(FileType::kRegular, "file", args.call);
    case HostPathType::kFile:
      return ExpectType(FileType::kRegular, "file", args.call);
    case HostPathType::kSocket:
      return ExpectType(FileType::kSocket, "socket file", args.call);
    case HostPathType::kCharDevice:
      return ExpectType(FileType::kCharDevice, "character device", args.call);
    case HostPathType::kBlockDevice:
      return ExpectType(FileType::kBlockDevice, "block device", args.call);
  }
  return Error::NotApplied(Code::kInternal, "hostPath type of " + path_ + " is none of the enum");
}

Result<FileType> HostPathMounter::TypeOfPath(const CallOptions& call) const {
  // It was looked at a moment ago; what is missing may have been made since.
  if (call.approved != nullptr && call.approved->type != FileType::kMissing) {
    return call.approved->type;
  }
  ASSIGN_OR_RETURN(const FileInfo info,
                   host_.kernel.Call(Stat{.path = HostPath(path_), .follow = true}, call));
  return info.type;
}

Status HostPathMounter::ExpectType(FileType type, const std::string& wanted,
                                   const CallOptions& call) const {
  ASSIGN_OR_RETURN(const FileType found, TypeOfPath(call));
  if (found != type) return WrongType(source_.path, wanted);
  return OkStatus();
}

Status HostPathMounter::MakeMissingDirectory(const CallOptions& call) const {
  ASSIGN_OR_RETURN(const FileType found, TypeOfPath(call));
  if (found != FileType::kMissing) return OkStatus();
  RETURN_IF_ERROR(MakeHostDirectory(host_.kernel, path_, kNewDirectoryMode, call));
  return OkStatus();
}

Status HostPathMounter::MakeMissingFile(const CallOptions& call) const {
  ASSIGN_OR_RETURN(const FileType found, TypeOfPath(call));
  if (found != FileType::kMissing) return OkStatus();
  SafePath file = SplitLast(path_);
  file.resolve = Resolve::kBeneath;
  RETURN_IF_ERROR(host_.kernel.Call(MakeFile{.path = file, .mode = kNewFileMode}, call));
  return OkStatus();
}

class HostPathUnmounter final : public Unmounter {
 public:
  explicit HostPathUnmounter(std::string path) : path_(std::move(path)) {}

  std::string GetPath() const override { return path_; }
  Result<Metrics> GetMetrics(const CallOptions& call) override { return metrics_.GetMetrics(call); }
  Status TearDown(const CallOptions&) override { return OkStatus(); }
  Status TearDownAt(const SafePath&, const CallOptions&) override {
    return Error::NotApplied(Code::kInvalidArgument,
                             "TearDownAt does not make sense for host paths");
  }

 private:
  const std::string path_;
  MetricsNil metrics_;
};

}  // namespace

Result<std::string> HostPathPlugin::GetVolumeName(const VolumeSpec& spec) const {
  const HostPathVolumeSource* source = SourceOf(spec);
  if (source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "spec does not reference an HostPath volume type");
  }
  return source->path;
}

bool HostPathPlugin::CanSupport(const VolumeSpec& spec) const { return SourceOf(spec) != nullptr; }

Result<std::unique_ptr<Mounter>> HostPathPlugin::NewMounter(const VolumeSpec& spec,
                                                            const VolumeTarget&) {
  RETURN_IF_ERROR(GetVolumeName(spec));
  return std::unique_ptr<Mounter>(
      std::make_unique<HostPathMounter>(*host_, *SourceOf(spec), spec.read_only()));
}

Result<std::unique_ptr<Unmounter>> HostPathPlugin::NewUnmounter(const SpecName&, const PodUid&) {
  // The path is not known any more, and is not needed: nothing is undone.
  return std::unique_ptr<Unmounter>(std::make_unique<HostPathUnmounter>(""));
}

Result<ReconstructedVolume> HostPathPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                const SafePath&,
                                                                const CallOptions&) {
  HostPathVolumeSource source;
  source.path = spec.str();
  return ReconstructedVolume{VolumeSpec::FromVolume(PodVolume{spec.str(), std::move(source)})};
}

std::string HostPathPlugin::FaultDomain(const VolumeSpec& spec) const {
  const HostPathVolumeSource* source = SourceOf(spec);
  return source == nullptr ? "" : CleanHostPath(source->path);
}

Status HostPathPlugin::CanRecycle(const VolumeSpec& spec) const {
  ASSIGN_OR_RETURN(const std::string path, GetVolumeName(spec));
  return CheckMayBeEmptied(path, host_->paths.root());
}

Status HostPathPlugin::Recycle(const std::string& pv_name, const VolumeSpec& spec,
                               const RecycleEventRecorder& recorder, const CallOptions& call) {
  const HostPathVolumeSource* source = SourceOf(spec);
  if (spec.persistent_volume() == nullptr || source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument, "spec.PersistentVolume.Spec.HostPath is nil");
  }
  RETURN_IF_ERROR(CheckMayBeEmptied(source->path, host_->paths.root()));
  return RecycleByPod(settings_.config, settings_.recycler_pods, *spec.persistent_volume(), pv_name,
                      HostPathVolumeSource{CleanHostPath(source->path), HostPathType::kUnset},
                      recorder, call);
}

Result<std::unique_ptr<Deleter>> HostPathPlugin::NewDeleter(const VolumeSpec& spec) {
  const HostPathVolumeSource* source = SourceOf(spec);
  if (spec.persistent_volume() == nullptr || source == nullptr) {
    return Error::NotApplied(Code::kInvalidArgument, "spec.PersistentVolumeSource.HostPath is nil");
  }
  return NewHostPathDeleter(*host_, settings_.roots, source->path);
}

Result<std::unique_ptr<Provisioner>> HostPathPlugin::NewProvisioner(const VolumeOptions& options) {
  const auto disabled = [this](const std::string& why) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "provisioning in volume plugin \"" + GetPluginName() + "\" is disabled" + why);
  };
  if (!settings_.config.provisioning_enabled) return disabled("");
  if (settings_.roots.empty()) return disabled(": no directory is configured for its volumes");
  return NewHostPathProvisioner(*host_, settings_.roots, options);
}

}  // namespace volumed
