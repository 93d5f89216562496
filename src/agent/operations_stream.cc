#include "agent/operations_stream.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "agent/view_codec.h"
#include "base/printable_text.h"
#include "volumemanager/failure_history.h"

namespace volumed {
namespace {

constexpr int64_t kDefaultIntervalMs = 1000;
constexpr int64_t kMinIntervalMs = 100;
constexpr int64_t kMaxIntervalMs = 60'000;
// The limit for operations, and for stuck ones, in one answer.
constexpr size_t kMaxShown = 200;

}  // namespace

Status OperationsStream::Begin() {
  const int64_t asked = request_.interval_ms() == 0 ? kDefaultIntervalMs : request_.interval_ms();
  if (asked < kMinIntervalMs || asked > kMaxIntervalMs) {
    return Error::NotApplied(Code::kInvalidArgument, "interval_ms must be between " +
                                                         std::to_string(kMinIntervalMs) + " and " +
                                                         std::to_string(kMaxIntervalMs));
  }
  interval_ = std::chrono::milliseconds(asked);
  if (!request_.once()) {
    observer_ = backend().manager.observers().Add([this](const PodUid&) { Changed(); });
  }
  return OkStatus();
}

void OperationsStream::Unsubscribe() {
  if (observer_ != 0) backend().manager.observers().Remove(observer_);
  if (timer_ != 0) backend().scheduler.Cancel(std::exchange(timer_, 0));
}

void OperationsStream::Changed() {
  changed_ = true;
  if (timer_ == 0) Send();
}

void OperationsStream::TimerFired() {
  timer_ = 0;
  if (changed_ || busy_) Send();
}

Result<OperationsStream::Next> OperationsStream::Fill(v1::WatchOperationsResponse* response) {
  const int64_t now = backend().scheduler.clock().WallUnixMillis();
  response->set_now_unix_ms(now);
  std::vector<RunningOperation> running = backend().operations.Running();
  std::sort(running.begin(), running.end(), [](const auto& a, const auto& b) {
    return std::tie(a.since_unix_ms, a.key) < std::tie(b.since_unix_ms, b.key);
  });
  Samples samples;
  for (size_t i = 0; i < std::min(running.size(), kMaxShown); ++i) {
    v1::RunningOperation* out = response->add_operations();
    if (!running[i].key.is_device()) {
      *out->mutable_pod() = MakePodRef(running[i].key.pod, backend().manager);
    }
    AddOperation(running[i], now, samples, out);
  }
  samples_ = std::move(samples);
  response->set_operations_not_shown(static_cast<int64_t>(running.size()) -
                                     response->operations_size());
  const std::vector<StuckOperation> stuck = backend().stuck();
  for (size_t i = 0; i < std::min(stuck.size(), kMaxShown); ++i) {
    EncodeStuck(stuck[i], backend().scheduler.clock(), response->add_stuck());
  }
  response->set_stuck_not_shown(static_cast<int64_t>(stuck.size()) - response->stuck_size());
  const std::vector<OwedView> owed = backend().manager.storage().Owed();
  for (size_t i = 0; i < std::min(owed.size(), kMaxShown); ++i) {
    v1::WaitingOperation* const waiting = response->add_waiting();
    waiting->set_what(owed[i].what);
    EncodeProblemView(owed[i].problem, waiting->mutable_problem());
  }
  response->set_waiting_not_shown(static_cast<int64_t>(owed.size()) - response->waiting_size());
  changed_ = false;
  busy_ = !running.empty() || !stuck.empty() || !owed.empty();
  if (request_.once()) return Next::kLast;
  timer_ = backend().scheduler.PostAfter(interval_, [weak = this->weak_from_this()] {
    const auto self = weak.lock();
    if (self) static_cast<OperationsStream&>(*self).TimerFired();
  });
  return Next::kMore;
}

void OperationsStream::AddOperation(const RunningOperation& running, int64_t now, Samples& samples,
                                    v1::RunningOperation* out) const {
  const std::string key = running.key.ToString() + " " + running.operation;
  out->set_volume(running.key.is_device() ? running.key.device.str() : running.key.spec.str());
  out->set_operation(running.operation);
  out->set_step(running.step);
  out->set_since_unix_ms(running.since_unix_ms);
  out->set_step_since_unix_ms(running.step_since_unix_ms);
  if (running.waits_for) {
    out->set_waits_for(PrintableText(running.waits_for->text));
    out->set_who_must_act(WhoEndsTheWait(*running.waits_for));
  }
  out->set_awaited(running.awaited.whom);
  out->set_awaited_since_unix_ms(running.awaited.since_unix_ms);
  out->set_done(running.progress);
  out->set_per_second(Rate(running, key, now));
  samples[key] = {running.step, running.progress, now};
}

// The rate since the answer before; without one, or after a new step has begun, the mean since the
// step began.
double OperationsStream::Rate(const RunningOperation& running, const std::string& key,
                              int64_t now) const {
  int64_t done = running.progress;
  int64_t since = running.step_since_unix_ms;
  const auto before = samples_.find(key);
  if (before != samples_.end() && before->second.step == running.step &&
      before->second.done <= done && before->second.at_unix_ms >= since) {
    done -= before->second.done;
    since = before->second.at_unix_ms;
  }
  return now > since && since > 0
             ? 1000.0 * static_cast<double>(done) / static_cast<double>(now - since)
             : 0;
}

}  // namespace volumed
