#include "fakes/fake_array_plugin.h"

#include "metrics/metrics_nil.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

constexpr uint32_t kMode = 0750;

Status MakePlace(VolumeHost& host, const SafePath& place, const CallOptions& call) {
  RETURN_IF_ERROR(
      host.kernel.Call(MakeDirectory{.path = place, .mode = kMode, .parent_mode = kMode}, call));
  return OkStatus();
}

Result<bool> IsMounted(VolumeHost& host, const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info,
                   host.kernel.Call(Stat{.path = place, .only_mount_point = true}, call));
  return info.is_mount_point;
}

Status TakeAway(VolumeHost& host, const SafePath& place, const CallOptions& call) {
  RETURN_IF_ERROR(host.kernel.Call(Unmount{.target = place}, call));
  const auto removed = host.kernel.Call(RemoveDirectory{place}, call);
  return removed.ok() ? OkStatus() : Status(removed.error().AsMaybeApplied());
}

// What failed without effect leaves no directory behind.
Status OrNothing(VolumeHost& host, const SafePath& place, Status status, const CallOptions& call) {
  if (status.ok() || status.error().maybe_applied()) return status;
  if (host.kernel.Call(RemoveDirectory{place}, call).ok()) return status;
  return status.error().AsMaybeApplied();
}

}  // namespace

Status FakeArrayPlugin::Look(const std::string& volume, const CallOptions& call) {
  RETURN_IF_ERROR(
      host_->kernel.Call(Stat{.path = HostPath(array_.disks.at(volume)), .follow = true}, call));
  return OkStatus();
}

std::optional<Error> FakeArrayPlugin::TakeFailure(const std::string& call) {
  const auto found = array_.failures.find(call);
  if (found == array_.failures.end()) return std::nullopt;
  const Error error = found->second;
  array_.failures.erase(found);
  return error;
}

std::vector<bool> FakeArrayPlugin::Ask(const std::vector<VolumeSpec>& specs) const {
  std::vector<bool> answer;
  for (const VolumeSpec& spec : specs) {
    answer.push_back(array_.attached.contains(spec.name().str()));
  }
  return answer;
}

bool FakeArrayPlugin::CanSupport(const VolumeSpec& spec) const {
  const auto* source = spec.SourceAs<FlexPersistentVolumeSource>();
  return source != nullptr && source->driver == kFakeArrayPlugin;
}

Result<ReconstructedVolume> FakeArrayPlugin::ConstructVolumeSpec(const SpecName& spec,
                                                                 const SafePath&,
                                                                 const CallOptions&) {
  PersistentVolume volume;
  volume.metadata.name = spec.str();
  FlexPersistentVolumeSource source;
  source.driver = kFakeArrayPlugin;
  volume.spec.source = source;
  return ReconstructedVolume{VolumeSpec::FromPersistentVolume(std::move(volume), false)};
}

// ---- the device ---------------------------------------------------------------------------------

class FakeArrayPlugin::AttacherOf final : public Attacher {
 public:
  explicit AttacherOf(FakeArrayPlugin& plugin) : plugin_(plugin), array_(plugin.array_) {}

  Result<std::string> Attach(const VolumeSpec& spec, const NodeName&,
                             const CallOptions& call) override {
    const std::string volume = spec.name().str();
    array_.calls.push_back("Attach " + volume);
    array_.last_deadline = call.deadline;
    RETURN_IF_ERROR(plugin_.Look(volume, call));
    const std::optional<Error> failure = plugin_.TakeFailure("Attach");
    if (failure && !failure->maybe_applied()) return *failure;
    if (plugin_.watch_.attaching) plugin_.watch_.attaching(volume);
    const std::string& path = array_.disks.at(volume);
    array_.attached.insert(volume);
    array_.flushes[volume] = plugin_.node_.Device(path).flushes;
    if (!plugin_.node_.Exists(path)) plugin_.node_.ReturnDeviceNode(path);
    if (failure) return *failure;
    const Status looked = plugin_.Look(volume, call);
    if (!looked.ok()) return looked.error().AsMaybeApplied();
    return AnswerFor(path);
  }
  Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                               const NodeName&, const CallOptions&) override {
    array_.calls.push_back("VolumesAreAttached");
    if (const auto failure = plugin_.TakeFailure("VolumesAreAttached")) return *failure;
    return plugin_.Ask(specs);
  }
  Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                    const Pod&, const CallOptions& call) override {
    array_.calls.push_back("WaitForAttach " + spec.name().str() + " " + device_path);
    array_.last_deadline = call.deadline;
    if (const auto failure = plugin_.TakeFailure("WaitForAttach")) return *failure;
    const std::string& path = array_.disks.at(spec.name().str());
    ASSIGN_OR_RETURN(const FileInfo info, plugin_.host_->kernel.Call(
                                              Stat{.path = HostPath(path), .follow = true}, call));
    if (info.type == FileType::kBlockDevice) return AnswerFor(path);
    return Error::NotApplied(Code::kNotFound, "no device " + path);
  }
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override {
    return plugin_.host_->paths.GetDeviceMountDir(kFakeArrayPlugin, spec.name());
  }
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path, const SafePath& place,
                     const DeviceMounterArgs& args) override {
    array_.calls.push_back("MountDevice " + spec.name().str() + " " + device_path);
    if (const auto failure = plugin_.TakeFailure("MountDevice")) return *failure;
    VolumeHost& host = *plugin_.host_;
    ASSIGN_OR_RETURN(const bool mounted, IsMounted(host, place, args.call));
    if (mounted) return OkStatus();
    RETURN_IF_ERROR(MakePlace(host, place, args.call));
    const std::string& device =
        array_.attached_as.empty() ? device_path : array_.disks.at(spec.name().str());
    return OrNothing(host, place, MountIt(host, device, place, args.call), args.call);
  }

 private:
  std::string AnswerFor(const std::string& path) const {
    return array_.attached_as.empty() ? path : array_.attached_as;
  }
  static Status MountIt(VolumeHost& host, const std::string& device, const SafePath& place,
                        const CallOptions& call) {
    ASSIGN_OR_RETURN(const DeviceProbe probe, host.kernel.Call(ProbeDevice{device}, call));
    RETURN_IF_ERROR(host.kernel.Call(Mount{.fs_type = "ext4",
                                           .source = device,
                                           .target = place,
                                           .options = {},
                                           .expected_device = probe.identity},
                                     call));
    return OkStatus();
  }

  FakeArrayPlugin& plugin_;
  FakeArray& array_;
};

class FakeArrayPlugin::DetacherOf final : public Detacher {
 public:
  explicit DetacherOf(FakeArrayPlugin& plugin) : plugin_(plugin), array_(plugin.array_) {}

  Status Detach(const std::string& volume, const NodeName&, const CallOptions& call) override {
    array_.calls.push_back("Detach " + volume);
    RETURN_IF_ERROR(plugin_.Look(volume, call));
    const std::optional<Error> failure = plugin_.TakeFailure("Detach");
    if (failure && !failure->maybe_applied()) return *failure;
    if (plugin_.watch_.detaching) plugin_.watch_.detaching(volume);
    array_.attached.erase(volume);
    const std::string& path = array_.disks.at(volume);
    if (plugin_.node_.Exists(path)) plugin_.node_.Remove(path);
    if (failure) return *failure;
    const Status looked = plugin_.Look(volume, call);
    return looked.ok() ? looked : Status(looked.error().AsMaybeApplied());
  }
  Status UnmountDevice(const SafePath& place, const CallOptions& call) override {
    return TakeAway(*plugin_.host_, place, call);
  }

 private:
  FakeArrayPlugin& plugin_;
  FakeArray& array_;
};

Result<std::unique_ptr<Attacher>> FakeArrayPlugin::NewAttacher() {
  return std::unique_ptr<Attacher>(std::make_unique<AttacherOf>(*this));
}
Result<std::unique_ptr<Detacher>> FakeArrayPlugin::NewDetacher() {
  return std::unique_ptr<Detacher>(std::make_unique<DetacherOf>(*this));
}
Result<std::unique_ptr<DeviceMounter>> FakeArrayPlugin::NewDeviceMounter() {
  return std::unique_ptr<DeviceMounter>(std::make_unique<AttacherOf>(*this));
}
Result<std::unique_ptr<DeviceUnmounter>> FakeArrayPlugin::NewDeviceUnmounter() {
  return std::unique_ptr<DeviceUnmounter>(std::make_unique<DetacherOf>(*this));
}

// Every other mount of the disk that is mounted there.
Result<std::vector<std::string>> FakeArrayPlugin::GetDeviceMountRefs(const SafePath& place,
                                                                     const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountListing table, host_->kernel.Call(ListMounts{}, call));
  std::string source;
  for (const MountEntry& mount : table.mounts) {
    if (mount.mount_point == place.Display()) source = mount.source;
  }
  std::vector<std::string> others;
  for (const MountEntry& mount : table.mounts) {
    const bool same = !source.empty() && mount.source == source;
    if (same && mount.mount_point != place.Display()) others.push_back(mount.mount_point);
  }
  return others;
}

Result<BulkVolumeVerifier::AttachedByNode> FakeArrayPlugin::BulkVerifyVolumes(
    const SpecsByNode& specs, const CallOptions&) {
  array_.calls.push_back("BulkVerifyVolumes");
  if (const auto failure = TakeFailure("VolumesAreAttached")) return *failure;
  AttachedByNode answer;
  for (const auto& [node, of_node] : specs) answer[node] = Ask(of_node);
  return answer;
}

// ---- a pod's bind -------------------------------------------------------------------------------

class FakeArrayPlugin::PodVolumeOf final : public Mounter, public Unmounter {
 public:
  PodVolumeOf(VolumeHost& host, const SpecName& spec, const PodUid& pod)
      : host_(host),
        device_(host.paths.GetDeviceMountDir(kFakeArrayPlugin, spec)),
        place_(host.paths.GetPodVolumeDir(pod, kFakeArrayPlugin, spec)) {}

  std::string GetPath() const override { return place_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override {
    return MetricsNil().GetMetrics(call);
  }
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override {
    ASSIGN_OR_RETURN(const bool mounted, IsMounted(host_, dir, args.call));
    if (mounted) return OkStatus();
    RETURN_IF_ERROR(MakePlace(host_, dir, args.call));
    const auto bound = host_.kernel.Call(BindMount{.source = device_, .target = dir}, args.call);
    return OrNothing(host_, dir, bound.ok() ? OkStatus() : Status(bound.error()), args.call);
  }
  Attributes GetAttributes() const override {
    return {.read_only = false, .managed = true, .selinux_relabel = false};
  }
  SafePath GetSafePath() const override { return place_; }
  Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override {
    return TakeAway(host_, dir, call);
  }

 private:
  VolumeHost& host_;
  const SafePath device_;
  const SafePath place_;
};

Result<std::unique_ptr<Mounter>> FakeArrayPlugin::NewMounter(const VolumeSpec& spec,
                                                             const VolumeTarget& target) {
  return std::unique_ptr<Mounter>(
      std::make_unique<PodVolumeOf>(*host_, spec.name(), target.key.pod));
}
Result<std::unique_ptr<Unmounter>> FakeArrayPlugin::NewUnmounter(const SpecName& spec,
                                                                 const PodUid& pod) {
  return std::unique_ptr<Unmounter>(std::make_unique<PodVolumeOf>(*host_, spec, pod));
}

}  // namespace volumed
