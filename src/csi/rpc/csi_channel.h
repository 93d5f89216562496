// CsiChannel: the one way to a CSI driver. It keeps one connection, bounds how many calls the
// driver has at a time, gives each a deadline, and says of each failure whether something may have
// changed. What the RPCs mean it does not know.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "csi/rpc/csi_call.h"
#include "csi/rpc/csi_connection.h"

namespace volumed {

struct CsiChannelOptions {
  std::string driver;  // its name, for texts
  std::string socket;  // absolute path
  // Calls under way at a time. What comes beyond waits in a queue, and costs no thread.
  int width = 64;
  // Of calls that come with an infinite deadline. Kubelet's is 2 minutes for all.
  Duration longest_call = std::chrono::minutes(10);
  // gRPC servers take 4 MiB unless told otherwise.
  size_t most_sent_bytes = 4 * 1024 * 1024;
  CsiConnectionOptions connection = {};
  // They outlive the channel.
  std::vector<CsiCallObserver*> observers = {};
  // Called after a change of connection(), on the watch's thread. It must not block, nor destroy
  // the channel. Empty: nobody wants to know.
  std::function<void()> connection_changed = {};
};

struct CsiConnection {
  CsiConnectionState state = CsiConnectionState::kIdle;
  TimePoint since;
};

// A call is sent once it is its turn and the connection is there, in the order in which the calls
// came. While no connection can be made a call fails at once: whoever wants to wait for the driver
// waits for connection_changed. A call that has been sent is never sent again by itself.
//
// Errors of the calls: those of the driver and of gRPC by CsiOutcome(), with the text of
// CsiError(). Of this side, all not applied: DeadlineExceeded and Cancelled while the call waited;
// Unavailable, about kCsiNeverSent, without a connection; InvalidArgument for a message that is no
// request; ResourceExhausted for a request that is too large; Unimplemented for an RPC whose answer
// is a stream without CsiCallOptions::stream; Cancelled when the channel goes.
//
// Threads: any, for every method. Callbacks run on threads of gRPC's, or on the caller's own; they
// must not block.
class CsiChannel {
 public:
  using AnyAnswer = Result<std::unique_ptr<google::protobuf::Message>>;
  // Called once. What it captured is destroyed on the thread that called it.
  using Done = std::function<void(AnyAnswer)>;

  // Clock and watch outlive the channel. The clock is the machine's (RealClock), for gRPC knows no
  // other. Errors: those of ConnectCsi(); and InvalidArgument, not applied, for a width below 1.
  static Result<std::unique_ptr<CsiChannel>> Create(CsiChannelOptions options, const Clock& clock,
                                                    CsiStateWatch& watch);
  // Ends all calls: those that wait were not sent, those under way may have been applied. Blocks:
  // until the callbacks have returned; a driver that does not answer keeps nobody waiting.
  // REQUIRES: it is not called by a callback of this channel.
  ~CsiChannel();
  CsiChannel(const CsiChannel&) = delete;
  CsiChannel& operator=(const CsiChannel&) = delete;

  // Begins a call. The RPC is the one that has this request. `done` may be called before this
  // returns. Blocks: never.
  void Start(const google::protobuf::Message& request, const CsiCallOptions& options, Done done);

  // As Start(). Blocks: until the answer, the deadline, or the cancel. REQUIRES: not on a thread of
  // gRPC's.
  AnyAnswer Perform(const google::protobuf::Message& request, const CsiCallOptions& options);

  // channel.Call<csi::v1::NodeStageVolumeResponse>(request, options), as Perform(); also
  // InvalidArgument, not applied, if that is not the answer of this request.
  template <typename Response>
  Result<Response> Call(const google::protobuf::Message& request, const CsiCallOptions& options) {
    RETURN_IF_ERROR(CheckAnswer(request, Response::descriptor()));
    ASSIGN_OR_RETURN(const std::unique_ptr<google::protobuf::Message> answer,
                     Perform(request, options));
    return std::move(static_cast<Response&>(*answer));
  }

  // Dials anew, at once: for an owner who sees that the socket is another one. Calls under way stay
  // with the old connection until they end; all others take the new one, even if the old one is
  // still good: it may lead to a process that is on its way out. The state is kIdle then, which is
  // no change that connection_changed tells. A socket file is there a moment before its driver
  // listens, so that the first attempt may be refused; the next follows as ever. Blocks: never.
  void Reconnect();

  CsiConnection connection() const;
  // The calls that have not ended, in the order in which they came.
  std::vector<CsiOpenCall> Open() const;
  const std::string& driver() const;

 private:
  class Core;
  explicit CsiChannel(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  static Status CheckAnswer(const google::protobuf::Message& request,
                            const google::protobuf::Descriptor* response);

  // Calls, timers and the watch keep it, until gRPC has let go of them.
  const std::shared_ptr<Core> core_;
};

}  // namespace volumed
