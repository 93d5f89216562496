// CsiCancel: asks CSI calls to stop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/mutex.h"

namespace volumed {

// It cannot be taken back. One may be given to several calls; each has a share of it, so that
// whoever made it may let it go. A call that waits for its turn ends without having been sent; one
// that is under way is ended on this side, and its driver goes on or not: there is no cancel in
// CSI. Source: CSI spec v1.13.0, "Cancellation". Threads: any. Blocks: never.
class CsiCancel {
 public:
  CsiCancel() = default;
  CsiCancel(const CsiCancel&) = delete;
  CsiCancel& operator=(const CsiCancel&) = delete;

  // The calls end before this returns, or soon after.
  void Cancel();
  bool cancelled() const;

  // For those who make calls. `hook` runs once, on the thread that cancels, or at once if that has
  // happened, without a lock; it may also run while Remove() does, so it keeps what it needs.
  // Returns what Remove() takes; 0 if the hook has run.
  uint64_t Add(std::function<void()> hook);
  void Remove(uint64_t id);

 private:
  mutable Mutex mu_;
  bool cancelled_ GUARDED_BY(mu_) = false;
  uint64_t next_id_ GUARDED_BY(mu_) = 1;
  std::map<uint64_t, std::function<void()>> hooks_ GUARDED_BY(mu_);
};

}  // namespace volumed
