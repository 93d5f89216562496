// Consumers: the processes and cgroups that use a pod's mounts. A container has its own copies of
// the mounts, so an unmount on the host does not show that they are free: a pod leaves only when
// its consumers are gone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

struct HoldRequest {
  PodUid pod;
  int64_t pid = 0;     // exactly one of the two is set
  std::string cgroup;  // absolute path below the cgroup filesystem, or of a directory in it
};

// Holds are recorded, so that a new agent knows them. A hold is dropped if the node was booted
// since, or if another process has the pid.
//
// Threads: the control thread. Blocks: never.
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

  // Takes over a record found at start.
  void Restore(const HoldRecord& hold);

  // The hold counts at once; `done` is called when the record is durable. Errors: InvalidArgument
  // unless exactly one of pid and cgroup is set; those of ConsumerWatch; those of the store, after
  // which the hold does not count.
  void Hold(const HoldRequest& request, std::function<void(Status)> done);
  // Errors: NotFound if there is no such hold.
  void Release(const HoldRequest& request, std::function<void(Status)> done);
  // Forgets all holds of a pod that is gone.
  void ForgetPod(const PodUid& pod);

  bool HasConsumers(const PodUid& pod) const;
  // Whether a consumer is or was known; if so, its end, and not a time, decides when the pod may
  // leave.
  bool EverHadConsumers(const PodUid& pod) const;
  std::vector<std::string> HeldBy(const PodUid& pod) const;

 private:
  struct Entry {
    HoldRecord record;
    std::string label;
    uint64_t watch_id = 0;
  };
  struct PodConsumers {
    std::map<std::string, Entry> by_key;  // by the key of the record
  };

  void Gone(const PodUid& pod, const std::string& key);
  void Drop(const PodUid& pod, const std::string& key);
  Result<Entry> StartWatch(const HoldRecord& hold, const std::string& key);
  void RemoveRecord(const std::string& key, std::function<void(Status)> done);

  Parts parts_;
  const BootId boot_id_;
  const std::function<void(const PodUid&)> released_;
  uint64_t next_watch_id_ = 1;
  std::map<PodUid, PodConsumers> pods_;  // an entry without holds says that there was one
};

}  // namespace volumed
