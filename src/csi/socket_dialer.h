// SocketDialer: opens sockets that any program may have put into a directory, and connects to them,
// so that what was looked at is what is talked to.
//
// The descriptor of an O_PATH open stands for the file; its name may lead elsewhere a moment later.
// gRPC connects by "/proc/self/fd/N", which the kernel resolves to that file, so a socket that
// replaces the one that was looked at is never dialled. Who listens is asked once, by a connection
// of our own (SO_PEERCRED): the answer is the listener's and not the connection's, so it holds for
// all connections to the file. Source: unix(7), proc(5), Linux net/unix/af_unix.c (unix_find_other,
// unix_stream_connect).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_caller.h"
#include "csi/trusted_roots.h"

namespace volumed {

// Whose sockets are used. Root's are only if 0 is among them.
using SocketOwners = std::set<uint32_t>;

// Opens the socket and looks at its kind and owner; nobody is connected to. `place.root` is
// trusted, also as a link (`roots`); below it there may be no link, and no other filesystem.
// Threads: any.
// Blocks: for the filesystem. Errors: those of CsiDialer::Open() but Unavailable and
// DeadlineExceeded.
Result<std::shared_ptr<const CsiSocket>> OpenCsiSocket(const SafePath& place,
                                                       const SocketOwners& owners,
                                                       TrustedRoots& roots);

// The path by which a connection reaches this very socket.
std::string ConnectPathOf(const CsiSocket& socket);

// Whether a process of one of these owners listens. Threads: any. Blocks: while the listener's
// queue is full, until the deadline. Errors: those of CsiDialer::Open().
Status CheckListener(const CsiSocket& socket, const SocketOwners& owners, const Clock& clock,
                     Deadline deadline);

// Threads and blocking: as CsiDialer.
class SocketDialer final : public CsiDialer {
 public:
  struct Parts {
    Scheduler& scheduler;  // destroys callers: that may block
    const Clock& clock;    // the machine's
    CsiStateWatch& watch;
    // Of all channels; they outlive the channels.
    std::vector<CsiCallObserver*> observers = {};
    std::shared_ptr<TrustedRoots> roots = std::make_shared<TrustedRoots>();
  };
  // Its driver and socket are not used.
  SocketDialer(Parts parts, SocketOwners owners, CsiChannelOptions channel);

  Result<std::shared_ptr<const CsiSocket>> Open(const SafePath& place, Deadline deadline) override
      EXCLUDES(mu_);
  Result<std::shared_ptr<CsiCaller>> Dial(const std::string& driver,
                                          std::shared_ptr<const CsiSocket> socket,
                                          StateSeen state_seen) override;

  // Of what is opened from now on.
  void SetOwners(SocketOwners owners) EXCLUDES(mu_);

 private:
  const Parts parts_;
  const CsiChannelOptions channel_;
  Mutex mu_;
  SocketOwners owners_ GUARDED_BY(mu_);
};

}  // namespace volumed
