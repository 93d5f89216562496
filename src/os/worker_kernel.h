// WorkerKernel: the Kernel that the agent uses. Every effect that may touch a filesystem runs in a
// volumed-worker process, which is killed at the deadline, or abandoned if it cannot be killed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/fault_domain.h"
#include "os/kept_mount_table.h"
#include "os/kernel.h"
#include "os/way_looks.h"
#include "os/worker_pool_stats.h"

namespace volumed {

class WorkerPool;

struct WorkerKernelOptions {
  std::string worker_path;  // the volumed-worker executable
  // See KeepKeysIn(), which may come later. Empty: an agent after this one does not know what its
  // workers are still at.
  std::string key_directory;
  // Binds from this directory's own filesystem use a private anchor. Empty: no anchor.
  std::string agent_root;
  std::vector<std::string> masked_features;  // names as in KernelFeatures
  // Isolated workers with a request, all domains together, and those of them that were killed and
  // live on because they hang in the kernel.
  int max_workers = 64;
  int max_per_domain = 4;  // of these, per domain
  // What HealthOf() answers may be different, or a lane has room again. On any thread, without a
  // lock held. Optional.
  std::function<void()> lanes_changed = {};
  MountWatch mount_watch = {};
};

// Lanes: calls without a domain have the lane that their request names (os/lane_kind.h): they go
// through the few fast workers, in the order of their arrival, or have the lane "walks", or "syncs"
// for a file that is synced, or that of their device. Calls with a domain get a worker each, up to
// the limits, else they wait; see base/lanes.h for what lanes that do not answer leave to others. A
// domain that is a path is the lane of the filesystem that the path lies on, or of its server
// (os/fault_domain.h): many paths on one dead mount are one lane. Below another mount than the
// root's, each request is preceded by one that looks for links on its way, unless one did that
// within the last second: a way with a link has a lane of its own. A call without a domain about a
// path that something was mounted over, below the agent's root, has that filesystem's lane, unless
// it is in memory.
//
// Keys: two calls with one key exclude each other across processes, also those of one agent: the
// later one fails with Aborted, not applied. So give keys to calls that change a volume and are
// serialised by their caller, and none to those that only read.
//
// What ruins data when it is half done (MustFinish) is never killed, whatever the options say.
//
// ListMounts and ProbeFeatures cannot hang and are answered in-process; ListMounts of a part
// of the table from the kept one, of the mount namespace of the thread that called Create.
//
// Outcomes besides those of the requests:
//   DeadlineExceeded, not applied:   no worker became free in time
//   Unavailable, not applied:        all workers of the lane are stuck
//   DeadlineExceeded, maybe applied: the worker was killed at the deadline
//   Cancelled, likewise in both cases
//   Unavailable, maybe applied:      the worker died with the request
//   Unavailable, not applied:        no worker could be started
//   Aborted, not applied:            another worker holds the key
//
// Threads: any. Blocks: Do() until the answer or the deadline (and at most 50 ms more, to see a
// killed worker die). The destructor requires that no call is running; it waits for no stuck
// worker.
class WorkerKernel final : public Kernel, public FaultDomains {
 public:
  // `clock` must be a real one: the pool waits on the kernel's monotonic time.
  static Result<std::unique_ptr<WorkerKernel>> Create(const WorkerKernelOptions& options,
                                                      const Clock& clock);
  ~WorkerKernel() override;

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override;
  bool TakesComposites() const override { return true; }
  // See FaultDomains. A domain that is no path is its own lane and name.
  FaultDomain Locate(const std::string& domain) override;
  LaneHealth HealthOf(const std::string& lane) const override;
  // Mounts at the directory and above it come first, then those at it and below, each as the kept
  // table last knew it: one at the directory itself comes twice.
  std::vector<KnownMount> MountsAround(const std::string& directory) const override;

  // From now on each worker that is started says in this directory, which exists, best on a tmpfs,
  // at which volumes it is (os/worker_keys.h). All workers that are idle now end; those that have a
  // request now go on, and are used again, without saying it. The directory must be the same for
  // every agent that uses the same root: what workers of the one before are still at is read now.
  // Blocks: for the directory. Errors: of the directory, not applied.
  Status KeepKeysIn(const std::string& directory);

  // From now on. Lower ones end nothing that runs; higher ones admit what waits at once.
  void SetLimits(int max_workers, int max_per_domain);

  // Its owner may take its events as they come; none need to.
  KeptMountTable& mount_table() { return *mounts_; }
  const KeptMountTable& mount_table() const { return *mounts_; }

  // Threads: any. Blocks: never, for both.
  WorkerPoolStats stats() const;
  std::vector<StuckOperation> stuck_operations() const;

 private:
  WorkerKernel(const Clock& clock, std::unique_ptr<WorkerPool> pool,
               std::unique_ptr<KeptMountTable> mounts, KernelFeatures features,
               std::string agent_root);

  Result<AnyAnswer> List(const ListMounts& request);
  // Empty: the path lies on the agent's own filesystem, or in memory.
  std::string LaneOfCovered(const AnyRequest& request) const;
  bool HasMountThatMayHang(const std::string& path) const;
  // Empty for the agent's own filesystem and for one in memory.
  std::string LaneOfMount(const MountEntry& mount) const;
  // A path with the links on the root's filesystem replaced, and the mounts around it; none if the
  // table cannot be read.
  struct Way {
    std::string text;
    std::vector<MountEntry> around;
  };
  Way Follow(const std::string& path);
  // Errors: not applied, of a filesystem that does not answer.
  Result<std::string> LaneOfWay(const std::string& path, const CallOptions& options);

  const Clock& clock_;
  WayLooks looks_;
  const std::unique_ptr<WorkerPool> pool_;
  const std::unique_ptr<KeptMountTable> mounts_;
  const KernelFeatures features_;
  const std::string agent_root_;  // empty: there is none
  const std::string own_lane_;    // of the filesystem that it lies on
};

}  // namespace volumed
