#include "volumemanager/pod_deletion_answers.h"

#include <utility>

namespace volumed {

void PostAnswer(Scheduler& scheduler, const std::function<void(Status)>& done,
                const Status& status) {
  scheduler.Post([done, status] { done(status); });
}

void PodDeletionAnswers::Wait(const PodUid& pod, Done done) {
  waiting_[pod].push_back(std::move(done));
}

void PodDeletionAnswers::Answer(const PodUid& pod, const Status& written) {
  auto waiting = waiting_.extract(pod);
  if (waiting.empty()) return;
  Status answer = written;
  // This holds also for a pod that no source has any more: it is still on record, and would be
  // held.
  if (!written.ok()) {
    const Error& cause = written.error();
    answer = Error::FromParts(cause.code(), Outcome::kMaybeApplied, cause.sys_errno(),
                              "pod " + pod.str() +
                                  " leaves, but may come back at the next start: the command "
                                  "could not be recorded: " +
                                  cause.message());
  }
  for (const Done& done : waiting.mapped()) PostAnswer(scheduler_, done, answer);
}

}  // namespace volumed
