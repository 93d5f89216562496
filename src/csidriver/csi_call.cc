#include "csidriver/csi_call.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "csidriver/csi_codes.h"
#include "csidriver/csi_request_rules.h"

namespace volumed {
namespace {

using google::protobuf::Message;

constexpr size_t kMostShownRequest = 1024;

std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor& type) {
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New());
}

Error Stops() { return Error::NotApplied(Code::kUnavailable, "the driver stops: try again later"); }

int64_t MillisSince(TimePoint begun, TimePoint now) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - begun).count();
}

}  // namespace

// ---- CsiCall ------------------------------------------------------------------------------------

CsiCall::CsiCall(std::shared_ptr<CsiCalls> calls, CsiArrival arrival, TimePoint begun)
    : calls_(std::move(calls)),
      arrival_(std::move(arrival)),
      begun_(begun),
      request_(NewMessage(*arrival_.method->request)),
      response_(NewMessage(*arrival_.method->response)) {}

void CsiCall::Finish(const Status& status) {
  if (!ended_.exchange(true)) calls_->Ended(*this, status);
}

void CsiCall::Send(const std::shared_ptr<CsiCall>& call, CsiSent sent) {
  CsiCalls& calls = *call->calls_;
  Scheduler& scheduler = calls.parts_.scheduler;
  if (call->has_ended()) return scheduler.Post([sent = std::move(sent)] { sent(false); });
  const TimerId timer = scheduler.PostAfter(calls.longest_untaken_, [call] {
    call->Finish(Error::NotApplied(Code::kDeadlineExceeded,
                                   "the caller has taken no part of the answer for too long"));
  });
  call->arrival_.send(*call->response_, [&scheduler, timer, sent = std::move(sent)](bool taken) {
    scheduler.Cancel(timer);
    scheduler.Post([sent, taken] { sent(taken); });
  });
}

bool CsiCall::is_given_up() const { return has_ended() || arrival_.is_gone(); }

Status CsiCall::Read() {
  if (!arrival_.read(*request_)) {
    return Error::NotApplied(
        Code::kInvalidArgument,
        "the request is no " + arrival_.method->request->name() + ": it cannot be read");
  }
  // It says no value of the request, and what passes it is short enough to be searched for.
  RETURN_IF_ERROR(CheckCsiRequest(*request_));
  if (CsiHasSecrets(*request_)) secrets_ = CsiSecrets(*request_);
  CsiTakeOutSecrets(*request_);
  return OkStatus();
}

// A name is one of volumes, snapshots or groups, by what is to be made.
std::string CsiCall::Key() const {
  const CsiMethod& method = *arrival_.method;
  if (method.kind == CsiRpcKind::kReadOnly || method.key_field.empty()) return "";
  const auto* const field = method.request->FindFieldByName(method.key_field);
  const std::string of = method.key_field == "name" ? method.name + " " : "";
  return of + method.key_field + " " + request_->GetReflection()->GetString(*request_, field);
}

// ---- CsiCalls -----------------------------------------------------------------------------------

std::shared_ptr<CsiCalls> CsiCalls::Make(const Parts& parts, CsiLimits limits) {
  return std::shared_ptr<CsiCalls>(new CsiCalls(parts, limits));
}

CsiCalls::CsiCalls(const Parts& parts, CsiLimits limits)
    : parts_(parts),
      longest_untaken_(limits.longest_untaken),
      admission_(parts.scheduler.clock(), limits) {}

void CsiCalls::Begin(const CsiRow& row, CsiArrival arrival) {
  const auto call = std::make_shared<CsiCall>(shared_from_this(), std::move(arrival),
                                              parts_.scheduler.clock().Now());
  if (const Status admitted = Admit(*call, row); !admitted.ok()) {
    return call->Finish(admitted);
  }
  if (!Note(call)) return call->Finish(Stops());
  parts_.scheduler.Post([call, &row] {
    if (!call->has_ended()) row.handle(call);
  });
}

void CsiCalls::Refuse(const grpc::Status& status, CsiArrival arrival) {
  CsiCall call(shared_from_this(), std::move(arrival), parts_.scheduler.clock().Now());
  call.ended_ = true;
  const Status entered = admission_.Enter(call.peer());
  if (entered.ok()) admission_.Leave(call.peer());
  Answer(call, entered.ok() ? status : CsiStatusOf(entered));
}

Status CsiCalls::Admit(CsiCall& call, const CsiRow& row) {
  RETURN_IF_ERROR(admission_.Enter(call.peer()));
  call.entered_ = true;
  if (row.streams) {
    RETURN_IF_ERROR(admission_.EnterStream(call.peer()));
    call.streams_ = true;
  }
  RETURN_IF_ERROR(call.Read());
  if (row.needs_records && !records_loaded()) {
    return Error::NotApplied(Code::kUnavailable,
                             "the records of earlier runs are being loaded: try again later");
  }
  std::string key = call.Key();
  if (key.empty()) return OkStatus();
  RETURN_IF_ERROR(admission_.Take(key));
  call.key_ = std::move(key);
  return OkStatus();
}

bool CsiCalls::Note(const std::shared_ptr<CsiCall>& call) {
  MutexLock lock(mu_);
  if (!are_ended_) open_.insert(call);
  return !are_ended_;
}

void CsiCalls::End() {
  std::set<std::shared_ptr<CsiCall>> open;
  {
    MutexLock lock(mu_);
    are_ended_ = true;
    open.swap(open_);
  }
  for (const std::shared_ptr<CsiCall>& call : open) call->Finish(Stops());
}

// What the call has is free before its caller hears of it, who may make the next call at once.
void CsiCalls::Ended(CsiCall& call, const Status& status) {
  std::shared_ptr<CsiCall> kept;  // `open_` may have the last hold of it
  {
    MutexLock lock(mu_);
    for (auto at = open_.begin(); at != open_.end(); ++at) {
      if (at->get() != &call) continue;
      kept = *at;
      open_.erase(at);
      break;
    }
  }
  if (!call.key_.empty()) admission_.Release(call.key_);
  if (call.streams_) admission_.LeaveStream(call.peer());
  if (call.entered_) admission_.Leave(call.peer());
  if (status.ok()) {
    Tell(call, status, grpc::Status::OK);
    return Answer(call, grpc::Status::OK);
  }
  const Error& error = status.error();
  const Error clean =
      Error::FromParts(error.code(), error.outcome(), error.sys_errno(),
                       call.secrets_.RemovedFromOurs(error.message(), kMostCsiMessage));
  const grpc::Status answered = CsiStatusOf(clean);
  Tell(call, clean, answered);
  Answer(call, answered);
}

void CsiCalls::Answer(CsiCall& call, const grpc::Status& status) {
  if (parts_.observer != nullptr) {
    std::optional<Code> refused;
    if (!status.ok()) refused = static_cast<Code>(status.error_code());
    parts_.observer->CallAnswered(call.method(), refused,
                                  parts_.scheduler.clock().Now() - call.begun_);
  }
  call.arrival_.answer(status, *call.response_);
}

// The access log. A call that changed something has a line, and so has one that failed; the
// request is shown only to who looks for a fault.
void CsiCalls::Tell(const CsiCall& call, const Status& status, const grpc::Status& answered) {
  Logger& log = parts_.log;
  const CsiMethod& method = call.method();
  const std::string about = CsiKeyOf(method, *call.request_);
  const int64_t took_ms = MillisSince(call.begun_, parts_.scheduler.clock().Now());
  const CsiPeer& peer = call.peer();
  if (log.Enabled(LogLevel::kDebug)) {
    log.Debug("CSI request", {{"rpc", method.name},
                              {"about", about},
                              {"request", CsiStrippedText(*call.request_, kMostShownRequest)}});
  }
  if (status.ok()) {
    const bool is_look = method.kind == CsiRpcKind::kReadOnly || call.changes_nothing_.load();
    log.Log(is_look ? LogLevel::kDebug : LogLevel::kInfo, "CSI call answered",
            {{"rpc", method.name},
             {"about", about},
             {"ms", took_ms},
             {"uid", peer.uid},
             {"pid", peer.pid}});
    return;
  }
  const std::string code(CodeName(static_cast<Code>(answered.error_code())));
  log.LogLimited("csi call " + method.name + " " + code, LogLevel::kWarning, "CSI call failed",
                 {{"rpc", method.name},
                  {"about", about},
                  {"answered", code},
                  {"error", status.error()},
                  {"ms", took_ms},
                  {"uid", peer.uid},
                  {"pid", peer.pid}});
}

}  // namespace volumed
