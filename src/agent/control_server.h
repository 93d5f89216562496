// ControlServer: the unix socket of the control API. It hands each connection to the gRPC server of
// the peer's role (base/guest_socket.h). One server per role: what a handler may do is fixed when
// its connection is made, and nothing has to be looked up while a call runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "agent/peer_role.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/guest_socket.h"
#include "base/log.h"
#include "base/result.h"
#include "base/stream_guests.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace volumed {

// Threads: the control thread. The handlers run on gRPC's threads. A connection is closed without
// an answer, and that is logged, if its peer has no role that has a service, or if the limits are
// reached and no silent connection can make room.
class ControlServer {
 public:
  // One service per role that may connect; they outlive the server, as do `loop` and `log`. No
  // connection is accepted before ListenAt().
  ControlServer(PeerRoles roles, EventLoop& loop, Logger& log,
                const std::map<PeerRole, grpc::Service*>& services,
                GuestLimits limits = GuestLimitsOfProcess());
  // Ends the calls that run and closes the connections. Blocks: until the handlers are done, for
  // one second at most.
  ~ControlServer();

  // Accepts connections from now on at this socket, which listens and does not block, and no longer
  // at the one before it; up to 64 connections that wait at the old socket are still taken. Blocks:
  // for each connection as PeerRoles::RoleOf. Errors: those of EventLoop::WatchFd, not applied; the
  // old socket stays then.
  Status ListenAt(Descriptor socket) { return entrance_.ListenAt(std::move(socket)); }
  // Sets the roles for connections that come from now on. A connection keeps the role that it had
  // when it was made.
  void SetRoles(PeerRoles roles) { roles_ = roles; }

 private:
  // nullopt if the role has no service.
  std::optional<GuestClass> Classify(const PeerCredentials& peer) const;

  PeerRoles roles_;
  std::map<PeerRole, std::unique_ptr<grpc::Server>> servers_;
  GuestSocket entrance_;
};

}  // namespace volumed
