// Consumers: the processes and cgroups that use a pod's mounts. A container has its own copy of
// the mounts, so an unmount on the host says nothing about it: a pod leaves when its consumers are
// gone.
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
#include "volumemanager/consumer_watch.h"
#include "volumemanager/record_writer.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Holds are recorded, so that a new agent knows them; a hold of another boot, or of a pid that
// another process has got since, is dropped.
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

  // `released` is called when a pod has lost a consumer. Everything in `parts` outlives this.
  Consumers(Parts parts, BootId boot_id, std::function<void(const PodUid&)> released);
  ~Consumers();
  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;

  // Takes over a record found at start.
  void Restore(const HoldRecord& hold);

  // Counts at once; `done` when the record is durable. Errors: InvalidArgument unless exactly one
  // of pid and cgroup is set; those of ConsumerWatch; those of the store, after which it does not
  // count.
  void Hold(const HoldRequest& request, std::function<void(Status)> done);
  // NotFound when there is no such hold.
  void Release(const HoldRequest& request, std::function<void(Status)> done);
  // Forgets all holds of a pod that is gone.
  void ForgetPod(const PodUid& pod);

  bool HasConsumers(const PodUid& pod) const;
  // A consumer is or was known, so that its end, and not time, decides when the pod may leave.
  bool EverHadConsumers(const PodUid& pod) const;
  std::vector<std::string> HeldBy(const PodUid& pod) const;

 private:
  struct Entry {
    HoldRecord record;
    std::string label;
    uint64_t watch_id = 0;
  };
  struct PodConsumers {
    std::map<std::string, Entry> by_key;  // key of the record
  };

  void Gone(const PodUid& pod, const std::string& key);
  void Drop(const PodUid& pod, const std::string& key);
  Result<Entry> StartWatch(const HoldRecord& hold, const std::string& key);
  void RemoveRecord(const std::string& key, std::function<void(Status)> done);

  Parts parts_;
  const BootId boot_id_;
  const std::function<void(const PodUid&)> released_;
  uint64_t next_watch_id_ = 1;
  std::map<PodUid, PodConsumers> pods_;  // an entry without holds: there was one once
};

}  // namespace volumed
