#include "recycler/left_over_mounts.h"

#include <chrono>
#include <utility>

namespace volumed {
namespace {

constexpr auto kTryAgain = std::chrono::minutes(5);

}  // namespace

void LeftOverMounts::Remove() {
  wanted_again_ = true;
  if (std::exchange(running_, true)) return;
  wanted_again_ = false;
  scheduler_.RunBlocking([this, watch = alive_.watch(), &scheduler = scheduler_, &pods = pods_] {
    const Result<bool> all_gone = pods.RemoveLeftOverMounts(CallOptions());
    scheduler.Post([this, watch, all_gone] {
      if (watch.alive()) Done(all_gone);
    });
  });
}

void LeftOverMounts::Done(const Result<bool>& all_gone) {
  running_ = false;
  if (!all_gone.ok()) {
    log_.Warning("a mount that recycling left cannot be taken away; trying again",
                 {{"error", all_gone.error()}});
  }
  if (wanted_again_) return Remove();
  if ((all_gone.ok() && *all_gone) || std::exchange(waiting_, true)) return;
  scheduler_.PostAfter(kTryAgain, [this, watch = alive_.watch()] {
    if (!watch.alive()) return;
    waiting_ = false;
    Remove();
  });
}

}  // namespace volumed
