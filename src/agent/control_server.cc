#include "agent/control_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <chrono>

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
      entrance_(loop, log, "control connection", kReservedDescriptors, limits,
                {[this](const PeerCredentials& peer) { return Classify(peer); },
                 [this](Descriptor connection, const GuestClass& peer_class) {
                   const auto role = static_cast<PeerRole>(peer_class.rank);
                   grpc::AddInsecureChannelFromFd(servers_.at(role).get(), connection.Release());
                 }}) {
  for (const auto& [role, service] : services) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.RegisterService(service);
    servers_[role] = builder.BuildAndStart();
  }
}

ControlServer::~ControlServer() {
  entrance_.Close();
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  for (auto& [role, server] : servers_) server->Shutdown(deadline);
}

std::optional<GuestClass> ControlServer::Classify(const PeerCredentials& peer) const {
  const PeerRole role = roles_.RoleOf(peer);
  if (!servers_.contains(role)) return std::nullopt;
  return GuestClassOf(role);
}

}  // namespace volumed
