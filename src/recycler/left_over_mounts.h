// LeftOverMounts: mounts of recycler pods that nobody will take away, as their volume is gone, or
// as no agent that knew of them is left. They are unmounted in the background.
#pragma once

#include "base/alive_guard.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "recycler/local_recycler_pods.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class LeftOverMounts {
 public:
  // All outlive this.
  LeftOverMounts(Scheduler& scheduler, LocalRecyclerPods& pods, Logger& log)
      : scheduler_(scheduler), pods_(pods), log_(log) {}
  LeftOverMounts(const LeftOverMounts&) = delete;
  LeftOverMounts& operator=(const LeftOverMounts&) = delete;

  // To be called at start, and when a volume that may have been recycled is gone. What cannot be
  // unmounted (a dead server), or belongs to a pod at work, is tried again every five minutes.
  void Remove();

 private:
  void Done(const Result<bool>& all_gone);

  Scheduler& scheduler_;
  LocalRecyclerPods& pods_;
  Logger& log_;
  bool running_ = false;
  bool wanted_again_ = false;
  bool waiting_ = false;
  AliveGuard alive_;
};

}  // namespace volumed
