#include "recycler/local_recycler_pods.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "recycler/recycler_pod_template.h"
#include "recycler/scrub.h"

namespace volumed {
namespace {

std::string KeyOfPod(const std::string& name_space, const std::string& name) {
  return name_space + "/" + name;
}

// runc's ids have no slash.
std::string ContainerId(const std::string& name_space, const std::string& name) {
  return "volumed-" + name_space + "-" + name;
}

bool CanStandFor(const std::string& image) {
  return image == "busybox" || image.starts_with("busybox:") ||
         image == NewPersistentVolumeRecyclerPodTemplate().spec.containers[0].image;
}

// The directory of the recycled volume, which is the pod's first; null where nobody looked at it,
// and for an export, which is mounted anew for the run.
const StorageIdentity* ApprovedOf(const Pod& pod, const PodVolume& volume,
                                  const CallOptions& call) {
  if (call.approved == nullptr || volume.name != pod.spec.volumes[0].name) return nullptr;
  const bool is_directory = std::get_if<HostPathVolumeSource>(&volume.source) != nullptr;
  return is_directory ? call.approved.get() : nullptr;
}

Error Cannot(const Pod& pod, const std::string& why) {
  return Error::NotApplied(Code::kUnimplemented, "recycler pod " + pod.metadata.name +
                                                     " cannot be run on this node: " + why);
}

}  // namespace

Status LocalRecyclerPods::CheckCanRun(const Pod& pod) const {
  RETURN_IF_ERROR(ValidateRecyclerPodTemplate(pod));
  if (pod.spec.containers.size() != 1 || !pod.spec.init_containers.empty()) {
    return Cannot(pod, "it must have one container and no init containers");
  }
  const Container& container = pod.spec.containers[0];
  if (!CanStandFor(container.image)) {
    return Cannot(pod, "image " + container.image + " is not here; only busybox is");
  }
  if (container.command.empty()) return Cannot(pod, "its container names no command");
  for (const PodVolume& volume : pod.spec.volumes) {
    RETURN_IF_ERROR(volumes_.Check(volume).With("recycler pod " + pod.metadata.name));
  }
  for (const VolumeMount& mount : container.volume_mounts) {
    const bool known = std::any_of(pod.spec.volumes.begin(), pod.spec.volumes.end(),
                                   [&](const PodVolume& v) { return v.name == mount.name; });
    if (!known) return Cannot(pod, "it mounts an unknown volume, " + mount.name);
  }
  return OkStatus();
}

ContainerRun LocalRecyclerPods::RunOf(const Pod& pod, const Places& places) const {
  const Container& container = pod.spec.containers[0];
  ContainerRun run;
  run.id = ContainerId(pod.metadata.name_space, pod.metadata.name);
  run.command = container.command;
  run.command.insert(run.command.end(), container.args.begin(), container.args.end());
  for (const VolumeMount& mount : container.volume_mounts) {
    for (const PodVolume& volume : pod.spec.volumes) {
      if (volume.name != mount.name) continue;
      const auto bound = places.find(volume.name);
      run.binds.push_back({bound == places.end() ? volumes_.PlaceOf(pod, volume) : bound->second,
                           mount.mount_path, mount.read_only});
    }
  }
  return run;
}

// Tells, in this order: that the pod waits, that it runs (an event), how it ended.
class LocalRecyclerPods::Watch final : public RecyclerPodWatch {
 public:
  Watch(LocalRecyclerPods& pods, Key key) : pods_(pods), key_(std::move(key)) {}

  Result<std::optional<RecyclerPodChange>> Next(const CallOptions& call) override {
    using Kind = RecyclerPodChange::Kind;
    const std::shared_ptr<const Pod> pod = pods_.Find(key_);
    RecyclerPodChange change;
    if (stage_ == Stage::kEnded) return std::optional<RecyclerPodChange>();
    if (pod == nullptr) {
      change.kind = Kind::kDeleted;
      stage_ = Stage::kEnded;
      return std::optional(change);
    }
    switch (std::exchange(stage_, NextStage(stage_))) {
      case Stage::kNew:
        change.phase = PodPhase::kPending;
        return std::optional(change);
      case Stage::kPending:
        change.kind = Kind::kEvent;
        change.message = "Started container " + pod->spec.containers[0].name;
        return std::optional(change);
      case Stage::kRunning:
        return std::optional(pods_.RunPod(*pod, call));
      case Stage::kEnded:
        break;
    }
    return std::optional<RecyclerPodChange>();
  }

 private:
  enum class Stage { kNew, kPending, kRunning, kEnded };
  static Stage NextStage(Stage stage) {
    return stage == Stage::kNew       ? Stage::kPending
           : stage == Stage::kPending ? Stage::kRunning
                                      : Stage::kEnded;
  }

  LocalRecyclerPods& pods_;
  const Key key_;
  Stage stage_ = Stage::kNew;
};

LocalRecyclerPods::LocalRecyclerPods(Kernel& kernel, ContainerRunner& containers,
                                     const Clock& clock, std::string mounts)
    : kernel_(kernel),
      containers_(containers),
      clock_(clock),
      volumes_(kernel, clock, std::move(mounts)) {}

LocalRecyclerPods::~LocalRecyclerPods() = default;

std::shared_ptr<const Pod> LocalRecyclerPods::Find(const Key& key) const {
  MutexLock lock(mu_);
  const auto found = pods_.find(key);
  return found == pods_.end() ? nullptr : found->second;
}

Result<std::unique_ptr<RecyclerPodWatch>> LocalRecyclerPods::WatchPod(const std::string& name_space,
                                                                      const std::string& name) {
  return std::unique_ptr<RecyclerPodWatch>(
      std::make_unique<Watch>(*this, KeyOfPod(name_space, name)));
}

Status LocalRecyclerPods::CreatePod(const Pod& pod, const CallOptions& call) {
  RETURN_IF_ERROR(CheckCanRun(pod));
  const Key key = KeyOfPod(pod.metadata.name_space, pod.metadata.name);
  const auto exists = [&key] {
    return Error::NotApplied(Code::kAlreadyExists, "recycler pod " + key + " already exists");
  };
  if (!ScrubsLikeTemplate(pod)) {
    ASSIGN_OR_RETURN(
        const bool left_over,
        containers_.Exists(ContainerId(pod.metadata.name_space, pod.metadata.name), call));
    if (left_over) return exists();
  }
  MutexLock lock(mu_);
  if (!pods_.emplace(key, std::make_shared<const Pod>(pod)).second) return exists();
  return OkStatus();
}

Result<std::shared_ptr<const Pod>> LocalRecyclerPods::Reserve(const Key& key) {
  MutexLock lock(mu_);
  const auto [at, added] = pods_.emplace(key, nullptr);
  if (!added && at->second == nullptr) {
    return Error::NotApplied(Code::kUnavailable,
                             "what an earlier recycler pod " + key + " left is being taken away");
  }
  return std::exchange(at->second, nullptr);
}

void LocalRecyclerPods::Release(const Key& key) {
  MutexLock lock(mu_);
  pods_.erase(key);
}

Status LocalRecyclerPods::DeletePod(const std::string& name_space, const std::string& name,
                                    const CallOptions& call) {
  const Key key = KeyOfPod(name_space, name);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Pod> pod, Reserve(key));
  Status deleted = OkStatus();
  // One that is not known here was left by another agent: its container is all there is of it.
  if (pod == nullptr || !ScrubsLikeTemplate(*pod)) {
    deleted = containers_.Remove(ContainerId(name_space, name), call);
  }
  if (deleted.ok()) deleted = volumes_.Remove(name_space, name, call);
  // What could not be removed is found by what is on the node, by whoever comes next.
  Release(key);
  return deleted;
}

Result<bool> LocalRecyclerPods::RemoveLeftOverMounts(const CallOptions& call) {
  ASSIGN_OR_RETURN(const auto left, volumes_.PodsWithPlaces(call));
  bool some_at_work = false;
  std::optional<Error> first;
  for (const auto& [name_space, name] : left) {
    const Key key = KeyOfPod(name_space, name);
    {
      MutexLock lock(mu_);
      if (!pods_.emplace(key, nullptr).second) {
        some_at_work = true;
        continue;
      }
    }
    const Status removed = volumes_.Remove(name_space, name, call);
    if (!removed.ok() && !first) first = removed.error();
    Release(key);
  }
  if (first) return *first;
  return !some_at_work;
}

RecyclerPodChange LocalRecyclerPods::RunPod(const Pod& pod, const CallOptions& call) {
  CallOptions bounded = call;
  if (pod.spec.active_deadline_seconds) {
    const Deadline own =
        Deadline::After(clock_, std::chrono::seconds(*pod.spec.active_deadline_seconds));
    if (own.when() < bounded.deadline.when()) bounded.deadline = own;
  }
  RecyclerPodChange change;
  change.kind = RecyclerPodChange::Kind::kModified;
  const Status status = RunToEnd(pod, bounded);
  change.phase = status.ok() ? PodPhase::kSucceeded : PodPhase::kFailed;
  if (!status.ok()) {
    change.message = status.error().message();
    if (status.error().code() == Code::kDeadlineExceeded) {
      // Kubelet's words for a pod that was ended for this.
      change.message =
          "Pod was active on the node longer than the specified deadline (" + change.message + ")";
    }
  }
  return change;
}

Status LocalRecyclerPods::RunToEnd(const Pod& pod, const CallOptions& call) {
  CallOptions effect = call;
  Places places;
  for (const PodVolume& volume : pod.spec.volumes) {
    ASSIGN_OR_RETURN(const SafePath place, ScrubbedPlace(volumes_.PlaceOf(pod, volume)));
    effect.domain = RecyclerVolumes::DomainOf(volume);  // it may lie on a filesystem that hangs
    RETURN_IF_ERROR(volumes_.MakePresent(pod, volume, effect));
    const StorageIdentity* approved = ApprovedOf(pod, volume, call);
    if (approved != nullptr && approved->type != FileType::kDirectory) {
      return Error::NotApplied(Code::kNotFound, "nothing to scrub: /" + place.relative +
                                                    " was no directory when it was looked at");
    }
    if (ScrubsLikeTemplate(pod)) {
      return ScrubDirectory(kernel_, place, effect,
                            approved == nullptr ? StorageObject() : approved->object);
    }
    // A container would delete what is mounted below, or, by removing the mount point, unmount it.
    RETURN_IF_ERROR(CheckNothingMountedBelow(kernel_, place, effect));
    ASSIGN_OR_RETURN(const FileInfo found, kernel_.Call(Stat{.path = place}, effect));
    if (found.type != FileType::kDirectory) {
      return Error::NotApplied(Code::kNotFound, "/" + place.relative + " is not a directory");
    }
    if (approved == nullptr) continue;
    // A container's runtime would resolve the path once more.
    ASSIGN_OR_RETURN(places[volume.name],
                     volumes_.BindApproved(pod, volume, approved->object, effect));
  }
  return RunContainer(pod, places, effect);
}

Status LocalRecyclerPods::RunContainer(const Pod& pod, const Places& places,
                                       const CallOptions& call) {
  ASSIGN_OR_RETURN(const ContainerEnd end, containers_.Run(RunOf(pod, places), call));
  if (end.exit_status == 0) return OkStatus();
  return Error::MaybeApplied(Code::kFailedPrecondition,
                             "container " + pod.spec.containers[0].name + " ended with status " +
                                 std::to_string(end.exit_status) +
                                 (end.output.empty() ? "" : ": " + end.output));
}

}  // namespace volumed
