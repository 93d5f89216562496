#include "fakes/csi_fake_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/descriptor.h"
#include "places.h"

namespace volumed {
namespace {

// False after 20 seconds.
bool WaitUntil(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace

CsiFakeProcess::~CsiFakeProcess() { Kill(); }

bool CsiFakeProcess::Start() {
  if (runs()) return true;
  std::filesystem::create_directories(options_.directory);
  std::filesystem::remove(control());
  const std::string file = options_.directory + "/options.json";
  std::ofstream(file, std::ios::trunc) << CsiFakeOptionsText(options_);
  std::string program = CsiFakeDriverPath();
  std::string first = file;
  std::string second = control();
  char* const argv[] = {program.data(), first.data(), second.data(), nullptr};
  posix_spawn_file_actions_t output;
  posix_spawn_file_actions_init(&output);
  const std::string log = options_.directory + "/output.log";
  posix_spawn_file_actions_addopen(&output, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&output, 1, 2);
  if (::posix_spawn(&pid_, program.c_str(), &output, nullptr, argv, environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&output);
  return WaitUntil([this] { return !runs() || !Tell(R"({"status": true})").empty(); }) && runs();
}

bool CsiFakeProcess::runs() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ > 0;
}

void CsiFakeProcess::Signal(int signal) const {
  if (pid_ <= 0 || ::kill(pid_, signal) != 0 || signal != SIGSTOP) return;
  // Its threads go on for a moment after the signal was sent.
  siginfo_t stopped{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

void CsiFakeProcess::Kill() {
  if (!runs()) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool CsiFakeProcess::WaitUntilDead() {
  return WaitUntil([this] { return !runs(); });
}

std::string CsiFakeProcess::Tell(std::string_view command) const {
  const Descriptor connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  control().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(connection.get(), place, sizeof(address)) != 0) return "";
  const std::string line = std::string(command) + "\n";
  if (::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(connection.get(), bytes, sizeof(bytes))) > 0;) {
    answer.append(bytes, static_cast<size_t>(got));
  }
  return answer;
}

}  // namespace volumed
