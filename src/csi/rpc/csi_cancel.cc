#include "csi/rpc/csi_cancel.h"

#include <utility>

namespace volumed {

void CsiCancel::Cancel() {
  std::map<uint64_t, std::function<void()>> hooks;
  {
    MutexLock lock(mu_);
    cancelled_ = true;
    hooks.swap(hooks_);
  }
  for (const auto& [id, hook] : hooks) hook();
}

bool CsiCancel::cancelled() const {
  MutexLock lock(mu_);
  return cancelled_;
}

uint64_t CsiCancel::Add(std::function<void()> hook) {
  {
    MutexLock lock(mu_);
    if (!cancelled_) {
      hooks_.emplace(next_id_, std::move(hook));
      return next_id_++;
    }
  }
  hook();
  return 0;
}

void CsiCancel::Remove(uint64_t id) {
  MutexLock lock(mu_);
  hooks_.erase(id);
}

}  // namespace volumed
