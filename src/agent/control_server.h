// ControlServer: the unix socket of the control API. It accepts each connection itself, since a
// gRPC server neither tells a peer's credentials nor adopts a listening socket, and hands it to the
// gRPC server of the peer's role. One server per role: what a handler may do is fixed when its
// connection is made, and nothing has to be looked up while a call runs.
#pragma once

#include <map>
#include <memory>
#include <string>

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

struct ControlSocketOptions {
  std::string path;
  std::optional<gid_t> group;  // owns the socket, mode 0660; without it 0600
  // May connect too, by an access control list; 0666 where the filesystem has none. Either way the
  // server looks at each peer's credentials.
  std::optional<gid_t> read_group;
};

// A listening socket, close-on-exec and non-blocking: the one systemd passed (LISTEN_FDS) when
// there is exactly one, else a new one at `path`, where a left-over of an earlier agent is
// replaced; the caller holds the root's lock. Source: sd_listen_fds(3).
Result<Descriptor> MakeControlSocket(const ControlSocketOptions& options);

// Threads: control thread. The handlers run on gRPC's threads.
class ControlServer {
 public:
  // One service per role that may connect; they outlive the server.
  ControlServer(Descriptor socket, PeerRoles roles, EventLoop& loop, Logger& log,
                const std::map<PeerRole, grpc::Service*>& services);
  // Ends the calls that run and closes the connections. Blocks: until the handlers are done, at
  // most one second.
  ~ControlServer();

  // Accepts from now on.
  Status Start();

 private:
  void AcceptAll();
  void Admit(Descriptor connection);

  const Descriptor socket_;
  const PeerRoles roles_;
  EventLoop& loop_;
  Logger& log_;
  std::map<PeerRole, std::unique_ptr<grpc::Server>> servers_;
};

}  // namespace volumed
