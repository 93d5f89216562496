#include "os/worker_minder.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>
#include <thread>

namespace volumed {
namespace {

// A socket that cannot be watched counts as closed: then each request still has its whole time.
void WaitForHangUp(int socket) {
  pollfd wait = {socket, 0, 0};
  while (::poll(&wait, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

WorkerMinder::WorkerMinder(int socket) {
  // The thread inherits the mask: signals are for the worker's own thread.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([socket, state = state_] { Run(socket, state); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerMinder::Begin(std::optional<Duration> time_left) {
  MutexLock lock(state_->mu);
  state_->kill_at.reset();
  if (time_left) state_->kill_at = RealClock().Now() + *time_left + kGrace;
  state_->changed.NotifyOne();
}

void WorkerMinder::End() {
  MutexLock lock(state_->mu);
  state_->kill_at.reset();
}

void WorkerMinder::Run(int socket, const std::shared_ptr<State>& state) {
  WaitForHangUp(socket);
  const RealClock clock;
  MutexLock lock(state->mu);
  while (true) {
    if (!state->kill_at) {
      // A request that the agent sent before its end may still begin.
      state->changed.Wait(state->mu);
      continue;
    }
    const Duration left = *state->kill_at - clock.Now();
    if (left <= Duration::zero()) ::kill(0, SIGKILL);  // this process is in the group, too
    state->changed.WaitFor(state->mu, left);
  }
}

}  // namespace volumed
