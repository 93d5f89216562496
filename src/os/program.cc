#include "os/program.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <utility>

#include "base/descriptor.h"
#include "os/process_scope.h"

namespace volumed {
namespace {

// How often the program's own count is looked at; as WorkMeter::kInterval.
constexpr int kProgressMillis = 200;

// Source: proc_pid_io(5).
int64_t BytesDone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/io");
  std::string name;
  int64_t value = 0;
  int64_t sum = 0;
  while (file >> name >> value) {
    if (name == "rchar:" || name == "wchar:") sum += value;
  }
  return sum;
}

// Everything that is there now. False once nobody has the other end any more.
bool Drain(int pipe, size_t keep, std::string* output) {
  std::array<char, 4096> chunk;
  while (true) {
    const ssize_t size = ::read(pipe, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size == 0) return false;
    if (size < 0) return errno == EAGAIN;
    output->append(chunk.data(), static_cast<size_t>(size));
    if (output->size() > keep) output->erase(0, output->size() - keep);
  }
}

// Until the program has ended.
void Follow(const ChildProcess& child, int pipe, const CallOptions& options, size_t keep,
            std::string* output) {
  std::array<pollfd, 2> waits = {{{child.pidfd(), POLLIN, 0}, {pipe, POLLIN, 0}}};
  while (true) {
    const int ready = ::poll(waits.data(), waits.size(), options.progress ? kProgressMillis : -1);
    if (ready < 0) continue;  // EINTR
    if (ready == 0) options.progress(BytesDone(child.pid()));
    // Its output is closed: only its end is left to wait for.
    if (waits[1].revents != 0 && !Drain(pipe, keep, output)) waits[1].fd = -1;
    if (waits[0].revents != 0) return;
  }
}

// A program without its scope is better than none: on a node without systemd it never has one. A
// failure is told on stderr, which is the agent's, once per worker.
void HoldForScope(pid_t pid, const std::string& kind, const std::string& what) {
  const Status moved =
      MoveToScope(pid, ScopeName(kind, what, pid), "volumed: " + kind + " " + what);
  static std::once_flag told;
  if (moved.ok()) return;
  std::call_once(told, [&moved] {
    std::fprintf(stderr, "volumed-worker: no scope of its own for a program: %s\n",
                 moved.error().ToString().c_str());
  });
}

}  // namespace

Result<ProgramOutcome> RunToEnd(const ProgramSetup& setup, const CallOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error::FromErrno(errno, "pipe for " + setup.arguments.at(0), Outcome::kNotApplied);
  }
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  // Only ours: a program is not made for an output that answers EAGAIN.
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  ChildSetup child_setup;
  child_setup.arguments = setup.arguments;
  child_setup.environment = setup.environment;
  child_setup.environment->insert(child_setup.environment->end(),
                                  {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"});
  child_setup.descriptors = {-1, theirs.get(), theirs.get()};
  const auto give = [&child_setup](const std::vector<int>& more) {
    child_setup.descriptors.insert(child_setup.descriptors.end(), more.begin(), more.end());
  };
  give(setup.descriptors);
  if (!setup.scope) {
    give(options.kept_by_tools);
  } else if (!WhyNoScopes()) {
    child_setup.paused = [&setup](pid_t pid) {
      HoldForScope(pid, setup.scope->first, setup.scope->second);
    };
  }
  ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(child_setup));
  theirs.Reset();
  ProgramOutcome outcome;
  Follow(child, ours.get(), options, setup.output_bytes, &outcome.output);
  outcome.end = child.WaitForEnd(Duration::max()).value_or(ChildEnd{});
  Drain(ours.get(), setup.output_bytes, &outcome.output);
  return outcome;
}

Result<ProgramEnd> DoRunProgram(const RunProgram& request, const CallOptions& options) {
  if (request.arguments.empty() || !request.arguments[0].starts_with('/')) {
    return Error::NotApplied(Code::kInvalidArgument, "run: no absolute path of a program is given");
  }
  ProgramSetup setup;
  setup.arguments = request.arguments;
  for (const auto& [number, text] : request.secret_arguments) {
    if (number == 0 || number >= setup.arguments.size()) {
      return Error::NotApplied(Code::kInvalidArgument,
                               "run " + request.arguments[0] + ": a secret argument has no place");
    }
    setup.arguments[number] = text.Reveal();
  }
  if (request.own_scope) setup.scope = {"run", request.arguments[0]};
  constexpr size_t kMostOutput = 64 * 1024;
  setup.output_bytes = std::min(request.output_bytes, kMostOutput);
  ASSIGN_OR_RETURN(ProgramOutcome outcome, RunToEnd(setup, options));
  constexpr int kSignalled = 128;  // as a shell has it
  return ProgramEnd{outcome.end.exited ? outcome.end.status : kSignalled + outcome.end.status,
                    std::move(outcome.output)};
}

}  // namespace volumed
