// The connection to a driver's socket: how gRPC's channel is made, in which state it is, and the
// one thread that sees the states of all channels change.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace volumed {

enum class CsiConnectionState {
  kIdle,
  kConnecting,
  kReady,
  kTransientFailure,  // the last attempt failed; another one follows
  kShutdown,
};

// "idle", "connecting", "ready", "transient failure", "shutdown".
std::string_view CsiConnectionStateName(CsiConnectionState state);
CsiConnectionState CsiConnectionStateFrom(grpc_connectivity_state state);

struct CsiConnectionOptions {
  // Between two attempts to connect: with gRPC's jitter of a fifth, a driver that is back is used
  // within 200 ms even if nobody says so.
  Duration retry_after = std::chrono::milliseconds(150);
  // A listener that accepts gets so long to speak HTTP/2. Not too short: a driver that starts on a
  // busy machine is slow to.
  Duration handshake = std::chrono::seconds(5);
  int most_received_bytes = 16 * 1024 * 1024;
  // What a driver says of a failure is metadata. gRPC's own limit is 8 KiB, beyond which the code
  // of the failure is lost too: a final error would look like one that says ResourceExhausted.
  int most_metadata_bytes = 64 * 1024;
};

// Makes a channel to a unix socket, by its absolute path, which need not exist. It shares no
// connection with another channel, uses no proxy, and looks for no service config. Whoever keeps it
// in a CsiStateWatch keeps it connected.
// Errors: InvalidArgument, not applied: the path is not absolute, has a zero byte, or is too long
// for a socket (107 bytes).
Result<std::shared_ptr<grpc::Channel>> ConnectCsi(const std::string& socket,
                                                  const CsiConnectionOptions& options);

// Whether this failure says that no connection could be made, so that the driver has not seen the
// call. `peer` is ClientContext::peer().
//
// Found by experiment with gRPC 1.51: such a call ends with UNAVAILABLE, the text of pick_first's
// failure, and the channel's target as its peer. Once anything came back for the call, the end of
// its connection included, the peer is the socket's address, which is written otherwise than the
// target here; a call that is ended on this side (deadline, cancel) has the target too, but not
// that code. A driver that passes on such a text of its own back end is told by the peer.
bool CsiNeverConnected(int grpc_code, const std::string& message, const std::string& peer);

// Sees the states of channels change, and has them connect whenever they are idle.
// Threads: any; it has one of its own. Blocks: the destructor, until the last channel is gone.
class CsiStateWatch {
 public:
  // Called on the watch's thread after a change, with the state of now: changes that follow each
  // other closely may be seen as one, and even as none, with the same state as before. nullopt: it
  // is idle, and no change has been seen for a pause. Returns false when no more is wanted. It must
  // not block.
  using Seen = std::function<bool(std::optional<CsiConnectionState>)>;

  CsiStateWatch();
  // REQUIRES: nobody else keeps a channel that was watched or retired.
  ~CsiStateWatch();
  CsiStateWatch(const CsiStateWatch&) = delete;
  CsiStateWatch& operator=(const CsiStateWatch&) = delete;

  // Has the channel connect, and watches it until `seen` says so or the channel is destroyed; the
  // first change is the one from kIdle. A connection that is broken off is made anew, but not
  // sooner than `pause` after the one before was begun: else a driver that accepts and closes would
  // keep a processor busy. The channel is not kept alive.
  void Watch(const std::shared_ptr<grpc::Channel>& channel, Duration pause, Seen seen);

  // Keeps the channel as long as somebody else does, and lets go of it on the watch's thread.
  //
  // The last channel of a program must not go on one of gRPC's threads that run callbacks: it waits
  // there for the end of these threads. Source: grpc v1.51 src/cpp/common/completion_queue_cc.cc
  // (CallbackAlternativeCQ::Unref).
  void Retire(std::shared_ptr<grpc::Channel> channel) EXCLUDES(mu_);

 private:
  struct Watched;
  // Waits for a change from `now`, for as long as is said.
  void Await(std::unique_ptr<Watched> watched, grpc::Channel& channel, grpc_connectivity_state now)
      EXCLUDES(mu_);
  void Run();
  // Lets go of the channels that nobody else keeps. True if some are left.
  bool Bury() EXCLUDES(mu_);

  Mutex mu_;
  CondVar none_begins_;
  bool ends_ GUARDED_BY(mu_) = false;
  int beginning_ GUARDED_BY(mu_) = 0;  // waits that are being begun
  std::vector<std::shared_ptr<grpc::Channel>> retired_ GUARDED_BY(mu_);
  grpc::CompletionQueue queue_;
  std::thread thread_;
};

}  // namespace volumed
