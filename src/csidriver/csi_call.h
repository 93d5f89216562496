// One call of the CSI driver, from its arrival to its answer: it is admitted, read, held against
// the rules, stripped of its secrets, posted to its handler on the control thread, and answered.
//
// CSI has no cancel. A client that gives up ends nothing: what its call has begun goes on, the call
// has its key until that is done, and a repeat is answered Aborted meanwhile.
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

// A call as it comes in. Its functions are called once each at most; `answer` exactly once, on any
// thread, and `read` before it, on the thread of CsiCalls::Begin().
struct CsiArrival {
  const CsiMethod* method = nullptr;
  CsiPeer peer;
  // Reads the request; false: what came is no message of its type.
  std::function<bool(google::protobuf::Message& request)> read;
  // The response counts only if the status is OK.
  std::function<void(const grpc::Status&, const google::protobuf::Message& response)> answer;
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
  bool has_ended() const { return ended_.load(); }

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
  std::string key_;       // that it has taken; empty: none
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

 private:
  std::shared_ptr<CsiCall> call_;
};

// What is done for an RPC. It outlives the calls.
struct CsiRow {
  // Whether it waits for the records of earlier runs; before that it is answered Unavailable.
  bool needs_records = true;
  // On the control thread. It must not block, and finishes the call now or later.
  std::function<void(const std::shared_ptr<CsiCall>&)> handle;
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
  // calls; InvalidArgument if it is no request, or one that breaks a rule (csi_request_rules.h);
  // Unavailable if the row waits for the records; Aborted if another call has what it is about.
  // Only a call that changes something has anything for itself.
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
  Status Admit(CsiCall& call, bool needs_records) EXCLUDES(mu_);
  // Notes that the call is under way; false if all were ended.
  bool Note(const std::shared_ptr<CsiCall>& call) EXCLUDES(mu_);
  void Ended(CsiCall& call, const Status& status) EXCLUDES(mu_);
  void Answer(CsiCall& call, const grpc::Status& status);
  void Tell(const CsiCall& call, const Status& status, const grpc::Status& answered);

  const Parts parts_;
  CsiAdmission admission_;
  std::atomic<bool> records_loaded_{false};
  Mutex mu_;
  bool are_ended_ GUARDED_BY(mu_) = false;
  std::set<std::shared_ptr<CsiCall>> open_ GUARDED_BY(mu_);
};

}  // namespace volumed
