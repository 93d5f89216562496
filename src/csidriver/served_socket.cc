#include "csidriver/served_socket.h"

#include <grpcpp/server.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace volumed {
namespace {

// So that a kubelet reaches its driver however the process's other descriptors are used.
constexpr size_t kReservedDescriptors = 2;
// For answers that are on their way.
constexpr std::chrono::seconds kLastAnswers{1};

}  // namespace

std::optional<GuestClass> RootOrSelf(const PeerCredentials& peer) {
  if (peer.uid == 0 || peer.uid == ::geteuid()) return GuestClass();
  return std::nullopt;
}

ServedSocket::ServedSocket(Parts parts, ServedSocketSettings settings,
                           std::unique_ptr<grpc::Server> server, ServedSocketHooks hooks)
    : parts_(parts),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      server_(std::move(server)),
      entrance_(parts.loop, parts.log, settings_.what, kReservedDescriptors, settings_.guests,
                {hooks_.classify, [this](Descriptor connection, const GuestClass&) {
                   const Result<PeerCredentials> peer = GetPeerCredentials(connection.get());
                   if (!peer.ok()) return;
                   Give(std::move(connection), *peer);
                 }}) {}

void ServedSocket::Give(Descriptor connection, const PeerCredentials& peer) {
  if (hooks_.guard) {
    Result<Descriptor> guarded = hooks_.guard(std::move(connection), peer);
    if (!guarded.ok()) {
      parts_.log.LogLimited(settings_.what + " guard", LogLevel::kWarning,
                            settings_.what + " closed", {{"error", guarded.error()}});
      return;
    }
    connection = std::move(*guarded);
  }
  if (hooks_.connected) hooks_.connected(connection.get(), peer);
  grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
}

ServedSocket::~ServedSocket() {
  Close();
  server_->Shutdown(std::chrono::system_clock::now() + kLastAnswers);
}

void ServedSocket::Serve() {
  SocketFileKeeper::Handlers handlers;
  handlers.made = [this](Descriptor socket) {
    parts_.log.Info("socket made", {{"path", settings_.file.path}, {"for", settings_.what}});
    return entrance_.ListenAt(std::move(socket));
  };
  handlers.state = hooks_.state;
  file_ = std::make_unique<SocketFileKeeper>(settings_.file, std::nullopt, parts_.loop,
                                             std::move(handlers));
  file_->Start(/*made=*/false);
}

void ServedSocket::Close() {
  file_.reset();
  entrance_.Close();
}

Status ServedSocket::Remove() {
  const Status removed = file_ ? file_->Remove() : OkStatus();
  Close();
  return removed;
}

Status ServedSocket::SetGroup(std::optional<gid_t> group) {
  settings_.file.group = group;
  return file_ ? file_->SetGroups(group, std::nullopt) : OkStatus();
}

}  // namespace volumed
