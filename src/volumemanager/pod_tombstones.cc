#include "volumemanager/pod_tombstones.h"

#include "operation/volume_record.h"

namespace volumed {

void PodTombstones::Keep(const PodUid& pod, const ActualPod& last) {
  tombstones_[pod] = {last.leaving->since_unix_ms,
                      last.leaving->evicted ? last.leaving->reason : "", last.identity,
                      last.recorded_json};
  Write(pod);
}

void PodTombstones::Write(const PodUid& pod) {
  const PodTombstone& tombstone = tombstones_.at(pod);
  PodRecord record;
  record.uid = pod;
  record.ns = tombstone.identity.name_space;
  record.name = tombstone.identity.name;
  record.source = tombstone.identity.source;
  record.file = tombstone.identity.file;
  record.terminating = true;
  record.terminating_since_unix_ms = tombstone.since_unix_ms;
  record.reason = tombstone.evicted;
  // The row has the pod, since its source has it too, and must be able to say so if its file is in
  // disorder.
  record.pod_json = tombstone.pod_json;
  parts_.records.Put(EncodeRecord(record), kPodRecordDurability,
                     [parts = parts_, pod](const Status& written) {
                       parts.answers.Answer(pod, written);
                       if (written.ok()) return;
                       parts.log.Warning("a pod deleted by command may come back at the next start",
                                         {{"pod", pod}, {"error", written.error()}});
                     });
}

void PodTombstones::SetIdentity(const PodUid& pod, const PodIdentity& identity) {
  PodTombstone& tombstone = tombstones_.at(pod);
  if (tombstone.identity == identity) return;
  tombstone.identity = identity;
  Write(pod);
}

PodIdentity PodTombstones::Drop(const PodUid& pod) {
  PodIdentity identity = tombstones_.at(pod).identity;
  tombstones_.erase(pod);
  parts_.answers.Answer(pod, OkStatus());  // it has left its sources
  parts_.records.Remove(kPodRecordKind, pod.str(), kPodRecordDurability, nullptr);
  return identity;
}

const PodTombstone* PodTombstones::Find(const PodUid& pod) const {
  const auto found = tombstones_.find(pod);
  return found == tombstones_.end() ? nullptr : &found->second;
}

}  // namespace volumed
