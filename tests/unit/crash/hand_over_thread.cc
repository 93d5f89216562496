#include "unit/crash/hand_over_thread.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace volumed {
namespace {

// No turn takes so long, on a busy machine and under a sanitizer either.
constexpr auto kLost = std::chrono::seconds(120);

}  // namespace

HandOverThread::HandOverThread(Task task, std::string title)
    : task_(std::move(task)), title_(std::move(title)) {}

HandOverThread::~HandOverThread() { End(); }

void HandOverThread::End() {
  if (!thread_.joinable()) return;
  if (!has_ended_) {
    is_ending_ = true;
    GiveTurn(Turn::kTask);
    AwaitTurn(Turn::kDriver);
  }
  thread_.join();
}

bool HandOverThread::Resume() {
  GiveTurn(Turn::kTask);
  if (!thread_.joinable()) thread_ = std::thread([this] { Main(); });
  AwaitTurn(Turn::kDriver);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return has_ended_;
}

void HandOverThread::Suspend() {
  GiveTurn(Turn::kDriver);
  AwaitTurn(Turn::kTask);
  if (is_ending_) throw Unwound{};
}

void HandOverThread::Main() {
  AwaitTurn(Turn::kTask);
  try {
    task_();
  } catch (const Unwound&) {
  } catch (...) {
    thrown_ = std::current_exception();
  }
  task_ = nullptr;
  has_ended_ = true;
  GiveTurn(Turn::kDriver);
}

void HandOverThread::GiveTurn(Turn turn) {
  const MutexLock lock(mu_);
  turn_ = turn;
  changed_.NotifyAll();
}

void HandOverThread::AwaitTurn(Turn turn) {
  const auto lost_at = std::chrono::steady_clock::now() + kLost;
  const MutexLock lock(mu_);
  while (turn_ != turn) {
    if (changed_.WaitFor(mu_, std::chrono::seconds(1))) continue;
    if (std::chrono::steady_clock::now() < lost_at) continue;
    std::cerr << title_ << ": somebody waits for a lock that a suspended operation holds, or for "
              << "an operation that has not begun\n";
    std::abort();
  }
}

}  // namespace volumed
