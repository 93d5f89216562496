// CsiServer: the agent as a CSI driver: the five services of csi.proto at a unix socket, and what a
// peer may use up.
//
// There is one gRPC server for all peers, as all that may connect may do the same. Who a peer is
// counts for its rate alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csidriver/csi_call.h"
#include "csidriver/csi_service.h"
#include "csidriver/frame_guard.h"
#include "csidriver/served_socket.h"

namespace volumed {

struct CsiServerSettings {
  std::string socket;          // absolute
  std::optional<gid_t> group;  // its members may call, too; mode 0660, without it 0600
  CsiLimits limits;
  int most_message_bytes = 4 * 1024 * 1024;
  GuestLimits guests = GuestLimitsOfProcess(FrameGuard::kDescriptors);
  FrameLimits frames = {};
};

// What may connect: root, whoever the agent runs as, and the members of the group. Threads: any.
// Blocks: as GroupsOf().
std::optional<GuestClass> CsiGuestClass(const PeerCredentials& peer, std::optional<gid_t> group);

// Threads: control, unless it says otherwise. Handlers run on the control thread.
class CsiServer {
 public:
  // They outlive this object.
  struct Parts {
    Scheduler& scheduler;
    EventLoop& loop;  // the control thread's
    Logger& log;
    CsiServedObserver* observer = nullptr;  // as CsiCalls::Parts
    // As FrameGuard says; it may be called until this object is gone.
    std::function<void()> many_have_ended = {};
  };
  // The handlers outlive this object, and what they are posted. `state` is told of the socket, as
  // ServedSocketHooks says.
  CsiServer(const Parts& parts, const CsiHandlers& handlers, const CsiServerSettings& settings,
            std::function<void(const Status&)> state);
  // Answers every call that is under way with Unavailable, and closes the connections; what the
  // calls have begun goes on. Blocks: for two seconds at most.
  ~CsiServer();
  CsiServer(const CsiServer&) = delete;
  CsiServer& operator=(const CsiServer&) = delete;

  // Serves from now on. Blocks: as long as the socket's directory takes to answer. REQUIRES: it is
  // called once.
  void Serve() { socket_->Serve(); }
  // As ServedSocket::SetGroup; a peer that is connected stays so.
  Status SetGroup(std::optional<gid_t> group);
  // From now on calls are answered that need the records of earlier runs. Threads: any.
  void RecordsLoaded() { calls_->RecordsLoaded(); }
  bool records_loaded() const { return calls_->records_loaded(); }
  // Calls that have come and are not answered yet. Threads: any.
  size_t calls_under_way() const { return calls_->under_way(); }

 private:
  void NotePeer(int fd, const PeerCredentials& peer) EXCLUDES(mu_);
  CsiPeer PeerOf(const std::string& grpc_peer) const EXCLUDES(mu_);

  const std::shared_ptr<CsiCalls> calls_;
  std::optional<gid_t> group_;
  mutable Mutex mu_;
  // By descriptor. A number that is used again has its new peer before the first call of it.
  std::map<int, CsiPeer> peers_ GUARDED_BY(mu_);
  std::vector<std::unique_ptr<CsiService>> services_;
  // It outlives the server, whose last answers go through it.
  FrameGuard guard_;
  std::unique_ptr<ServedSocket> socket_;
};

}  // namespace volumed
