#include "os/child_look.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "base/descriptor.h"

namespace volumed {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// How long a killed child is waited for.
constexpr auto kEndPatience = std::chrono::milliseconds(50);
// Somebody else has ended a child: that says nothing of the place. One that ends itself does so
// again.
constexpr int kTries = 4;

struct Child {
  const std::function<std::string()>* look = nullptr;
  int tries = 0;
  pid_t pid = -1;
  Descriptor answer;
  std::string text;
  bool is_done = false;
};

[[noreturn]] void LookAndEnd(const std::function<std::string()>& look, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // One that waits for ever must keep nothing of ours open: not the caller's output, no lock.
  constexpr int kOut = 0;
  if (::dup2(out, kOut) < 0 || ::close_range(kOut + 1, ~0U, 0) != 0) ::_exit(1);
  const std::string text = look();
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(kOut, text.data() + done, text.size() - done);
    if (written <= 0) ::_exit(1);
    done += static_cast<size_t>(written);
  }
  ::_exit(0);
}

Result<Child> Start(const std::function<std::string()>& look, int tries = 1) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error::FromErrno(errno, "make a pipe", Outcome::kNotApplied);
  }
  Child child;
  child.look = &look;
  child.tries = tries;
  child.answer = Descriptor(ends[0]);
  const Descriptor out(ends[1]);
  child.pid = ::fork();
  if (child.pid < 0) return Error::FromErrno(errno, "start a process", Outcome::kNotApplied);
  if (child.pid == 0) LookAndEnd(look, out.get());
  return child;
}

// Takes what can be read. At the end of the answer the child's status says whether it is whole.
void Read(Child& child, bool may_try_again) {
  std::array<char, 4096> part;
  const ssize_t size = ::read(child.answer.get(), part.data(), part.size());
  if (size < 0 && errno == EINTR) return;
  if (size > 0) {
    child.text.append(part.data(), static_cast<size_t>(size));
    return;
  }
  child.answer = Descriptor();
  int status = 0;
  const bool has_ended = ::waitpid(child.pid, &status, 0) == child.pid;
  child.is_done = has_ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  child.pid = -1;
  if (!may_try_again || !has_ended || !WIFSIGNALED(status) || child.tries == kTries) return;
  Result<Child> again = Start(*child.look, child.tries + 1);
  if (again.ok()) child = *std::move(again);
}

// Reads from all that have something to say; false once nobody is waited for.
bool ReadSome(std::vector<Child>& children, SteadyTime end, bool may_try_again) {
  std::vector<pollfd> polled;
  std::vector<Child*> of;
  for (Child& child : children) {
    if (!child.answer.valid()) continue;
    polled.push_back({child.answer.get(), POLLIN, 0});
    of.push_back(&child);
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  if (of.empty() || left.count() <= 0) return false;
  if (::poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0) {
    return errno == EINTR;
  }
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) Read(*of[i], may_try_again);
  }
  return true;
}

}  // namespace

Result<std::vector<std::optional<std::string>>> LookInChildren(
    const std::vector<std::function<std::string()>>& looks, Duration patience) {
  const SteadyTime end = std::chrono::steady_clock::now() + patience;
  std::vector<Child> children;
  Status started;
  for (const auto& look : looks) {
    Result<Child> child = Start(look);
    if (!child.ok()) {
      started = child.error();
      break;
    }
    children.push_back(std::move(child).value());
  }
  while (started.ok() && ReadSome(children, end, /*may_try_again=*/true)) {
  }
  for (const Child& child : children) {
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
  }
  // Most end now, and their descriptors with them.
  const SteadyTime ended = std::chrono::steady_clock::now() + kEndPatience;
  while (ReadSome(children, ended, /*may_try_again=*/false)) {
  }
  std::vector<std::optional<std::string>> answers;
  answers.reserve(children.size());
  for (Child& child : children) {
    answers.push_back(child.is_done ? std::optional(std::move(child.text)) : std::nullopt);
  }
  RETURN_IF_ERROR(started);
  return answers;
}

}  // namespace volumed
