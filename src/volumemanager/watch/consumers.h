// Consumers: the processes and cgroups that use a pod's mounts. A container has its own copies of
// the mounts, so an unmount on the host does not show that they are free: a pod leaves only when
// its consumers are gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "operation/volume_record.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/watch/consumer_watch.h"

namespace volumed {

// Names a consumer of a pod.
struct HoldRequest {
  PodUid pod;
  int64_t pid = 0;     // exactly one of the two is set
  std::string cgroup;  // absolute path below the cgroup filesystem, or of a directory in it
};

// Holds are recorded, so that a new agent knows them. A hold is dropped if the node was booted
// since, or if another process has the pid. One that a start finds on record and cannot watch, for
// another reason than that its consumer is gone, stays until it is released by command: better a
// pod that waits than one that is unmounted under its process.
//
// Threads: the control thread. Blocks: never; `done` is called once, later, on the control thread.
class Consumers {
 public:
  struct Parts {
    Scheduler& scheduler;
    RecordWriter& records;
    ConsumerWatch& watch;
    Logger& log;
  };

  // `released` is called when a pod has lost a consumer. All members of `parts` outlive this
  // object.
  Consumers(Parts parts, BootId boot_id, std::function<void(const PodUid&)> released);
  ~Consumers();
  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;

  // Takes over a record found at start. If its consumer is gone, the row is removed;
  // EverHadConsumers() is true all the same.
  void Restore(const HoldRecord& hold);
  // A hold of the pod may have been on record, and the start could not find it; `why` is for
  // people. The pod counts as held until this agent ends: nobody knows whose end to wait for.
  void MayBeHeld(const PodUid& pod, const std::string& why);

  // The hold counts at once; `done` is called when the record is durable. A hold that exists is
  // success once its own record is durable. Errors, not applied: InvalidArgument unless exactly one
  // of pid and cgroup is set; those of ConsumerWatch; those of the store, after which the hold does
  // not count. Whether the pod is known is not checked here.
  void Hold(const HoldRequest& request, std::function<void(Status)> done);
  // The hold ends at once, whether its row can be removed or not. Errors: InvalidArgument, not
  // applied, as for Hold(); NotFound, not applied, if there is no such hold; those of the store:
  // this agent knows the hold no more, but the next one finds it on record, and takes it over if
  // its consumer still lives.
  void Release(const HoldRequest& request, std::function<void(Status)> done);
  // Forgets all holds of a pod that is gone. Their rows are removed; `released` is not called.
  void ForgetPod(const PodUid& pod);

  // Whether a hold of the pod counts now.
  bool HasConsumers(const PodUid& pod) const;
  // Whether a consumer is or was known; if so, its end, and not a time, decides when the pod may
  // leave. One whose hold was refused, or could not be recorded, was never known.
  bool EverHadConsumers(const PodUid& pod) const;
  // For people: "pid 4711 (runc)", "cgroup /kubepods/pod1".
  std::vector<std::string> HeldBy(const PodUid& pod) const;

 private:
  // Who is answered when the record is durable.
  using Waiting = std::vector<std::function<void(Status)>>;
  struct Entry {
    HoldRecord record;
    std::string label;
    uint64_t watch_id = 0;
    std::shared_ptr<Waiting> waiting = nullptr;  // null: the record is durable
  };
  struct PodConsumers {
    std::map<std::string, Entry> by_key;  // by the key of the record
    bool had_one = false;                 // also if there is none any more
    std::string may_have;                 // as MayBeHeld() was told; empty: it was not
  };

  // Null if there is no such hold. The pointer is valid until the next change.
  Entry* Find(const PodUid& pod, const std::string& key);
  void Written(const PodUid& pod, const std::string& key, uint64_t watch_id, bool ok);
  void Gone(const PodUid& pod, const std::string& key);
  void Drop(const PodUid& pod, const std::string& key);
  Result<Entry> StartWatch(const HoldRecord& hold, const std::string& key);
  void RemoveRecord(const std::string& key, std::function<void(Status)> done);

  Parts parts_;
  const BootId boot_id_;
  const std::function<void(const PodUid&)> released_;
  uint64_t next_watch_id_ = 1;
  std::map<PodUid, PodConsumers> pods_;
};

}  // namespace volumed
