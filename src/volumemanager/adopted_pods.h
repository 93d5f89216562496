// AdoptedPods: pods without a record that a kubelet has left in a root which volumed did not create
// (--adopt-root). For static pods it gives the uid that the kubelet gave them, which it finds in
// the names of the pods' log directories. A pod that has data on the node's disk and that no
// source has awaits acceptance: nothing of it is touched until an administrator allows it. It is
// shown as "Held". So does one that has something mounted, if no source has any pod at all, for
// then the objects are lost rather than the pods; and if a source is in disorder, for it may have
// the pod.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// The source under which such pods are shown. No configured source has this name: theirs have a
// colon, or are the agent's own.
inline constexpr char kAdoptedRootSource[] = "adopted-root";

// The pod to which a directory below /var/log/pods belongs: NAMESPACE_NAME_UID.
// Source: kubernetes pkg/kubelet/kuberuntime/helpers.go@v1.36.2 (BuildPodLogsDirectory).
struct PodLogs {
  ObjectKey pod;
  PodUid uid;
};
// nullopt if the name has another form.
std::optional<PodLogs> ParsePodLogsDirectory(std::string_view name);

// A pod of which no source is known and that has data on the node's disk, or volumes mounted.
struct AdoptedPod {
  ObjectKey pod;                          // without a name if no logs tell it
  std::vector<std::string> disk_data;     // names of its volumes that have data
  std::vector<std::string> mounted = {};  // of those that are mounted, or have a device's link
};

// What a kubelet has left. Only volumes count as data whose content lies on the node's disk and
// cannot be made again: emptyDir and gitRepo volumes on which nothing is mounted.
struct FoundAdoptedPods {
  // The logs are in the order in which the directory lists them; a pod that is gone may have some
  // too.
  std::vector<PodLogs> logs;
  std::map<PodUid, AdoptedPod> with_data;
  std::map<PodUid, AdoptedPod> with_mounts = {};
};

// Everything to which it refers outlives the call. `call_timeout` is for each directory that is
// read.
struct AdoptedPodsQuestion {
  Kernel& kernel;
  const Clock& clock;
  const KubeletPaths& paths;
  Logger& log;
  const std::string& logs_directory;  // "/var/log/pods"
  Duration call_timeout;
};

// `directories` and `mounted` are the volumes of pods without a record. Threads: any. Blocks: on
// the kernel. Errors: none. A volume that cannot be looked into counts as one with data; logs that
// cannot be read count as none, and that is logged.
FoundAdoptedPods FindAdoptedPods(const AdoptedPodsQuestion& question,
                                 const std::vector<KubeletPaths::PodVolume>& directories,
                                 const std::vector<KubeletPaths::PodVolume>& mounted);

// Threads: the control thread. Blocks: never.
class AdoptedPods {
 public:
  // `without_record` names the pods that have a directory and no record.
  void Restore(FoundAdoptedPods found, const std::set<PodUid>& without_record);

  // The uid that the kubelet gave to this static pod; "" if no directory of the pod is left, or if
  // logs of more than one pod have the name. Each uid is given once: the next pod of the name is
  // another one.
  std::string TakeUid(const ObjectKey& pod);

  bool AwaitsAcceptance(const PodUid& pod) const { return awaiting_.contains(pod); }
  const std::map<PodUid, AdoptedPod>& AwaitingAcceptance() const { return awaiting_; }
  // A source has the pod, or a command has ended it: from now on it goes like any other.
  void Release(const PodUid& pod) {
    awaiting_.erase(pod);
    with_mounts_.erase(pod);
  }
  // Every source has delivered. If pods may be unknown all the same, for this reason, those with
  // mounts await acceptance too; empty: none may. Only the first call after Restore() has an
  // effect. Returns how many more are held.
  size_t SourcesHaveDelivered(const std::string& why_unknown);
  // The reason of those that have no data on disk.
  const std::string& why_held() const { return why_held_; }
  // The administrator's word that every pod may go. Returns the pods that awaited it. The caller
  // looks at each of them again.
  std::vector<PodUid> Accept();

 private:
  std::map<ObjectKey, std::string> uids_;
  std::map<PodUid, AdoptedPod> awaiting_;
  std::map<PodUid, AdoptedPod> with_mounts_;  // until it is known whether all pods are known
  std::string why_held_;
};

}  // namespace volumed
