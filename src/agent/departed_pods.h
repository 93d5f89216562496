// DepartedPods: the names of the pods that were here since the agent's start and have left, so that
// who waits for the end of one is told that from a slip in its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "agent.pb.h"
#include "base/ids.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread. Blocks: never. The pods that left first are forgotten first.
class DepartedPods {
 public:
  static constexpr size_t kMost = 4096;

  // The manager outlives this object, which watches its pods from now on.
  explicit DepartedPods(VolumeManager& manager, size_t most = kMost);
  ~DepartedPods();
  DepartedPods(const DepartedPods&) = delete;
  DepartedPods& operator=(const DepartedPods&) = delete;

  // Whether a pod that is called so, as in FindPodUid() (agent/pod_lookup.h), has left.
  bool Knows(const v1::ObjectRef& ref, const NodeName& node) const;

 private:
  void Look(const PodUid& pod);

  VolumeManager& manager_;
  const size_t most_;
  uint64_t observer_ = 0;
  std::map<PodUid, PodName> here_;  // with their names
  std::deque<PodName> left_;        // the one that left last is the last
};

}  // namespace volumed
