#include "recycler/recycler.h"

#include <utility>

namespace volumed {
namespace {

Error Failed(std::string message) {
  return Error::MaybeApplied(Code::kFailedPrecondition, std::move(message));
}

// Whether the pod has ended well; nothing while it goes on.
std::optional<Status> EndOf(const RecyclerPodChange& change) {
  using Kind = RecyclerPodChange::Kind;
  switch (change.kind) {
    case Kind::kAdded:
    case Kind::kModified:
      if (change.phase == PodPhase::kSucceeded) return OkStatus();
      if (change.phase == PodPhase::kFailed) {
        return Failed(change.message.empty() ? "pod failed, pod.Status.Message unknown"
                                             : change.message);
      }
      return std::nullopt;
    case Kind::kDeleted:
      return Failed("recycler pod was deleted");
    case Kind::kError:
      return Failed("recycler pod watcher failed");
    case Kind::kEvent:
      return std::nullopt;
  }
  return Failed("recycler pod watcher told something unknown");
}

Status WaitForPod(const Pod& pod, RecyclerPodWatch& watch, const RecycleEventRecorder& recorder,
                  const CallOptions& call) {
  while (true) {
    Result<std::optional<RecyclerPodChange>> next = watch.Next(call);
    if (!next.ok()) return next.error().AsMaybeApplied();
    if (!next->has_value()) {
      return Failed("recycler pod \"" + pod.metadata.name + "\" watch channel had been closed");
    }
    const RecyclerPodChange& change = **next;
    if (change.kind == RecyclerPodChange::Kind::kEvent && recorder) {
      recorder(change.event_type, change.message);
    }
    if (const std::optional<Status> end = EndOf(change)) return *end;
  }
}

}  // namespace

Status RecycleVolumeByWatchingPodUntilCompletion(const std::string& pv_name, Pod pod,
                                                 RecyclerPodRunner& runner,
                                                 const RecycleEventRecorder& recorder,
                                                 const CallOptions& call) {
  // The volume's name makes the pod's: a run that another agent began is found by it.
  pod.metadata.name = "recycler-for-" + pv_name;
  pod.metadata.generate_name.clear();
  const std::string& name_space = pod.metadata.name_space;
  const std::string& name = pod.metadata.name;
  ASSIGN_OR_RETURN(const std::unique_ptr<RecyclerPodWatch> watch,
                   runner.WatchPod(name_space, name));
  if (const Status created = runner.CreatePod(pod, call); !created.ok()) {
    if (created.error().code() != Code::kAlreadyExists) {
      return created.error().With("unexpected error creating recycler pod");
    }
    // Left by an earlier run, or forged to keep us from recycling: either way it has to go.
    if (const Status deleted = runner.DeletePod(name_space, name, call); !deleted.ok()) {
      return deleted.error().With("failed to delete old recycler pod " + name_space + "/" + name);
    }
    return Error::MaybeApplied(Code::kAborted, "old recycler pod found, will retry later");
  }
  const Status recycled = WaitForPod(pod, *watch, recorder, call);
  const Status deleted = runner.DeletePod(name_space, name, call);
  // Why it failed is worth more than what is left; the next run finds the pod.
  if (!recycled.ok()) return recycled.error().With("failed to recycle volume");
  if (!deleted.ok()) return deleted.error().AsMaybeApplied().With("failed to delete recycler pod");
  return OkStatus();
}

}  // namespace volumed
