#include "csi/rpc/csi_connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

namespace volumed {
namespace {

// Three slashes: gRPC writes the address of a socket with one, and by that CsiNeverConnected()
// knows them apart.
constexpr std::string_view kTargetScheme = "unix://";

int Milliseconds(Duration duration) {
  const int64_t count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<int64_t>(count, 1, std::numeric_limits<int>::max()));
}

// A path as part of a URI, which gRPC decodes. Source: RFC 3986, 2.3.
std::string UriPath(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
  }
  return encoded;
}

grpc::ChannelArguments ArgumentsOf(const CsiConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  // Go's servers refuse an authority that is a path.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  const int retry = Milliseconds(options.retry_after);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, retry);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, retry);
  // Despite its name it bounds an attempt, and not the time between two.
  // Source: grpc v1.51 src/core/ext/filters/client_channel/subchannel.cc (min_connect_timeout_).
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(options.handshake));
  arguments.SetMaxReceiveMessageSize(options.most_received_bytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, options.most_metadata_bytes);
  // Else a new channel to the same path would get the old one's connection, or its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return arguments;
}

}  // namespace

std::string_view CsiConnectionStateName(CsiConnectionState state) {
  switch (state) {
    case CsiConnectionState::kIdle:
      return "idle";
    case CsiConnectionState::kConnecting:
      return "connecting";
    case CsiConnectionState::kReady:
      return "ready";
    case CsiConnectionState::kTransientFailure:
      return "transient failure";
    case CsiConnectionState::kShutdown:
      return "shutdown";
  }
  return "shutdown";
}

CsiConnectionState CsiConnectionStateFrom(grpc_connectivity_state state) {
  switch (state) {
    case GRPC_CHANNEL_IDLE:
      return CsiConnectionState::kIdle;
    case GRPC_CHANNEL_CONNECTING:
      return CsiConnectionState::kConnecting;
    case GRPC_CHANNEL_READY:
      return CsiConnectionState::kReady;
    case GRPC_CHANNEL_TRANSIENT_FAILURE:
      return CsiConnectionState::kTransientFailure;
    case GRPC_CHANNEL_SHUTDOWN:
      return CsiConnectionState::kShutdown;
  }
  return CsiConnectionState::kShutdown;
}

Result<std::shared_ptr<grpc::Channel>> ConnectCsi(const std::string& socket,
                                                  const CsiConnectionOptions& options) {
  if (socket.empty() || socket[0] != '/' || socket.find('\0') != std::string::npos) {
    return Error::NotApplied(Code::kInvalidArgument, "the path of a driver's socket is absolute");
  }
  if (socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "the path of a driver's socket has 107 bytes at most");
  }
  return grpc::CreateCustomChannel(std::string(kTargetScheme) + UriPath(socket),
                                   grpc::InsecureChannelCredentials(), ArgumentsOf(options));
}

bool CsiNeverConnected(int grpc_code, const std::string& message, const std::string& peer) {
  return grpc_code == GRPC_STATUS_UNAVAILABLE && peer.starts_with(kTargetScheme) &&
         message.starts_with("failed to connect to all addresses");
}

struct CsiStateWatch::Watched {
  std::weak_ptr<grpc::Channel> channel;
  Duration pause;
  Seen seen;
  RealClock clock = {};
  TimePoint next_dial = {};

  // How long to wait for a change from `now`; in the idle state it connects when it is time to. A
  // connection may come and go before anybody waits for a change, so that wait has an end.
  gpr_timespec Wait(grpc::Channel& locked, grpc_connectivity_state now) {
    if (now != GRPC_CHANNEL_IDLE) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    const TimePoint at = clock.Now();
    if (at >= next_dial) {
      next_dial = at + pause;
      locked.GetState(/*try_to_connect=*/true);
    }
    return gpr_time_from_nanos((next_dial - at).count(), GPR_TIMESPAN);
  }
};

CsiStateWatch::CsiStateWatch() : thread_([this] { Run(); }) {}

CsiStateWatch::~CsiStateWatch() {
  {
    // The last channel may have gone while the thread was about to wait for its next change, and
    // gRPC ends the program if a wait is begun after the shutdown.
    MutexLock lock(mu_);
    ends_ = true;
    while (beginning_ > 0) none_begins_.Wait(mu_);
  }
  Bury();
  queue_.Shutdown();
  thread_.join();
}

void CsiStateWatch::Watch(const std::shared_ptr<grpc::Channel>& channel, Duration pause,
                          Seen seen) {
  // If it is idle no more by then, that is told at once.
  Await(std::make_unique<Watched>(Watched{channel, pause, std::move(seen)}), *channel,
        GRPC_CHANNEL_IDLE);
}

void CsiStateWatch::Await(std::unique_ptr<Watched> watched, grpc::Channel& channel,
                          grpc_connectivity_state now) {
  {
    MutexLock lock(mu_);
    if (ends_) return;
    ++beginning_;
  }
  const gpr_timespec wait = watched->Wait(channel, now);
  channel.NotifyOnStateChange(now, wait, &queue_, watched.release());
  MutexLock lock(mu_);
  --beginning_;
  none_begins_.NotifyAll();
}

void CsiStateWatch::Retire(std::shared_ptr<grpc::Channel> channel) {
  MutexLock lock(mu_);
  retired_.push_back(std::move(channel));
}

bool CsiStateWatch::Bury() {
  std::vector<std::shared_ptr<grpc::Channel>> buried;  // goes after the lock
  MutexLock lock(mu_);
  for (std::shared_ptr<grpc::Channel>& channel : retired_) {
    if (channel.use_count() == 1) buried.push_back(std::move(channel));
  }
  std::erase(retired_, nullptr);
  return !retired_.empty();
}

void CsiStateWatch::Run() {
  for (;;) {
    // Whoever retires a channel has made another one, which is about to change.
    const gpr_timespec wait =
        Bury() ? gpr_time_from_seconds(1, GPR_TIMESPAN) : gpr_inf_future(GPR_CLOCK_MONOTONIC);
    void* tag = nullptr;
    bool changed = false;
    const auto next = queue_.AsyncNext(&tag, &changed, wait);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::TIMEOUT) continue;
    std::unique_ptr<Watched> watched(static_cast<Watched*>(tag));
    // The destruction of a channel is a change too, and the last one.
    const std::shared_ptr<grpc::Channel> channel = watched->channel.lock();
    if (channel == nullptr) continue;
    const grpc_connectivity_state now = channel->GetState(/*try_to_connect=*/false);
    const auto told = changed ? std::optional(CsiConnectionStateFrom(now)) : std::nullopt;
    if (watched->seen(told)) Await(std::move(watched), *channel, now);
  }
}

}  // namespace volumed
