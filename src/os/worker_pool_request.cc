// WorkerPool: one request, from the worker that it is sent to until its answer, or the end of the
// worker.
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "os/worker_codec.h"
#include "os/worker_pool.h"
#include "os/worker_pool_call.h"

namespace volumed {
namespace {

// None of these is a key of the configuration: what they bound is the same on every node, and none
// makes an answer later by more than a second.

// Warm isolated workers that are kept; more end when their request does.
constexpr size_t kMaxIdle = 4;
// A dead worker is found out when a request is sent to it; so often another one is tried.
constexpr int kSendAttempts = 3;
// How long a call waits to see its killed worker die, so that the answer is usually final.
constexpr std::chrono::milliseconds kSeeItDie(50);
// How long a cancelled request may take to reach a safe point.
constexpr std::chrono::seconds kCancelGrace(1);

// False for a deadline that has passed while nothing came.
bool PollUntil(pollfd* fds, nfds_t count, std::optional<TimePoint> until, const Clock& clock) {
  while (true) {
    timespec limit = {};
    if (until) {
      const Duration left = std::max(Duration::zero(), Duration(*until - clock.Now()));
      limit = {static_cast<time_t>(left.count() / 1000000000),
               static_cast<long>(left.count() % 1000000000)};
    }
    const int ready = ::ppoll(fds, count, until ? &limit : nullptr, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return true;  // let the receiver say what is wrong
  }
}

}  // namespace

Result<AnyAnswer> WorkerPool::Do(const AnyRequest& request, const CallOptions& options) {
  Call call(request, options);
  if (options.cancel != nullptr) {
    call.cancel_event.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const int event = call.cancel_event.get();
    options.cancel->OnCancel([this, &call, event] {
      call.cancel_seen.store(true);
      ::eventfd_write(event, 1);
      MutexLock lock(mu_);
      WakeWaiters();
    });
  }
  Result<AnyAnswer> answer = [&]() -> Result<AnyAnswer> {
    RETURN_IF_ERROR(Admit(call));
    Result<AnyAnswer> served = Serve(call);
    Leave(call);
    return served;
  }();
  if (options.cancel != nullptr) options.cancel->OnCancel(nullptr);
  return answer;
}

Result<AnyAnswer> WorkerPool::Serve(Call& call) {
  {
    MutexLock lock(mu_);
    RETURN_IF_ERROR(keys_.Take(call.Keys(), call.Name()));
  }
  Result<AnyAnswer> answer = [&]() -> Result<AnyAnswer> {
    ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> worker, SendToWorker(call));
    return AwaitAnswer(call, std::move(worker));
  }();
  if (call.lost) return answer;  // its keys are held until its worker is dead
  MutexLock lock(mu_);
  keys_.GiveBack(call.Keys());
  return answer;
}

Result<std::unique_ptr<WorkerProcess>> WorkerPool::TakeWorker(const Call& call) {
  std::string key_directory;
  {
    MutexLock lock(mu_);
    std::vector<std::unique_ptr<WorkerProcess>>& warm = call.options.domain.empty() ? fast_ : idle_;
    if (!warm.empty()) {
      std::unique_ptr<WorkerProcess> worker = std::move(warm.back());
      warm.pop_back();
      return worker;
    }
    ++stats_.spawned;
    key_directory = key_directory_;
  }
  Result<std::unique_ptr<WorkerProcess>> worker = start_(key_directory);
  if (worker.ok()) return worker;
  return Error::FromParts(Code::kUnavailable, Outcome::kNotApplied, worker.error().sys_errno(),
                          call.Name() + ": " + worker.error().message());
}

void WorkerPool::GiveBack(Call& call, std::unique_ptr<WorkerProcess> worker) {
  {
    MutexLock lock(mu_);
    const bool is_fast = call.options.domain.empty();
    std::vector<std::unique_ptr<WorkerProcess>>& warm = is_fast ? fast_ : idle_;
    if (warm.size() < (is_fast ? static_cast<size_t>(fast_workers_) : kMaxIdle)) {
      warm.push_back(std::move(worker));
    }
  }
  if (worker != nullptr) Abandon(call, std::move(worker), false);
}

// The worker that has the request now. A worker that died while it was idle did nothing, so another
// may have it.
Result<std::unique_ptr<WorkerProcess>> WorkerPool::SendToWorker(Call& call) {
  const Deadline& deadline = call.options.deadline;
  const bool may_be_killed = !call.options.must_finish && !deadline.infinite();
  const std::string body =
      EncodeRequest(call.request, call.options,
                    may_be_killed ? std::make_optional(deadline.Remaining(clock_)) : std::nullopt);
  const bool secret = HasSecret(call.request);
  const std::vector<std::string> keys = call.Keys();
  for (int attempt = 1;; ++attempt) {
    ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> worker, TakeWorker(call));
    call.sent_at = clock_.Now();
    if (worker->keys() != nullptr) worker->keys()->Write(keys, call.About(worker->pid()));
    const Status sent = worker->channel().Send(MessageKind::kBody, body, secret);
    if (sent.ok()) {
      MutexLock lock(mu_);
      ++stats_.requests;
      return worker;
    }
    Abandon(call, std::move(worker), false);
    if (attempt < kSendAttempts) continue;
    return Error::FromParts(Code::kUnavailable, Outcome::kNotApplied, sent.error().sys_errno(),
                            call.Name() + ": " + sent.error().message());
  }
}

Result<AnyAnswer> WorkerPool::AwaitAnswer(Call& call, std::unique_ptr<WorkerProcess> worker) {
  WorkerChannel& channel = worker->channel();
  pollfd fds[2] = {{channel.fd(), POLLIN, 0}, {call.cancel_event.get(), POLLIN, 0}};
  std::optional<TimePoint> deadline;
  if (!call.options.deadline.infinite()) deadline = call.options.deadline.when();
  std::optional<TimePoint> cancel_limit;
  bool slow = false;
  while (true) {
    const bool bounded = !call.options.must_finish || !slow;
    std::optional<TimePoint> until = bounded ? deadline : std::nullopt;
    if (cancel_limit && !call.options.must_finish) {
      until = until ? std::min(*until, *cancel_limit) : *cancel_limit;
    }
    if (!PollUntil(fds, call.cancel_event.valid() ? 2 : 1, until, clock_)) {
      if (call.options.must_finish) {
        slow = true;
        MutexLock lock(mu_);
        ++stats_.slow_now;
        continue;
      }
      const bool by_cancel = cancel_limit && *until == *cancel_limit;
      return KillWorker(
          call, std::move(worker),
          by_cancel
              ? Error::MaybeApplied(Code::kCancelled, call.Name() + ": cancelled, and did not stop")
              : Error::MaybeApplied(Code::kDeadlineExceeded, call.Name() + ": no answer in time"));
    }
    if (fds[0].revents == 0) {
      // Only once: the event stays readable, and is no longer looked at.
      fds[1].fd = -1;
      cancel_limit = clock_.Now() + kCancelGrace;
      // A worker that is gone is noticed on its socket.
      (void)channel.Send(MessageKind::kCancel, "").ok();
      continue;
    }
    Result<std::optional<WorkerMessage>> message = channel.Receive(true);
    if (message.ok() && message->has_value() && (*message)->kind == MessageKind::kProgress) {
      Answered(call);
      if (call.options.progress) {
        call.options.progress(ParseInt64((*message)->body).value_or(0));
      }
      continue;
    }
    if (slow) {
      MutexLock lock(mu_);
      --stats_.slow_now;
    }
    if (!message.ok() || !message->has_value()) return Died(call, std::move(worker));
    Result<AnyAnswer> answer = DecodeAnswer((*message)->body, std::move((*message)->descriptor));
    Answered(call);
    GiveBack(call, std::move(worker));
    if (!answer.ok() && answer.error().code() == Code::kCancelled) {
      MutexLock lock(mu_);
      ++stats_.cancelled;
    }
    return answer;
  }
}

Result<AnyAnswer> WorkerPool::Died(Call& call, std::unique_ptr<WorkerProcess> worker) {
  // Tools that it started must not go on without it. It keeps its own way of ending: its sockets
  // are closed after that is settled.
  worker->Kill();
  const bool dead = worker->WaitForDeath(kSeeItDie);
  const std::string how = worker->how_it_ended();
  {
    MutexLock lock(mu_);
    ++stats_.died;
  }
  if (!dead) Abandon(call, std::move(worker), true);
  return Error::MaybeApplied(Code::kUnavailable,
                             call.Name() + ": the worker died" + (how.empty() ? "" : ", " + how));
}

// The answer may have been on its way when the worker was killed: then it counts.
Result<AnyAnswer> WorkerPool::KillWorker(Call& call, std::unique_ptr<WorkerProcess> worker,
                                         Error error) {
  worker->Kill();
  {
    MutexLock lock(mu_);
    ++stats_.killed;
  }
  const bool dead = worker->WaitForDeath(kSeeItDie);
  Result<AnyAnswer> answer = error;
  while (true) {
    Result<std::optional<WorkerMessage>> message = worker->channel().Receive(false);
    if (!message.ok() || !message->has_value()) break;
    if ((*message)->kind != MessageKind::kBody) continue;
    answer = DecodeAnswer((*message)->body, std::move((*message)->descriptor));
    break;
  }
  if (!dead) Abandon(call, std::move(worker), true);
  if (answer.ok() || answer.error() != error) {
    Answered(call);
    return answer;
  }
  MutexLock lock(mu_);
  if (error.code() == Code::kCancelled) {
    ++stats_.cancelled;
  } else {
    ++stats_.deadline_exceeded;
    lanes_.NotAnswered(call.options.domain, call.sent_at);
  }
  return error;
}

void WorkerPool::Abandon(Call& call, std::unique_ptr<WorkerProcess> worker, bool killed) {
  LostWorker lost;
  lost.killed = killed;
  lost.let_go = clock_.Now();
  if (killed) {
    call.lost = true;
    lost.operation = {.key = call.options.key,
                      .more_keys = call.options.more_keys,
                      .domain = call.options.domain,
                      .request = std::string(RequestName(call.request)),
                      .path = RequestPath(call.request),
                      .pid = worker->pid(),
                      .since = call.sent_at};
    MutexLock lock(mu_);
    lanes_.Lose(call.options.domain);
  }
  lost.process = std::move(worker);
  LetGo(std::move(lost));
}

void WorkerPool::LetGo(LostWorker lost) {
  lost.process->channel().Close();
  reaper_->Add(std::move(lost));
}

}  // namespace volumed
