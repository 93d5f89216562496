#include "csidriver/csi_server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

// What gRPC calls a connection that it was given as a descriptor. Source: grpc v1.51
// src/core/ext/transport/chttp2/server/chttp2_server.cc (grpc_server_add_channel_from_fd).
constexpr std::string_view kOfDescriptor = "fd:";

// A client may look by pings whether the driver is there, with calls under way and without (that of
// Go each 10 s at most). By default gRPC closes its connection at the third one within five
// minutes, and the calls end with an outcome that is open. One that sends them without a pause is
// turned away still.
constexpr int kBetweenPingsMs = 100;

// What connections and calls of the driver have of gRPC's memory together.
constexpr size_t kMostGrpcBytes = size_t{256} << 20;

}  // namespace

std::optional<GuestClass> CsiGuestClass(const PeerCredentials& peer, std::optional<gid_t> group) {
  if (const std::optional<GuestClass> own = RootOrSelf(peer)) return own;
  if (!group) return std::nullopt;
  const std::vector<gid_t> groups = GroupsOf(peer);
  if (std::find(groups.begin(), groups.end(), *group) == groups.end()) return std::nullopt;
  return GuestClass();
}

CsiServer::CsiServer(const Parts& parts, const CsiHandlers& handlers,
                     const CsiServerSettings& settings, std::function<void(const Status&)> state)
    : calls_(CsiCalls::Make({parts.scheduler, parts.log, parts.observer}, settings.limits)),
      group_(settings.group),
      guard_(parts.log, settings.frames, parts.many_have_ended) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(settings.most_message_bytes);
  // Beyond it gRPC takes calls back, and does not ask whose. Whatever bounds a peer comes first, so
  // that it is for what nobody has thought of.
  builder.SetResourceQuota(grpc::ResourceQuota("csi-serve").Resize(kMostGrpcBytes));
  // A connection has no more requests in memory than may be under way.
  builder.AddChannelArgument(
      GRPC_ARG_MAX_CONCURRENT_STREAMS,
      static_cast<int>(std::min(settings.limits.calls, settings.frames.open_calls)));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kBetweenPingsMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  for (const std::string& name : CsiService::Names()) {
    services_.push_back(std::make_unique<CsiService>(
        name, handlers, calls_, [this](const std::string& peer) { return PeerOf(peer); }));
    builder.RegisterService(services_.back().get());
  }
  ServedSocketSettings socket;
  socket.file.path = settings.socket;
  socket.file.group = settings.group;
  socket.file.makes_parents = true;
  socket.what = "CSI connection";
  socket.guests = settings.guests;
  ServedSocketHooks hooks;
  hooks.classify = [this](const PeerCredentials& peer) { return CsiGuestClass(peer, group_); };
  hooks.connected = [this](int fd, const PeerCredentials& peer) { NotePeer(fd, peer); };
  hooks.guard = [this](Descriptor connection, const PeerCredentials& peer) {
    return guard_.Take(std::move(connection), {peer.uid, peer.pid});
  };
  hooks.state = std::move(state);
  socket_ =
      std::make_unique<ServedSocket>(ServedSocket::Parts{parts.loop, parts.log}, std::move(socket),
                                     builder.BuildAndStart(), std::move(hooks));
}

CsiServer::~CsiServer() {
  socket_->Close();
  calls_->End();
  socket_.reset();
}

Status CsiServer::SetGroup(std::optional<gid_t> group) {
  group_ = group;
  return socket_->SetGroup(group);
}

void CsiServer::NotePeer(int fd, const PeerCredentials& peer) {
  MutexLock lock(mu_);
  peers_[fd] = {peer.uid, peer.pid};
}

CsiPeer CsiServer::PeerOf(const std::string& grpc_peer) const {
  const std::optional<std::string_view> number = StripPrefix(grpc_peer, kOfDescriptor);
  const std::optional<int64_t> fd = number ? ParseInt64(*number) : std::nullopt;
  MutexLock lock(mu_);
  const auto found = fd ? peers_.find(static_cast<int>(*fd)) : peers_.end();
  return found == peers_.end() ? CsiPeer() : found->second;
}

}  // namespace volumed
