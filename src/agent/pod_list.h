// PodList: the answer to GetPods, made by and by: whoever lists ten thousand pods keeps nobody from
// the control thread meanwhile. Each pod is as it was at one moment, but not all at the same.
#pragma once

#include <cstddef>
#include <vector>

#include "agent.pb.h"
#include "base/clock.h"
#include "base/ids.h"
#include "volumehost/event_log.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class PodList {
 public:
  struct Parts {  // all outlive this
    const VolumeManager& manager;
    const EventLog& events;
    const Clock& clock;
    NodeName node;
  };

  // Which pods there are is asked now, once. `response` outlives this.
  PodList(Parts parts, v1::GetPodsRequest request, v1::GetPodsResponse* response);

  // Adds the next pods to the response, for a few milliseconds at most. True: these were the last.
  bool Continue();

 private:
  void Add(const PodName& pod);

  const Parts parts_;
  const v1::GetPodsRequest request_;
  v1::GetPodsResponse* const response_;
  std::vector<PodName> names_;  // those that were asked for
  size_t next_ = 0;
};

}  // namespace volumed
