// One call of the CSI driver, from its arrival to its answer: it is admitted, read, held against
// the rules, stripped of its secrets, posted to its handler on the control thread, and answered.
//
// CSI has no cancel. A client that gives up ends nothing: what its call has begun goes on, the call
// has its key until that is done, and a repeat is answered Aborted meanwhile. A stream alone ends
// with its client, as nobody is there to take the rest.
// Source: CSI spec v1.13.0, "Timeouts", "Error Scheme".
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/rpc/csi_methods.h"
#include "csi/rpc/csi_redact.h"
#include "csidriver/csi_admission.h"

namespace volumed {

class CsiCalls;

// Told once, on any thread: true: what was sent is taken, and there is room for the next; false:
// the client is gone, or the call has ended.
using CsiSent = std::function<void(bool taken)>;

// A call as it comes in. `answer` is called exactly once, on any thread, and `read` once at most,
// before it, on the thread of CsiCalls::Begin().
struct CsiArrival {
  const CsiMethod* method = nullptr;
  CsiPeer peer;
  // Reads the request; false: what came is no message of its type.
  std::function<bool(google::protobuf::Message& request)> read;
  // The response counts only if the status is OK, and not at all of one that answers by a stream.
  std::function<void(const grpc::Status&, const google::protobuf::Message& response)> answer;
  // Of one that answers by a stream alone. Sends a response, which is not needed afterwards; any
  // thread, one at a time, each after the one before was taken. After `answer` nothing is taken.
  std::function<void(const google::protobuf::Message& response, CsiSent sent)> send;
  // Likewise: whether the client is known to be gone. Any thread.
  std::function<bool()> is_gone;
};

// Threads: a handler uses request and response on one thread at a time. Finish(), method() and
// peer(): any.
class CsiCall {
 public:
  CsiCall(std::shared_ptr<CsiCalls> calls, CsiArrival arrival, TimePoint begun);
  CsiCall(const CsiCall&) = delete;
  CsiCall& operator=(const CsiCall&) = delete;

  const CsiMethod& method() const { return *arrival_.method; }
  const CsiPeer& peer() const { return arrival_.peer; }
  // Without its secrets, which are gone before a handler has it.
  const google::protobuf::Message& request() const { return *request_; }
  google::protobuf::Message& response() { return *response_; }
  // Answers the call, unless it has been answered: the server answers it when it stops. Blocks:
  // never.
  void Finish(const Status& status);
  // What the call asked for is so without it: it has no line in the log then, as one that only
  // looks. Before Finish(), on the handler's thread.
  void ChangesNothing() { changes_nothing_ = true; }
  bool has_ended() const { return ended_.load(); }

  // Of a call that answers by a stream: sends the response, which may be filled anew at once.
  // `sent` is called on the control thread; before it nothing is to be sent. A client that takes
  // nothing for CsiLimits::longest_untaken is answered DeadlineExceeded, and `sent` is told false.
  // Threads: any, one at a time. Blocks: never.
  static void Send(const std::shared_ptr<CsiCall>& call, CsiSent sent);
  // Likewise: whether nobody takes what would be sent.
  bool is_given_up() const;

 private:
  friend class CsiCalls;

  // Reads the request, and takes the secrets out of it. Errors: InvalidArgument, not applied.
  Status Read();
  // What the call changes, by name: "volume_id v-1". Empty if it changes nothing, or nothing that
  // has a name.
  std::string Key() const;

  const std::shared_ptr<CsiCalls> calls_;
  const CsiArrival arrival_;
  const TimePoint begun_;
  const std::unique_ptr<google::protobuf::Message> request_;
  const std::unique_ptr<google::protobuf::Message> response_;
  CsiSecrets secrets_;    // of the request, for what is said about it
  bool entered_ = false;  // by CsiAdmission::Enter()
  bool streams_ = false;  // likewise EnterStream()
  std::string key_;       // that it has taken; empty: none
  std::atomic<bool> changes_nothing_{false};
  std::atomic<bool> ended_{false};
};

// The same with the types of its messages, for handlers. Copies are the same call.
template <typename Request, typename Response>
class CsiRpc {
 public:
  explicit CsiRpc(std::shared_ptr<CsiCall> call) : call_(std::move(call)) {}
  const Request& request() const { return static_cast<const Request&>(call_->request()); }
  Response& response() const { return static_cast<Response&>(call_->response()); }
  void Finish(const Status& status) const { call_->Finish(status); }
  // The number of the caller's process; 0: it is not known.
  pid_t caller() const { return call_->peer().pid; }
  void ChangesNothing() const { call_->ChangesNothing(); }

 protected:
  std::shared_ptr<CsiCall> call_;
};

// The same of an RPC that answers by a stream of such responses. Finish() ends the stream.
template <typename Request, typename Response>
class CsiStreamRpc : public CsiRpc<Request, Response> {
 public:
  using CsiRpc<Request, Response>::CsiRpc;
  // As CsiCall.
  void Send(CsiSent sent) const { CsiCall::Send(this->call_, std::move(sent)); }
  bool is_given_up() const { return this->call_->is_given_up(); }
};

// What is done for an RPC. It outlives the calls.
struct CsiRow {
  // Whether it waits for the records of earlier runs; before that it is answered Unavailable.
  bool needs_records = true;
  // On the control thread. It must not block, and finishes the call now or later.
  std::function<void(const std::shared_ptr<CsiCall>&)> handle;
  bool streams = false;  // its answer is a stream
};

// Whoever counts the calls of the driver. Threads: any. Blocks: never.
class CsiServedObserver {
 public:
  virtual ~CsiServedObserver() = default;
  // `refused` is the code of an answer that is an error; `took` is the time since the call came.
  virtual void CallAnswered(const CsiMethod& method, std::optional<Code> refused,
                            Duration took) = 0;
};

// All calls of the driver. Threads: any. Blocks: never.
class CsiCalls : public std::enable_shared_from_this<CsiCalls> {
 public:
  // They outlive this object and its calls.
  struct Parts {
    Scheduler& scheduler;
    Logger& log;
    CsiServedObserver* observer = nullptr;  // null: nobody counts
  };
  static std::shared_ptr<CsiCalls> Make(const Parts& parts, CsiLimits limits);

  // Takes a call on. What it is refused for, in this order: Unavailable if there are too many
  // calls, or too many that answer by a stream; InvalidArgument if it is no request, or one that
  // breaks a rule (csi_request_rules.h); Unavailable if the row waits for the records; Aborted if
  // another call has what it is about. Only a call that changes something has anything for itself.
  void Begin(const CsiRow& row, CsiArrival arrival) EXCLUDES(mu_);
  // Answers a call that no row is for. It counts for its peer's rate.
  void Refuse(const grpc::Status& status, CsiArrival arrival) EXCLUDES(mu_);

  // The records of earlier runs are loaded.
  void RecordsLoaded() { records_loaded_ = true; }
  bool records_loaded() const { return records_loaded_.load(); }

  size_t under_way() const { return admission_.calls(); }

  // Answers every call that is under way, and each one that comes from now on, with Unavailable.
  // What the calls have begun goes on.
  void End() EXCLUDES(mu_);

 private:
  friend class CsiCall;

  CsiCalls(const Parts& parts, CsiLimits limits);
  Status Admit(CsiCall& call, const CsiRow& row) EXCLUDES(mu_);
  // Notes that the call is under way; false if all were ended.
  bool Note(const std::shared_ptr<CsiCall>& call) EXCLUDES(mu_);
  void Ended(CsiCall& call, const Status& status) EXCLUDES(mu_);
  void Answer(CsiCall& call, const grpc::Status& status);
  void Tell(const CsiCall& call, const Status& status, const grpc::Status& answered);

  const Parts parts_;
  const Duration longest_untaken_;
  CsiAdmission admission_;
  std::atomic<bool> records_loaded_{false};
  Mutex mu_;
  bool are_ended_ GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<CsiCall>> open_ GUARDED_BY(mu_);
};

}  // namespace volumed
