#include "csidriver/csi_admission.h"

#include <algorithm>
#include <chrono>

namespace volumed {
namespace {

// Beyond so many, those are forgotten that are as if they had never called.
constexpr size_t kKnownPeers = 64;
// Of all that may go on, one part in so many is for root alone, and one in so many is for all but
// any one user who is not root.
constexpr size_t kShareOfRoot = 4;
constexpr size_t kShareOfOthers = 2;

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
  return Begin(peer, limits_.calls, calls_, "calls");
}

void CsiAdmission::Leave(const CsiPeer& peer) {
  MutexLock lock(mu_);
  End(peer, calls_);
}

Status CsiAdmission::EnterStream(const CsiPeer& peer) {
  MutexLock lock(mu_);
  return Begin(peer, limits_.streams, streams_, "calls that answer by a stream");
}

void CsiAdmission::LeaveStream(const CsiPeer& peer) {
  MutexLock lock(mu_);
  End(peer, streams_);
}

Status CsiAdmission::Begin(const CsiPeer& peer, size_t most, GoingOn& going, const char* what) {
  const auto refused = [&](size_t number, const char* of) {
    return TryLater(std::to_string(number) + " " + what + of +
                    " go on, which are the most that may");
  };
  if (going.all >= most) return refused(going.all, "");
  if (peer.uid != 0) {
    if (going.of_users >= most - most / kShareOfRoot) {
      return refused(going.of_users, " of users that are not root");
    }
    const size_t own = most - most / kShareOfOthers;
    const auto his = going.of_user.find(peer.uid);
    if (his != going.of_user.end() && his->second >= own) return refused(own, " of this user");
    ++going.of_users;
    ++going.of_user[peer.uid];
  }
  ++going.all;
  return OkStatus();
}

void CsiAdmission::End(const CsiPeer& peer, GoingOn& going) {
  --going.all;
  if (peer.uid == 0) return;
  --going.of_users;
  const auto his = going.of_user.find(peer.uid);
  if (--his->second == 0) going.of_user.erase(his);
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
  return calls_.all;
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
