// CsiChannel::Core: the queue of a channel's calls, and their way through gRPC. For csi_channel.cc
// alone.
//
// gRPC may run a callback inside any call into it, so nothing here calls it with a lock held.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "csi/rpc/csi_channel.h"
#include "csi/rpc/csi_outcome.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {

// One call from its beginning to its end. It has one owner at a time: who begins it, the queue,
// gRPC, who ends it. The last members are by the core's lock.
struct CsiPendingCall {
  uint64_t id = 0;
  const CsiMethod* method = nullptr;
  Deadline deadline = Deadline::Infinite();
  std::shared_ptr<CsiCancel> cancel;
  uint64_t cancel_hook = 0;
  CsiChannel::Done done;
  CsiCallReport report;
  CsiSecrets secrets;
  std::shared_ptr<CsiStream> stream;  // null: the answer is one message
  TimePoint asked;
  grpc::ByteBuffer request;
  grpc::ByteBuffer answer;
  grpc::ClientContext context;
  grpc::Alarm alarm;  // for the deadline, while it waits

  // By the core's lock.
  enum class Phase { kNew, kWaiting, kUnderWay, kEnded };
  Phase phase = Phase::kNew;
  bool alarm_set = false;  // who ends the wait after that has to cancel it
  std::optional<TimePoint> sent = {};
};

class CsiChannel::Core : public std::enable_shared_from_this<CsiChannel::Core> {
 public:
  Core(CsiChannelOptions options, const Clock& clock, CsiStateWatch& watch)
      : options_(std::move(options)), clock_(clock), watch_(watch) {}

  // For the channel's methods of the same names.
  void Start(const google::protobuf::Message& request, const CsiCallOptions& options, Done done);
  CsiConnection connection() const EXCLUDES(mu_);
  std::vector<CsiOpenCall> Open() const EXCLUDES(mu_);
  const std::string& driver() const { return options_.driver; }

  // Makes a channel that is used from now on. Errors: those of ConnectCsi(), and then nothing has
  // changed.
  Status Dial() EXCLUDES(mu_);
  // The destructor's work.
  void Close() EXCLUDES(mu_);

 private:
  using Call = std::shared_ptr<CsiPendingCall>;

  // A call that Close() waits for until nobody has it any more. All that keeps the channel on
  // gRPC's threads is in it, so that these never have the last share: see CsiStateWatch::Retire().
  Call NewCall() EXCLUDES(mu_);
  // Fills in what is known of the call before it begins. Returns why it cannot be made at all.
  std::optional<CsiFailure> Prepare(CsiPendingCall& call, const google::protobuf::Message& request,
                                    const CsiCallOptions& options) const;
  // Returns false, and ends the call, if there is a failure.
  bool Enqueue(const Call& call, std::optional<CsiFailure> failure) EXCLUDES(mu_);
  void ArmDeadline(const Call& call) EXCLUDES(mu_);
  // Sends what may be sent now. One thread does at a time, so that the order is kept.
  void Pump() EXCLUDES(mu_);
  struct Turn {
    Call call;
    std::shared_ptr<grpc::Channel> channel;  // it goes before the call
    bool cancel_alarm = false;
  };
  // Without a call: nothing may be sent, and this thread has ceased to pump.
  Turn NextTurn() EXCLUDES(mu_);
  bool MaySend() const REQUIRES(mu_);
  void Send(const Turn& turn) EXCLUDES(mu_);
  AnyAnswer AnswerOf(CsiPendingCall& call, const grpc::Status& status) const;
  // The call that was sent has ended.
  void Settle(const Call& call, AnyAnswer answer) EXCLUDES(mu_);
  // Ends a call that waits; nothing if it does not wait any more.
  void GiveUp(const Call& call, const CsiFailure& failure) EXCLUDES(mu_);
  void Cancel(const Call& call) EXCLUDES(mu_);
  // Tells everybody. The phase is kEnded.
  void End(const Call& call, AnyAnswer answer) EXCLUDES(mu_);
  Error ErrorOf(const CsiPendingCall& call, const CsiFailure& failure) const;
  // As CsiStateWatch::Seen, for the channel of that generation.
  bool StateSeen(uint64_t generation, std::optional<CsiConnectionState> state) EXCLUDES(mu_);
  // Whether a connection came and went between two looks, as of a driver that accepts and closes.
  // Calls that wait to see one that lasts would wait for ever: gRPC is to send or to fail them.
  bool Flaps(std::optional<CsiConnectionState> state) const REQUIRES(mu_);
  void Returned() EXCLUDES(mu_);

  const CsiChannelOptions options_;
  const Clock& clock_;
  CsiStateWatch& watch_;

  mutable Mutex mu_;
  CondVar all_returned_;
  std::shared_ptr<grpc::Channel> channel_ GUARDED_BY(mu_);
  uint64_t generation_ GUARDED_BY(mu_) = 0;  // counts the channels
  CsiConnection connection_ GUARDED_BY(mu_);
  bool flaps_ GUARDED_BY(mu_) = false;
  uint64_t next_id_ GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Call> open_ GUARDED_BY(mu_);
  std::deque<Call> waiting_ GUARDED_BY(mu_);
  int under_way_ GUARDED_BY(mu_) = 0;
  bool pumping_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  // Calls that somebody has, and other callbacks that run.
  int callbacks_ GUARDED_BY(mu_) = 0;
};

}  // namespace volumed
