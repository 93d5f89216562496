// ServedSocket: a gRPC server without a listening port, and the unix socket at which it is reached.
// The socket's file is kept in place (base/socket_file.h), its connections are taken here, and each
// is given to the server once it is known who is at its other end (base/guest_socket.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/guest_socket.h"
#include "base/log.h"
#include "base/peer_credentials.h"
#include "base/result.h"
#include "base/socket_file.h"
#include "base/stream_guests.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace volumed {

struct ServedSocketSettings {
  SocketFileOptions file;
  std::string what;  // a connection in the log: "CSI connection"
  GuestLimits guests = GuestLimitsOfProcess();
};

struct ServedSocketHooks {
  // What the peer is taken for; nullopt: it may not connect. It may block.
  std::function<std::optional<GuestClass>(const PeerCredentials&)> classify;
  // A connection is about to be given to the server, which calls it "fd:<fd>". May be empty.
  std::function<void(int fd, const PeerCredentials&)> connected;
  // What the server is given in the connection's place, before `connected` is told of it; empty:
  // the connection itself. After an error the connection is closed, and that is logged.
  std::function<Result<Descriptor>(Descriptor connection, const PeerCredentials&)> guard = {};
  // After each look at the socket's file: OK, or what is wrong; it is looked at again then.
  std::function<void(const Status&)> state;
};

// The user root, and whoever this process runs as: for sockets that are for nobody else. Threads:
// any. Blocks: never.
std::optional<GuestClass> RootOrSelf(const PeerCredentials& peer);

// Threads: the loop's thread, or any thread before the loop runs. The services run on gRPC's
// threads.
class ServedSocket {
 public:
  // They outlive this object.
  struct Parts {
    EventLoop& loop;
    Logger& log;
  };
  // The server's services outlive this object. Nothing is at the socket's place before Serve().
  ServedSocket(Parts parts, ServedSocketSettings settings, std::unique_ptr<grpc::Server> server,
               ServedSocketHooks hooks);
  // Closes the connections; the socket's file stays. Blocks: until all calls are answered, which
  // the owner of the services sees to.
  ~ServedSocket();
  ServedSocket(const ServedSocket&) = delete;
  ServedSocket& operator=(const ServedSocket&) = delete;

  // Serves at the socket's place from now on. What fails is told to `state`, and tried again.
  // Blocks: as long as the socket's directory takes to answer. REQUIRES: it does not serve already.
  void Serve();
  // Takes no connection any more. The connections that there are go on.
  void Close();
  // The same, and removes the socket's file, if it is the one that was made here. Errors: errno's
  // code, not applied.
  Status Remove();
  // Gives the socket to this group, now and whenever it is made again. Errors: as
  // SocketFileKeeper::SetGroups.
  Status SetGroup(std::optional<gid_t> group);

 private:
  void Give(Descriptor connection, const PeerCredentials& peer);

  const Parts parts_;
  ServedSocketSettings settings_;
  const ServedSocketHooks hooks_;
  const std::unique_ptr<grpc::Server> server_;
  GuestSocket entrance_;
  std::unique_ptr<SocketFileKeeper> file_;
};

}  // namespace volumed
