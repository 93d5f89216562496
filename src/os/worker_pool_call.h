// A call of a WorkerPool, from its admission to its answer. Only the pool's own source files
// include this.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "os/kernel.h"
#include "os/kernel_requests.h"
#include "os/worker_pool.h"

namespace volumed {

// All keys of a call, whose worker takes them together.
inline std::vector<std::string> KeysOf(const std::string& key, std::vector<std::string> more) {
  if (!key.empty()) more.push_back(key);
  return more;
}

struct WorkerPool::Waiter {
  Call& call;
  CondVar admitted_or_not;
  bool admitted = false;
};

struct WorkerPool::Call {
  Call(const AnyRequest& any_request, const CallOptions& call_options)
      : request(any_request), options(call_options) {}

  bool cancelled() const { return cancel_seen.load(); }
  std::vector<std::string> Keys() const { return KeysOf(options.key, options.more_keys); }
  // "Usage /a/b (pid 4711)"
  std::string About(pid_t pid) const { return Name() + " (pid " + std::to_string(pid) + ")"; }
  // "Usage /a/b"
  std::string Name() const {
    return std::string(RequestName(request)) + " " + RequestPath(request);
  }

  const AnyRequest& request;
  const CallOptions& options;
  // Set by the token's hook. The token itself is not asked: its lock is held while the hook takes
  // ours.
  std::atomic<bool> cancel_seen{false};
  Descriptor cancel_event;  // readable once cancelled; only with a token
  TimePoint sent_at;
  bool lost = false;  // its worker was killed and left to the reaper
};

}  // namespace volumed
