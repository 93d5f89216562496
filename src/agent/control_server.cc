#include "agent/control_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>

namespace volumed {
namespace {

// However the process's other descriptors are used, so many people can still ask what is wrong.
constexpr size_t kReservedDescriptors = 8;
// The largest message is a manifest of many documents.
constexpr int kMaxMessageBytes = 16 * 1024 * 1024;

}  // namespace

ControlServer::ControlServer(PeerRoles roles, EventLoop& loop, Logger& log,
                             const std::map<PeerRole, grpc::Service*>& services, GuestLimits limits)
    : roles_(roles),
      loop_(loop),
      log_(log),
      guests_(loop, limits, [this](Descriptor connection, const GuestClass& peer_class) {
        const auto role = static_cast<PeerRole>(peer_class.rank);
        grpc::AddInsecureChannelFromFd(servers_.at(role).get(), connection.Release());
      }) {
  for (const auto& [role, service] : services) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.RegisterService(service);
    servers_[role] = builder.BuildAndStart();
  }
}

ControlServer::~ControlServer() {
  acceptor_.reset();
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  for (auto& [role, server] : servers_) server->Shutdown(deadline);
}

Status ControlServer::ListenAt(Descriptor socket) {
  AcceptorOptions options;
  options.reserved = kReservedDescriptors;
  auto acceptor = std::make_unique<Acceptor>(
      std::move(socket), loop_, options,
      AcceptorHandlers{
          [this](Descriptor connection, const sockaddr_storage&) { Admit(std::move(connection)); },
          [this] { return guests_.MakeRoom(); },
          [this](int sys_errno) {
            log_.LogLimited("accept", LogLevel::kWarning, "cannot accept a control connection",
                            {{"error", ErrnoName(sys_errno)}});
          }});
  RETURN_IF_ERROR(acceptor->Start());
  if (acceptor_) acceptor_->AcceptWaiting();
  acceptor_ = std::move(acceptor);
  return OkStatus();
}

void ControlServer::Admit(Descriptor connection) {
  const Result<PeerCredentials> peer = GetPeerCredentials(connection.get());
  if (!peer.ok()) {
    log_.LogLimited("peer", LogLevel::kWarning, "control connection refused",
                    {{"error", peer.error()}});
    return;
  }
  const PeerRole role = roles_.RoleOf(*peer);
  if (!servers_.contains(role)) {
    log_.LogLimited("refused-" + std::to_string(peer->uid), LogLevel::kWarning,
                    "control connection refused: no role",
                    {{"uid", peer->uid}, {"gid", peer->gid}, {"pid", peer->pid}});
    return;
  }
  if (!guests_.Admit(std::move(connection), *peer, GuestClassOf(role))) {
    log_.LogLimited("full-" + std::to_string(peer->uid), LogLevel::kWarning,
                    "control connection refused: too many of them",
                    {{"uid", peer->uid}, {"pid", peer->pid}});
  }
}

}  // namespace volumed
