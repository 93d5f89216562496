#include "volumehost/node_kubelet_host.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace volumed {
namespace {

// The clock of a test may stand still, so a wait is never longer than this before it is looked at.
constexpr Duration kLongestWait = std::chrono::milliseconds(50);

}  // namespace

void NodeKubeletHost::Follow(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    if (change.key.kind != ObjectKind::kCsiDriver) continue;
    const std::string& name = change.key.name;
    CsiDriverPtr driver;
    std::vector<CsiDriverListener> listeners;
    {
      MutexLock lock(mu_);
      unknown_.erase(name);
      if (change.after != nullptr) {
        driver = CsiDriverPtr(change.after, &std::get<CsiDriverObject>(*change.after));
        drivers_[name] = driver;
      } else if (change.what == ObjectChange::What::kUnknown) {
        if (!drivers_.contains(name)) unknown_[name] = change.file + ": " + change.reason;
        continue;
      } else {
        drivers_.erase(name);
      }
      listeners = listeners_;
    }
    for (const CsiDriverListener& listener : listeners) listener(name, driver);
  }
}

void NodeKubeletHost::SetSynced(bool synced) {
  MutexLock lock(mu_);
  synced_ = synced;
  synced_changed_.NotifyAll();
}

std::optional<Error> NodeKubeletHost::kubelet_error() const {
  MutexLock lock(mu_);
  return error_;
}

void NodeKubeletHost::SetKubeletError(std::optional<Error> error) {
  MutexLock lock(mu_);
  error_ = std::move(error);
}

Result<KubeletHost::CsiDriverPtr> NodeKubeletHost::GetCsiDriver(const std::string& name) const {
  MutexLock lock(mu_);
  if (const auto found = drivers_.find(name); found != drivers_.end()) return found->second;
  if (const auto unknown = unknown_.find(name); unknown != unknown_.end()) {
    return Error::NotApplied(Code::kUnavailable,
                             "CSIDriver " + name + " is not known now: " + unknown->second);
  }
  if (synced_) return Error::NotApplied(Code::kNotFound, "CSIDriver " + name + " not found");
  return Error::NotApplied(
      Code::kUnavailable,
      "CSIDriver " + name + " is not known yet: not every source has delivered");
}

std::vector<KubeletHost::CsiDriverPtr> NodeKubeletHost::ListCsiDrivers() const {
  MutexLock lock(mu_);
  std::vector<CsiDriverPtr> drivers;
  for (const auto& [name, driver] : drivers_) drivers.push_back(driver);
  return drivers;
}

bool NodeKubeletHost::CsiDriversSynced() const {
  MutexLock lock(mu_);
  return synced_;
}

Status NodeKubeletHost::WaitForCacheSync(const CallOptions& call) {
  MutexLock lock(mu_);
  while (!synced_) {
    if (call.deadline.Passed(clock_)) {
      return Error::NotApplied(Code::kDeadlineExceeded,
                               "not every source of objects has delivered a complete list");
    }
    synced_changed_.WaitFor(mu_, std::min(kLongestWait, call.deadline.Remaining(clock_)));
  }
  return OkStatus();
}

void NodeKubeletHost::AddCsiDriverListener(CsiDriverListener listener) {
  MutexLock lock(mu_);
  listeners_.push_back(std::move(listener));
}

}  // namespace volumed
