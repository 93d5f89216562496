// WorkerPoolStats: what the pool of workers did, as values; the agent turns them into metrics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace volumed {

// Totals since the pool was made, and figures of now. Each is right by itself; they are taken
// together under one lock.
struct WorkerPoolStats {
  uint64_t requests = 0;           // handed to a worker
  uint64_t spawned = 0;            // processes started
  uint64_t killed = 0;             // SIGKILL sent at a deadline or after a cancel
  uint64_t died = 0;               // ended by themselves while they had a request
  uint64_t deadline_exceeded = 0;  // while a worker had the request, or while it waited for one
  uint64_t cancelled = 0;
  uint64_t stuck_total = 0;  // killed and not dead 2 s later, ever
  int stuck_now = 0;         // of these those that live, and busy ones of agents before this one
  int slow_now = 0;          // must-finish requests past their deadline
  int busy = 0;              // workers with a request
  int idle = 0;              // warm workers without one
  int waiting = 0;           // calls that wait for a worker
};

// A killed worker that does not die (uninterruptible sleep). Its keys stay held until it does.
struct StuckOperation {
  std::string key;
  std::vector<std::string> more_keys;
  std::string domain;
  std::string request;  // RequestName
  std::string path;     // RequestPath
  int pid = 0;
  TimePoint since;  // when its request was sent

  // Whether `of` is one of its keys.
  bool Concerns(const std::string& of) const {
    return of == key || std::find(more_keys.begin(), more_keys.end(), of) != more_keys.end();
  }
};

}  // namespace volumed
