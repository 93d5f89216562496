// LocalRecyclerPods: recycler pods on this node. The one that only scrubs, as the template of
// recycler_pod_template.h does, is done by Kernel effects; any other is run by a container runner.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "recycler/container_runner.h"
#include "recycler/recycler.h"
#include "recycler/recycler_volumes.h"

namespace volumed {

// A pod runs while its watch is asked for what comes next, on the thread that asks: who does not
// wait for a recycler pod has none. What it may take is its active deadline, or the call's if that
// is earlier.
//
// Images are not pulled: a pod of another image than busybox (or the template's) is refused, and
// named. Pods may have hostPath and NFS volumes only, and one container.
//
// Threads: any. Blocks: Next, for the pod's whole run.
class LocalRecyclerPods final : public RecyclerPodRunner {
 public:
  // All outlive this. `mounts` is where NFS volumes are mounted; see RecyclerVolumes.
  LocalRecyclerPods(Kernel& kernel, ContainerRunner& containers, const Clock& clock,
                    std::string mounts = "");
  ~LocalRecyclerPods() override;

  Result<std::unique_ptr<RecyclerPodWatch>> WatchPod(const std::string& name_space,
                                                     const std::string& name) override;
  // Errors: AlreadyExists, also for a container that an agent before this one left;
  // InvalidArgument, Unimplemented, not applied, for a pod that cannot be run here; those of
  // ContainerRunner::Exists for one that needs a container.
  Status CreatePod(const Pod& pod, const CallOptions& call) override EXCLUDES(mu_);
  // Removes its container, and what was mounted for it. Errors: Unavailable, not applied, while
  // somebody else takes away what such a pod left; those of ContainerRunner and RecyclerVolumes.
  Status DeletePod(const std::string& name_space, const std::string& name,
                   const CallOptions& call) override EXCLUDES(mu_);

  // Unmounts what is mounted for recycler pods that are not here: an agent that ended left it, or
  // an unmount failed. Removes its empty directory, and nothing else. Meanwhile no pod of such a
  // name can be created. False: some pods are at work, and what is theirs is left alone. Blocks: up
  // to a minute for each mount. Errors: the first of those of RecyclerVolumes::Remove, after all
  // were tried.
  Result<bool> RemoveLeftOverMounts(const CallOptions& call) EXCLUDES(mu_);

 private:
  class Watch;
  using Key = std::string;  // namespace/name

  // The pod's whole run; its end as a change.
  RecyclerPodChange RunPod(const Pod& pod, const CallOptions& call);
  Status RunToEnd(const Pod& pod, const CallOptions& call);
  Status CheckCanRun(const Pod& pod) const;
  // `places`: of volumes that are bound elsewhere for the run, by their names.
  using Places = std::map<std::string, std::string>;
  ContainerRun RunOf(const Pod& pod, const Places& places) const;
  Status RunContainer(const Pod& pod, const Places& places, const CallOptions& call);
  // The pod's name is the caller's until Release, and nobody else takes away what is left of it.
  // Unavailable, not applied, while it is another's.
  Result<std::shared_ptr<const Pod>> Reserve(const Key& key) EXCLUDES(mu_);
  void Release(const Key& key) EXCLUDES(mu_);
  // Null when it is not there (any more).
  std::shared_ptr<const Pod> Find(const Key& key) const EXCLUDES(mu_);

  Kernel& kernel_;
  ContainerRunner& containers_;
  const Clock& clock_;
  RecyclerVolumes volumes_;
  mutable Mutex mu_;
  // Null: reserved.
  std::map<Key, std::shared_ptr<const Pod>> pods_ GUARDED_BY(mu_);
};

}  // namespace volumed
