#include "base/guest_socket.h"

#include <sys/socket.h>

#include <utility>

namespace volumed {

GuestSocket::GuestSocket(EventLoop& loop, Logger& log, std::string what, size_t reserved,
                         GuestLimits limits, GuestSocketHooks hooks)
    : loop_(loop),
      log_(log),
      what_(std::move(what)),
      reserved_(reserved),
      hooks_(std::move(hooks)),
      guests_(loop, limits, hooks_.serve) {}

Status GuestSocket::ListenAt(Descriptor socket) {
  AcceptorOptions options;
  options.reserved = reserved_;
  auto acceptor = std::make_unique<Acceptor>(
      std::move(socket), loop_, options,
      AcceptorHandlers{
          [this](Descriptor connection, const sockaddr_storage&) { Admit(std::move(connection)); },
          [this] { return guests_.MakeRoom(); },
          [this](int sys_errno) {
            log_.LogLimited(what_ + " accept", LogLevel::kWarning, "cannot accept a " + what_,
                            {{"error", ErrnoName(sys_errno)}});
          }});
  RETURN_IF_ERROR(acceptor->Start());
  if (acceptor_) acceptor_->AcceptWaiting();
  acceptor_ = std::move(acceptor);
  return OkStatus();
}

void GuestSocket::Admit(Descriptor connection) {
  const Result<PeerCredentials> peer = GetPeerCredentials(connection.get());
  if (!peer.ok()) {
    log_.LogLimited(what_ + " peer", LogLevel::kWarning, what_ + " refused",
                    {{"error", peer.error()}});
    return;
  }
  const std::string of_user = what_ + " of " + std::to_string(peer->uid);
  const std::optional<GuestClass> peer_class = hooks_.classify(*peer);
  if (!peer_class) {
    log_.LogLimited(of_user + ": no role", LogLevel::kWarning, what_ + " refused: no role",
                    {{"uid", peer->uid}, {"gid", peer->gid}, {"pid", peer->pid}});
    return;
  }
  if (!guests_.Admit(std::move(connection), *peer, *peer_class)) {
    log_.LogLimited(of_user + ": full", LogLevel::kWarning, what_ + " refused: too many of them",
                    {{"uid", peer->uid}, {"pid", peer->pid}});
  }
}

}  // namespace volumed
