// Recycling: a released volume is scrubbed by a pod that runs to its end, and can then be given to
// another claim.
// Source: kubernetes pkg/volume/util/recyclerclient/recycler_client.go@v1.36.2.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Events about the recycling, for the PersistentVolume. Called on the thread that recycles.
using RecycleEventRecorder = std::function<void(EventType type, const std::string& message)>;

// Something that happened to a recycler pod.
struct RecyclerPodChange {
  enum class Kind {
    kAdded,
    kModified,
    kDeleted,
    kError,  // the watch itself is broken
    kEvent,  // an event about the pod
  };
  Kind kind = Kind::kAdded;
  PodPhase phase = PodPhase::kUnknown;        // kAdded, kModified
  EventType event_type = EventType::kNormal;  // kEvent
  std::string message;                        // status.message of the pod, or the event's
};

// Threads: one at a time.
class RecyclerPodWatch {
 public:
  virtual ~RecyclerPodWatch() = default;
  // The next change; nullopt when there will be no more. Blocks: until there is one, or the
  // deadline.
  virtual Result<std::optional<RecyclerPodChange>> Next(const CallOptions& call) = 0;
};

// Whoever can run a recycler pod: this node (LocalRecyclerPods), or a cluster.
// Threads: any. Blocks: until the call's deadline.
class RecyclerPodRunner {
 public:
  virtual ~RecyclerPodRunner() = default;
  // The watch is made before the pod, so that nothing of it is missed. It does not outlive the
  // runner.
  virtual Result<std::unique_ptr<RecyclerPodWatch>> WatchPod(const std::string& name_space,
                                                             const std::string& name) = 0;
  // Errors: AlreadyExists if a pod of this name is there.
  virtual Status CreatePod(const Pod& pod, const CallOptions& call) = 0;
  // A pod that is not there is success.
  virtual Status DeletePod(const std::string& name_space, const std::string& name,
                           const CallOptions& call) = 0;
};

// Runs `pod` as "recycler-for-<pv_name>" and waits for its end; it is deleted in any case. How long
// it may run is its own active deadline. Threads: any. Blocks: until the pod has ended or the
// call's deadline.
// Errors: maybe applied once the pod may have run (part of the content may be gone; recycling again
// is always right). A pod of this name that is there is deleted, and the error is Aborted. The
// texts are kubelet's: "old recycler pod found, will retry later", "unexpected error creating
// recycler pod: ...", "failed to recycle volume: ...", "failed to delete recycler pod: ...".
Status RecycleVolumeByWatchingPodUntilCompletion(const std::string& pv_name, Pod pod,
                                                 RecyclerPodRunner& runner,
                                                 const RecycleEventRecorder& recorder,
                                                 const CallOptions& call);

}  // namespace volumed
