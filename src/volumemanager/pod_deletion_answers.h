// PodDeletionAnswers: the callers that wait until a command to delete a pod is durable.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/scheduler.h"

namespace volumed {

// Answers a command later, on the control thread. Threads: the control thread. Blocks: never.
void PostAnswer(Scheduler& scheduler, const std::function<void(Status)>& done,
                const Status& status);

// Threads: the control thread. Blocks: never. The scheduler outlives this object. Who still waits
// when this object is destroyed gets no answer.
class PodDeletionAnswers {
 public:
  using Done = std::function<void(Status)>;

  explicit PodDeletionAnswers(Scheduler& scheduler) : scheduler_(scheduler) {}

  // `done` is called once, by the next Answer() for this pod, and in a task of its own. A pod may
  // have several that wait.
  void Wait(const PodUid& pod, Done done);
  // Answers all that wait for this pod. An error becomes one that says that the pod leaves but may
  // come back, maybe applied. Has no effect if nobody waits.
  void Answer(const PodUid& pod, const Status& written);

 private:
  Scheduler& scheduler_;
  std::map<PodUid, std::vector<Done>> waiting_;
};

}  // namespace volumed
