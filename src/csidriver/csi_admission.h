// CsiAdmission: how many calls of the CSI driver go on at a time, how many of them answer by a
// stream, how many a peer may begin in a second, and that what is being changed by one call is not
// changed by another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace volumed {

// By default a kubelet that starts a thousand volumes at once is not sent away: it has a call open
// for each, and asks what the driver can do several times for each, and what is refused waits for
// its back-off. How many of them work at a time, the lanes of operations say.
struct CsiLimits {
  // That go on at a time, of all peers together: of users that are not root three quarters at most,
  // and half of one of them, so that root has an answer whatever they do.
  size_t calls = 1024;
  int rate = 4000;  // that a peer may begin in a second
  // Of the calls those that answer by a stream, divided likewise: each has an answer in memory for
  // as long as its caller does not take it, which is so long at most.
  size_t streams = 16;
  Duration longest_untaken = std::chrono::seconds(60);
};

// Who calls, by the credentials of his connection.
struct CsiPeer {
  uid_t uid = static_cast<uid_t>(-1);  // not known
  pid_t pid = 0;                       // 0: of a pid namespace that is not seen from here
};

// A process of root's is a peer of its own, as the sidecars of a controller and a kubelet are; all
// processes of another user are one, or he could have as many peers as processes.
//
// Threads: any. Blocks: never.
class CsiAdmission {
 public:
  // The clock outlives this object.
  CsiAdmission(const Clock& clock, CsiLimits limits) : clock_(clock), limits_(limits) {}

  // A call begins. Errors, not applied: Unavailable, if too many go on, or if the peer has begun
  // too many; a caller tries again later then. After OK, Leave() is to be called once,
  // with the same peer.
  Status Enter(const CsiPeer& peer) EXCLUDES(mu_);
  void Leave(const CsiPeer& peer) EXCLUDES(mu_);
  // The same of one that answers by a stream, besides.
  Status EnterStream(const CsiPeer& peer) EXCLUDES(mu_);
  void LeaveStream(const CsiPeer& peer) EXCLUDES(mu_);

  // The call has what `key` names for itself until Release(). Errors, not applied: Aborted, if
  // another call has it. Source: CSI spec v1.13.0, "Error Scheme" (10 ABORTED).
  Status Take(const std::string& key) EXCLUDES(mu_);
  void Release(const std::string& key) EXCLUDES(mu_);

  size_t calls() const EXCLUDES(mu_);

 private:
  using Who = std::pair<uid_t, pid_t>;
  // A peer may begin as many calls at once as in a second, and then one each time that its share of
  // a second has passed.
  struct Allowance {
    double calls = 0;
    TimePoint at;
  };

  struct GoingOn {
    size_t all = 0;
    size_t of_users = 0;              // that are not root
    std::map<uid_t, size_t> of_user;  // each of these
  };

  // `what` is for people.
  Status Begin(const CsiPeer& peer, size_t most, GoingOn& going, const char* what) REQUIRES(mu_);
  static void End(const CsiPeer& peer, GoingOn& going);
  bool MayBegin(const Who& who) REQUIRES(mu_);
  // What a peer has that has begun nothing for a while needs not be remembered.
  void ForgetIdle(TimePoint now) REQUIRES(mu_);

  const Clock& clock_;
  const CsiLimits limits_;
  mutable Mutex mu_;
  GoingOn calls_ GUARDED_BY(mu_);
  GoingOn streams_ GUARDED_BY(mu_);
  std::set<std::string> taken_ GUARDED_BY(mu_);
  std::map<Who, Allowance> allowances_ GUARDED_BY(mu_);
};

}  // namespace volumed
