#include "csi/rpc/csi_channel_core.h"

#include <grpc/support/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <utility>

#include "csi/rpc/csi_stream.h"

namespace volumed {
namespace {

constexpr size_t kRequestText = 2048;
constexpr size_t kAnswerText = 512;
constexpr int kWriterBlock = 1024 * 1024;  // as gRPC has it
constexpr const char* kClosed = "the driver is no longer used";
constexpr const char* kCancelledWaiting = "cancelled while it waited to be sent";
constexpr const char* kLateWaiting = "its time was over while it waited to be sent";

// A span from now on: it does not care whether the machine's wall clock is set.
gpr_timespec SpanOf(Duration left) { return gpr_time_from_nanos(left.count(), GPR_TIMESPAN); }

CsiFailure NeverSent(Code code, std::string message) {
  return {.code = code, .message = std::move(message), .never_sent = true};
}

// Null if it cannot be read.
std::unique_ptr<google::protobuf::Message> MessageFrom(const CsiMethod& method,
                                                       grpc::ByteBuffer& bytes) {
  // OK without a message is no answer; an empty message is one.
  if (!bytes.Valid()) return nullptr;
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.response)->New());
  grpc::ProtoBufferReader reader(&bytes);
  return message->ParseFromZeroCopyStream(&reader) ? std::move(message) : nullptr;
}

// "unix:/a/b.sock: Connection refused" of gRPC's "failed to connect to all addresses; last error:
// UNKNOWN: unix:/a/b.sock: Connection refused".
std::string WhyNoConnection(const std::string& message) {
  constexpr std::string_view kBefore = "last error: ";
  const size_t at = message.find(kBefore);
  if (at == std::string::npos) return message;
  const std::string last = message.substr(at + kBefore.size());
  const size_t code_end = last.find(": ");
  return code_end == std::string::npos ? last : last.substr(code_end + 2);
}

}  // namespace

void CsiChannel::Core::Start(const google::protobuf::Message& request,
                             const CsiCallOptions& options, Done done) {
  const Call call = NewCall();
  call->method = CsiMethodOf(request.GetDescriptor());
  if (call->method == nullptr) {
    return done(Error::NotApplied(Code::kInvalidArgument, options_.driver + ": " +
                                                              request.GetDescriptor()->full_name() +
                                                              " is no request of an RPC"));
  }
  call->done = std::move(done);
  std::optional<CsiFailure> failure = Prepare(*call, request, options);
  if (call->cancel != nullptr) {
    // Before it waits: so whoever ends it knows of the hook.
    call->cancel_hook = call->cancel->Add(
        [weak_core = weak_from_this(), weak_call = std::weak_ptr<CsiPendingCall>(call)] {
          const std::shared_ptr<Core> core = weak_core.lock();
          const Call cancelled = weak_call.lock();
          if (core != nullptr && cancelled != nullptr) core->Cancel(cancelled);
        });
  }
  if (!Enqueue(call, std::move(failure))) return;
  Pump();
  ArmDeadline(call);
}

CsiChannel::Core::Call CsiChannel::Core::NewCall() {
  {
    MutexLock lock(mu_);
    ++callbacks_;
  }
  return {new CsiPendingCall, [core = shared_from_this()](CsiPendingCall* call) {
            delete call;
            core->Returned();
          }};
}

std::optional<CsiFailure> CsiChannel::Core::Prepare(CsiPendingCall& call,
                                                    const google::protobuf::Message& request,
                                                    const CsiCallOptions& options) const {
  call.asked = clock_.Now();
  call.deadline = options.deadline.infinite() ? Deadline::After(clock_, options_.longest_call)
                                              : options.deadline;
  call.cancel = options.cancel;
  call.secrets = CsiSecrets(request, options.secrets);
  call.report = {.driver = options_.driver,
                 .method = call.method,
                 .key = CsiKeyOf(*call.method, request),
                 .asked_unix_ms = clock_.WallUnixMillis(),
                 .migrated = options.migrated,
                 .request = call.secrets.StrippedText(request, kRequestText)};
  if (call.method->streaming) call.stream = options.stream;
  if (call.method->streaming && call.stream == nullptr) {
    return NeverSent(Code::kUnimplemented, "its answer is a stream, which is not read here");
  }
  const size_t size = request.ByteSizeLong();
  if (size > options_.most_sent_bytes) {
    return NeverSent(Code::kResourceExhausted, "the request has more than " +
                                                   std::to_string(options_.most_sent_bytes) +
                                                   " bytes, and is not sent");
  }
  grpc::ProtoBufferWriter writer(&call.request, kWriterBlock, static_cast<int>(size));
  if (!request.SerializeToZeroCopyStream(&writer)) {
    return NeverSent(Code::kInternal, "the request cannot be written");
  }
  return std::nullopt;
}

bool CsiChannel::Core::Enqueue(const Call& call, std::optional<CsiFailure> failure) {
  {
    MutexLock lock(mu_);
    call->id = next_id_++;
    open_.emplace(call->id, call);
    if (closed_) {
      failure = NeverSent(Code::kCancelled, kClosed);
    } else if (call->cancel != nullptr && call->cancel->cancelled()) {
      failure = NeverSent(Code::kCancelled, kCancelledWaiting);
    }
    call->phase = failure ? CsiPendingCall::Phase::kEnded : CsiPendingCall::Phase::kWaiting;
    if (!failure) waiting_.push_back(call);
  }
  if (failure) End(call, ErrorOf(*call, *failure));
  return !failure;
}

void CsiChannel::Core::ArmDeadline(const Call& call) {
  {
    MutexLock lock(mu_);
    if (call->phase != CsiPendingCall::Phase::kWaiting) return;
  }
  // The alarm keeps its function also after it has run, so that function must not keep the call.
  call->alarm.Set(
      SpanOf(call->deadline.Remaining(clock_)),
      [weak_core = weak_from_this(), weak_call = std::weak_ptr<CsiPendingCall>(call)](bool fired) {
        const std::shared_ptr<Core> core = weak_core.lock();
        const Call late = weak_call.lock();
        if (!fired || core == nullptr || late == nullptr) return;
        core->GiveUp(late, NeverSent(Code::kDeadlineExceeded, kLateWaiting));
      });
  bool too_late = false;
  {
    MutexLock lock(mu_);
    call->alarm_set = true;
    too_late = call->phase != CsiPendingCall::Phase::kWaiting;
  }
  if (too_late) call->alarm.Cancel();
}

void CsiChannel::Core::Pump() {
  {
    MutexLock lock(mu_);
    if (pumping_) return;
    pumping_ = true;
  }
  for (;;) {
    const Turn turn = NextTurn();
    if (turn.call == nullptr) return;
    if (turn.cancel_alarm) turn.call->alarm.Cancel();
    Send(turn);
  }
}

CsiChannel::Core::Turn CsiChannel::Core::NextTurn() {
  MutexLock lock(mu_);
  if (!MaySend()) {
    // By the same lock, so whoever makes something possible after this pumps itself.
    pumping_ = false;
    return {};
  }
  const Call call = waiting_.front();
  waiting_.pop_front();
  call->phase = CsiPendingCall::Phase::kUnderWay;
  ++under_way_;
  return {call, channel_, call->alarm_set};
}

bool CsiChannel::Core::MaySend() const {
  if (closed_ || waiting_.empty() || under_way_ >= options_.width) return false;
  switch (connection_.state) {
    case CsiConnectionState::kIdle:
    case CsiConnectionState::kConnecting:
      // Kept here, a call that does not live to see the connection is known not to be sent.
      return flaps_;
    case CsiConnectionState::kReady:
    case CsiConnectionState::kTransientFailure:  // gRPC says why
    case CsiConnectionState::kShutdown:
      return true;
  }
  return true;
}

void CsiChannel::Core::Send(const Turn& turn) {
  const Call& call = turn.call;
  const Duration left = call->deadline.Remaining(clock_);
  if (left == Duration::zero()) {
    return Settle(call, ErrorOf(*call, NeverSent(Code::kDeadlineExceeded, kLateWaiting)));
  }
  {
    MutexLock lock(mu_);
    call->sent = clock_.Now();
    call->report.waited = *call->sent - call->asked;
    call->report.sent = true;
  }
  for (CsiCallObserver* observer : options_.observers) observer->CallSent(call->report);
  call->context.set_deadline(SpanOf(left));
  grpc::GenericStub stub(turn.channel);
  const auto ended = [core = shared_from_this(), call](const grpc::Status& status) {
    core->Settle(call, core->AnswerOf(*call, status));
  };
  if (call->stream != nullptr) {
    return ReadCsiStream(stub, call->method->path,
                         {call->context, call->request, call->answer, *call->stream}, ended);
  }
  stub.UnaryCall(&call->context, call->method->path, {}, &call->request, &call->answer, ended);
}

CsiChannel::AnyAnswer CsiChannel::Core::AnswerOf(CsiPendingCall& call,
                                                 const grpc::Status& status) const {
  if (status.ok()) {
    if (auto message = MessageFrom(*call.method, call.answer)) return message;
    return ErrorOf(call, {Code::kInternal, "it answered OK, with what is no answer of this RPC"});
  }
  CsiFailure failure{CsiCode(status.error_code()), status.error_message()};
  if (CsiNeverConnected(status.error_code(), status.error_message(), call.context.peer())) {
    failure = NeverSent(Code::kUnavailable, "no connection: " + WhyNoConnection(failure.message));
  }
  return ErrorOf(call, failure);
}

void CsiChannel::Core::Settle(const Call& call, AnyAnswer answer) {
  {
    MutexLock lock(mu_);
    call->phase = CsiPendingCall::Phase::kEnded;
    --under_way_;
  }
  Pump();
  End(call, std::move(answer));
}

void CsiChannel::Core::GiveUp(const Call& call, const CsiFailure& failure) {
  bool cancel_alarm = false;
  {
    MutexLock lock(mu_);
    if (call->phase != CsiPendingCall::Phase::kWaiting) return;
    call->phase = CsiPendingCall::Phase::kEnded;
    std::erase(waiting_, call);
    cancel_alarm = call->alarm_set;
  }
  if (cancel_alarm) call->alarm.Cancel();
  End(call, ErrorOf(*call, failure));
}

void CsiChannel::Core::Cancel(const Call& call) {
  bool under_way = false;
  {
    MutexLock lock(mu_);
    under_way = call->phase == CsiPendingCall::Phase::kUnderWay;
  }
  // What has become of it meanwhile, gRPC and GiveUp() see themselves.
  if (under_way) return call->context.TryCancel();
  GiveUp(call, NeverSent(Code::kCancelled, kCancelledWaiting));
}

void CsiChannel::Core::End(const Call& call, AnyAnswer answer) {
  if (call->cancel != nullptr) call->cancel->Remove(call->cancel_hook);
  const TimePoint now = clock_.Now();
  CsiCallReport& report = call->report;
  {
    MutexLock lock(mu_);
    open_.erase(call->id);
    const TimePoint sent = call->sent.value_or(now);
    report.waited = sent - call->asked;
    report.duration = now - sent;
    report.sent = call->sent.has_value();
  }
  if (answer.ok()) {
    // No field of an answer is marked, but a driver may hand on what it was given.
    report.answer = call->secrets.StrippedText(**answer, kAnswerText);
  } else {
    report.sent = report.sent && !answer.error().IsAbout(kCsiNeverSent);
    report.error = answer.error();
  }
  for (CsiCallObserver* observer : options_.observers) observer->CallEnded(report);
  const Done done = std::exchange(call->done, nullptr);
  done(std::move(answer));
}

Error CsiChannel::Core::ErrorOf(const CsiPendingCall& call, const CsiFailure& failure) const {
  return CsiError(options_.driver, *call.method, failure, call.secrets);
}

Status CsiChannel::Core::Dial() {
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel,
                   ConnectCsi(options_.socket, options_.connection));
  std::shared_ptr<grpc::Channel> before = channel;
  uint64_t generation = 0;
  {
    MutexLock lock(mu_);
    if (closed_) return OkStatus();
    before.swap(channel_);
    generation = ++generation_;
    flaps_ = false;
    if (generation == 1 || connection_.state != CsiConnectionState::kIdle) {
      connection_ = {CsiConnectionState::kIdle, clock_.Now()};
    }
  }
  if (before != nullptr) watch_.Retire(std::move(before));
  watch_.Watch(channel, options_.connection.retry_after,
               [weak = weak_from_this(), generation](std::optional<CsiConnectionState> state) {
                 const std::shared_ptr<Core> core = weak.lock();
                 return core != nullptr && core->StateSeen(generation, state);
               });
  return OkStatus();
}

bool CsiChannel::Core::StateSeen(uint64_t generation, std::optional<CsiConnectionState> state) {
  bool changed = false;
  {
    MutexLock lock(mu_);
    if (closed_ || generation != generation_) return false;
    flaps_ = Flaps(state);
    changed = state && *state != connection_.state;
    if (changed) connection_ = {*state, clock_.Now()};
    ++callbacks_;
  }
  Pump();
  if (changed && options_.connection_changed) options_.connection_changed();
  Returned();
  return true;
}

bool CsiChannel::Core::Flaps(std::optional<CsiConnectionState> state) const {
  if (!state) return true;
  switch (*state) {
    case CsiConnectionState::kIdle:
      return connection_.state != CsiConnectionState::kReady;
    case CsiConnectionState::kConnecting:
      return flaps_ || connection_.state == CsiConnectionState::kConnecting;
    case CsiConnectionState::kReady:
    case CsiConnectionState::kTransientFailure:
    case CsiConnectionState::kShutdown:
      return false;
  }
  return false;
}

void CsiChannel::Core::Returned() {
  MutexLock lock(mu_);
  --callbacks_;
  if (callbacks_ == 0) all_returned_.NotifyAll();
}

void CsiChannel::Core::Close() {
  std::vector<Call> calls;
  {
    MutexLock lock(mu_);
    closed_ = true;
    for (const auto& [id, call] : open_) calls.push_back(call);
  }
  for (const Call& call : calls) {
    GiveUp(call, NeverSent(Code::kCancelled, kClosed));
    Cancel(call);
  }
  calls.clear();
  std::shared_ptr<grpc::Channel> channel;  // goes after the lock
  MutexLock lock(mu_);
  while (callbacks_ > 0) all_returned_.Wait(mu_);
  channel.swap(channel_);
}

CsiConnection CsiChannel::Core::connection() const {
  MutexLock lock(mu_);
  return connection_;
}

std::vector<CsiOpenCall> CsiChannel::Core::Open() const {
  std::vector<CsiOpenCall> calls;
  MutexLock lock(mu_);
  for (const auto& [id, call] : open_) {
    calls.push_back({call->method, call->report.key, call->asked, call->sent});
  }
  return calls;
}

}  // namespace volumed
