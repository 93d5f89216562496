// PodList: makes the answer to GetPods in small steps, so that a list of ten thousand pods does not
// keep the control thread from other work. Each pod is as it was at one moment, but different pods
// may be as of different moments.
#pragma once

#include <cstddef>
#include <vector>

#include "agent.pb.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
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

  // The last pod of the page before the one that is asked for; an empty name for the first page.
  // That pod need not exist any more. Errors, not applied: Unavailable before the records of the
  // last run are loaded, since the pods that they have would look as if they were gone;
  // InvalidArgument: those of agent/page_token.h, and for a page of a list that asked for other
  // pods.
  static Result<PodName> LastBefore(const Parts& parts, const v1::GetPodsRequest& request);

  // Takes the names of the pods that exist now, and sets the response's `next_page` if there are
  // more than the page may have. A page size of 0 asks for all. `response` outlives this object.
  PodList(Parts parts, v1::GetPodsRequest request, const PodName& last_before,
          v1::GetPodsResponse* response);

  // Adds the next pods to the response, 100 at most and for a few milliseconds at most. A pod that
  // has gone since its name was taken is left out. Returns true if these were the last.
  bool Continue();

 private:
  void Add(const PodName& pod);

  const Parts parts_;
  const v1::GetPodsRequest request_;
  v1::GetPodsResponse* const response_;
  std::vector<PodName> names_;  // those that the request asks for
  size_t next_ = 0;
};

}  // namespace volumed
