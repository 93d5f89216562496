#include "plugins/named_locks.h"

#include <algorithm>
#include <chrono>

namespace volumed {

Result<std::unique_ptr<NamedLocks::Guard>> NamedLocks::Lock(const std::string& name,
                                                            const Clock& clock,
                                                            const CallOptions& call) {
  // A cancelled call is noticed so late at most: nothing wakes it.
  constexpr Duration kSlice = std::chrono::seconds(1);
  MutexLock lock(mu_);
  while (locked_.contains(name)) {
    if (call.cancel != nullptr && call.cancel->cancelled()) {
      return Error::NotApplied(Code::kCancelled,
                               "cancelled while waiting for another call of " + name);
    }
    const Duration left = call.deadline.Remaining(clock);
    if (left == Duration::zero()) {
      return Error::NotApplied(Code::kDeadlineExceeded,
                               "another call of " + name + " takes too long");
    }
    free_.WaitFor(mu_, std::min(left, kSlice));
  }
  locked_.insert(name);
  return std::make_unique<Guard>(*this, name);
}

void NamedLocks::Release(const std::string& name) {
  MutexLock lock(mu_);
  locked_.erase(name);
  free_.NotifyAll();
}

}  // namespace volumed
