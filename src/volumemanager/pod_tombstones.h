// PodTombstones: the records of pods that were deleted by command and that a source still has, or
// may have, so that neither this agent nor the next one makes their volumes again.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/ids.h"
#include "base/log.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/pod_deletion_answers.h"
#include "volumemanager/record_writer.h"

namespace volumed {

// A tombstone keeps of such a pod what its record has to say.
struct PodTombstone {
  // When the pod began to leave.
  int64_t since_unix_ms = 0;
  std::string evicted;  // why; "" if a person has deleted the pod
  PodIdentity identity;
  // The pod as its record had it (EncodeObjectJson); may be empty.
  std::string pod_json;
};

// Threads: the control thread. Blocks: never; rows are written on other threads. Errors: a row that
// could not be written is told to those who wait, and is logged; it is written again by the next
// Write().
class PodTombstones {
 public:
  // All members outlive this object.
  struct Parts {
    RecordWriter& records;
    PodDeletionAnswers& answers;  // answered when a row is written, or could not be
    Logger& log;
  };

  explicit PodTombstones(Parts parts) : parts_(parts) {}

  // `last` is the pod's last actual state. REQUIRES: it was leaving.
  void Keep(const PodUid& pod, const ActualPod& last);
  // Writes the pod's row again. REQUIRES: Find(pod).
  void Write(const PodUid& pod);
  // The pod has this name, source and file now. REQUIRES: Find(pod).
  void SetIdentity(const PodUid& pod, const PodIdentity& identity);
  // The pod has left its sources: removes its row, and answers those who wait. Returns who the pod
  // was. REQUIRES: Find(pod).
  PodIdentity Drop(const PodUid& pod);

  // Null if the pod has none. The pointer is valid until the next change.
  const PodTombstone* Find(const PodUid& pod) const;
  const std::map<PodUid, PodTombstone>& all() const { return tombstones_; }

 private:
  const Parts parts_;
  std::map<PodUid, PodTombstone> tombstones_;
};

}  // namespace volumed
