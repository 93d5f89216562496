#include "csidriver/csi_admission.h"

#include <algorithm>
#include <chrono>

namespace volumed {
namespace {

// Beyond so many, those are forgotten that are as if they had never called.
constexpr size_t kKnownPeers = 64;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Error TryLater(const std::string& why) {
  return Error::NotApplied(Code::kUnavailable, why + ": try again later");
}

}  // namespace

Status CsiAdmission::Enter(const CsiPeer& peer) {
  MutexLock lock(mu_);
  if (!MayBegin({peer.uid, peer.uid == 0 ? peer.pid : 0})) {
    return TryLater("this peer has begun more than " + std::to_string(limits_.rate) +
                    " calls within a second");
  }
  if (calls_ >= limits_.calls) {
    return TryLater(std::to_string(calls_) + " calls go on, which are the most that may");
  }
  ++calls_;
  return OkStatus();
}

void CsiAdmission::Leave() {
  MutexLock lock(mu_);
  --calls_;
}

Status CsiAdmission::EnterStream() {
  MutexLock lock(mu_);
  if (streams_ >= limits_.streams) {
    return TryLater(std::to_string(streams_) +
                    " calls that answer by a stream go on, which are the most that may");
  }
  ++streams_;
  return OkStatus();
}

void CsiAdmission::LeaveStream() {
  MutexLock lock(mu_);
  --streams_;
}

Status CsiAdmission::Take(const std::string& key) {
  MutexLock lock(mu_);
  if (taken_.insert(key).second) return OkStatus();
  return Error::NotApplied(Code::kAborted, "another call is under way for " + key);
}

void CsiAdmission::Release(const std::string& key) {
  MutexLock lock(mu_);
  taken_.erase(key);
}

size_t CsiAdmission::calls() const {
  MutexLock lock(mu_);
  return calls_;
}

bool CsiAdmission::MayBegin(const Who& who) {
  const TimePoint now = clock_.Now();
  const auto most = static_cast<double>(limits_.rate);
  if (allowances_.size() >= kKnownPeers && !allowances_.contains(who)) ForgetIdle(now);
  Allowance& has = allowances_.try_emplace(who, Allowance{most, now}).first->second;
  has.calls = std::min(most, has.calls + Seconds(now - has.at) * most);
  has.at = now;
  if (has.calls < 1) return false;
  has.calls -= 1;
  return true;
}

void CsiAdmission::ForgetIdle(TimePoint now) {
  std::erase_if(allowances_, [now](const auto& entry) {
    return now - entry.second.at >= std::chrono::seconds(1);
  });
}

}  // namespace volumed
