// AdoptedPods: what a kubelet has left, in a root that volumed did not create (--adopt-root), of
// pods that no record knows: the uid that it gave to each static pod, by the directory of the pod's
// logs; and the pods that have data on the node's disk. Such a pod is held if no source has it:
// nothing of it is touched until an administrator says that it may go.
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

// The source that held pods are shown under. No configured source has this name: each has a colon,
// or is the agent's own.
inline constexpr char kAdoptedRootSource[] = "adopted-root";

// Whose logs a directory below /var/log/pods has: NAMESPACE_NAME_UID.
// Source: kubernetes pkg/kubelet/kuberuntime/helpers.go@v1.36.2 (BuildPodLogsDirectory).
struct PodLogs {
  ObjectKey pod;
  PodUid uid;
};
// nullopt for a name that is none of these.
std::optional<PodLogs> ParsePodLogsDirectory(std::string_view name);

// A pod of which no source is known, and that has data on the node's disk.
struct AdoptedPod {
  ObjectKey pod;                       // its name is empty if no logs tell it
  std::vector<std::string> disk_data;  // its volumes that have data
};

struct FoundAdoptedPods {
  std::vector<PodLogs> logs;
  std::map<PodUid, AdoptedPod> with_data;
};

struct AdoptedPodsQuestion {
  Kernel& kernel;
  const Clock& clock;
  const KubeletPaths& paths;
  Logger& log;
  const std::string& logs_directory;  // "/var/log/pods"
  Duration call_timeout;
};

// `directories` and `mounted` are the volumes of pods without a record. Threads: any. Blocks: on
// the kernel. Errors: none; a volume that cannot be looked into counts as one with data, and logs
// that cannot be read as none, which is logged.
FoundAdoptedPods FindAdoptedPods(const AdoptedPodsQuestion& question,
                                 const std::vector<KubeletPaths::PodVolume>& directories,
                                 const std::vector<KubeletPaths::PodVolume>& mounted);

// Threads: the control thread. Blocks: never.
class AdoptedPods {
 public:
  // `without_record`: the pods that have a directory and no record.
  void Restore(FoundAdoptedPods found, const std::set<PodUid>& without_record);

  // The uid that the kubelet gave to this static pod; "" if it left no directory of it, or if logs
  // of more than one pod have the name. Each is given once: the next pod of the name is another.
  std::string TakeUid(const ObjectKey& pod);

  bool IsHeld(const PodUid& pod) const { return held_.contains(pod); }
  const std::map<PodUid, AdoptedPod>& Held() const { return held_; }
  // A source has the pod, or a command has ended it: it goes as any other from now on.
  void Release(const PodUid& pod) { held_.erase(pod); }
  // An administrator's word that no pod has to be held. Returns those that were.
  std::vector<PodUid> Accept();

 private:
  std::map<ObjectKey, std::string> uids_;
  std::map<PodUid, AdoptedPod> held_;
};

}  // namespace volumed
