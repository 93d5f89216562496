// ControlServer: the unix socket of the control API. It accepts each connection itself, since a
// gRPC server neither tells a peer's credentials nor adopts a listening socket, and hands it to the
// gRPC server of the peer's role. One server per role: what a handler may do is fixed when its
// connection is made, and nothing has to be looked up while a call runs.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/acceptor.h"
#include "agent/control_guests.h"
#include "agent/peer_role.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace volumed {

// Threads: the control thread. The handlers run on gRPC's threads.
class ControlServer {
 public:
  // One service per role that may connect; they outlive the server.
  ControlServer(PeerRoles roles, EventLoop& loop, Logger& log,
                const std::map<PeerRole, grpc::Service*>& services,
                ControlLimits limits = ControlLimitsOfProcess());
  // Ends the calls that run and closes the connections. Blocks: until the handlers are done, for
  // one second at most.
  ~ControlServer();

  // Accepts connections from now on at this socket, which listens and does not block, and no longer
  // at the one before it; connections that wait at the old socket are still taken.
  Status ListenAt(Descriptor socket);
  // Sets the roles for connections that come from now on.
  void SetRoles(PeerRoles roles) { roles_ = roles; }

 private:
  void Admit(Descriptor connection);

  PeerRoles roles_;
  EventLoop& loop_;
  Logger& log_;
  std::map<PeerRole, std::unique_ptr<grpc::Server>> servers_;
  ControlGuests guests_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace volumed
