#include "interop/pd_harness.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "integration/loop_device.h"
#include "places.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

// A machine under load is slow, and so is the start of a program of 60 MB.
constexpr auto kStart = std::chrono::seconds(60);
constexpr auto kLookAgain = std::chrono::milliseconds(5);
constexpr size_t kTailOfLog = 3000;

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  for (size_t got = 0; (got = ::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.append(buffer, got);
  }
  if (::pclose(pipe) != 0) return "";
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

bool Within(std::chrono::milliseconds limit, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

bool Listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  path.copy(address.sun_path, path.size());
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::vector<PdCall> CallsOf(const std::string& path) {
  std::vector<PdCall> calls;
  std::istringstream lines(TextOf(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    PdCall call;
    if (words >> call.method >> call.code) {
      words >> call.volume;
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

}  // namespace

std::string PeerPath(const std::string& name) {
  return OutputOf("'" + SourcePath("scripts/peers") + "' path " + name + " 2>/dev/null");
}

std::string WhyNoPeer(const std::string& name) {
  if (!PeerPath(name).empty()) return "";
  return OutputOf("command -v go").empty() ? "skipped: needs go" : "skipped: needs peer " + name;
}

PeerProcess::~PeerProcess() { End(SIGKILL); }

bool PeerProcess::Start(const std::vector<std::string>& arguments, const std::string& output,
                        const std::string& errors) {
  // A test that is killed must leave no process, and no descriptor of its own in one.
  std::vector<std::string> words = {"setpriv", "--pdeathsig", "KILL"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), kAppend, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), kAppend, 0600);
  const bool started = ::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!started) pid_ = -1;
  return started;
}

int PeerProcess::End(int signal) {
  if (pid_ <= 0) return -1;
  ::kill(pid_, signal);
  return Wait();
}

// A child that has ended is not reaped here, so its pid stays its own.
bool PeerProcess::Runs() {
  siginfo_t ended{};
  return pid_ > 0 &&
         ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

int PeerProcess::Wait() {
  const pid_t pid = std::exchange(pid_, -1);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

PdDriver::PdDriver(Settings settings) : settings_(std::move(settings)) {}

PdDriver::~PdDriver() {
  Stop();
  for (const std::string& line : Attached()) {
    (void)OutputOf("losetup --detach " + line.substr(0, line.find(' ')) + " 2>&1");
  }
}

std::string PdDriver::WhyNot() {
  if (::geteuid() != 0) return "skipped: needs root";
  if (!HasLoopDevices()) return "skipped: needs loop devices";
  return WhyNoPeer("pd");
}

std::vector<std::string> PdDriver::CommandOf(const std::string& role,
                                             const std::string& socket) const {
  static const std::string kProgram = PeerPath("pd");
  return {kProgram,        "--role",        role,   "--dir",
          FileOf("cloud"), "--socket",      socket, "--zone",
          kZone,           "--driver-name", kName,  "--trap",
          FileOf("trap"),  "--logtostderr", "--v",  "4"};
}

bool PdDriver::StartCloud() {
  KillCloud();  // or takes away what is left of one that died
  std::vector<std::string> command = CommandOf("cloud", cloud_socket());
  command.insert(command.end(), {"--node", Joined(settings_.nodes)});
  return cloud_.Start(command, FileOf("cloud.calls"), FileOf("cloud.log")) &&
         Within(kStart, [this] { return Listens(cloud_socket()); });
}

bool PdDriver::StartNode() {
  KillNode();
  std::error_code error;
  fs::create_directories(fs::path(node_socket()).parent_path(), error);
  std::vector<std::string> command = CommandOf("node", node_socket());
  command.insert(command.end(),
                 {"--node", settings_.nodes.front(), "--machine-type", settings_.machine_type});
  return !error && node_.Start(command, FileOf("node.calls"), FileOf("node.log")) &&
         Within(kStart, [this] { return Listens(node_socket()); });
}

bool PdDriver::StartRegistrar() {
  KillRegistrar();
  std::error_code error;
  const std::string registry = settings_.kubelet_root + "/plugins_registry";
  fs::create_directories(registry, error);
  std::vector<std::string> command = CommandOf("registrar", node_socket());
  command.insert(command.end(), {"--registry", registry});
  return !error && registrar_.Start(command, FileOf("registrar.calls"), FileOf("registrar.log")) &&
         Within(kStart, [this] { return Listens(registration_socket()); });
}

void PdDriver::KillCloud() { cloud_.End(SIGKILL); }
void PdDriver::KillNode() { node_.End(SIGKILL); }
void PdDriver::KillRegistrar() { registrar_.End(SIGKILL); }
void PdDriver::EndRegistrar() { registrar_.End(SIGTERM); }

void PdDriver::Stop() {
  KillRegistrar();
  KillNode();
  KillCloud();
}

void PdDriver::SetTrap(const std::string& method, When when, Fate fate) {
  Release();  // or takes away what the last one has left
  std::ofstream file(FileOf("trap"), std::ios::trunc);
  file << method << (when == When::kBefore ? " before " : " after ")
       << (fate == Fate::kServerDies ? "die\n" : "hold\n");
}

bool PdDriver::Sprung() const { return fs::exists(FileOf("trap.sprung")); }

void PdDriver::Release() {
  std::error_code none;
  fs::remove(FileOf("trap.sprung"), none);
}

std::string PdDriver::node_socket() const {
  return settings_.kubelet_root + "/plugins/" + kName + "/csi.sock";
}

std::string PdDriver::registration_socket() const {
  return settings_.kubelet_root + "/plugins_registry/" + kName + "-reg.sock";
}

std::string PdDriver::NodeId(size_t node) const {
  return std::string("projects/test-project/zones/") + kZone + "/instances/" +
         settings_.nodes.at(node);
}

std::string PdDriver::HandleOf(const std::string& disk) {
  return std::string("projects/test-project/zones/") + kZone + "/disks/" + disk;
}

std::vector<PdCall> PdDriver::CloudCalls() const { return CallsOf(FileOf("cloud.calls")); }
std::vector<PdCall> PdDriver::NodeCalls() const { return CallsOf(FileOf("node.calls")); }

int PdDriver::Answered(std::string_view method, std::string_view volume) const {
  std::vector<PdCall> calls = CloudCalls();
  const std::vector<PdCall> of_node = NodeCalls();
  calls.insert(calls.end(), of_node.begin(), of_node.end());
  return static_cast<int>(std::count_if(calls.begin(), calls.end(), [&](const PdCall& call) {
    return call.method == method && call.code == "OK" && (volume.empty() || call.volume == volume);
  }));
}

int PdDriver::DetachedInUse() const {
  const std::vector<PdCall> calls = CloudCalls();
  return static_cast<int>(std::count_if(calls.begin(), calls.end(), [](const PdCall& call) {
    return call.method == "DetachedInUse";
  }));
}

std::vector<std::string> PdDriver::Attached() const {
  std::vector<std::string> found;
  std::error_code error;
  const std::string disks = fs::weakly_canonical(FileOf("cloud"), error).string() + "/disks/";
  for (const auto& entry : fs::directory_iterator("/sys/block", error)) {
    const std::string image = TextOf(entry.path().string() + "/loop/backing_file");
    if (!image.starts_with(disks)) continue;
    found.push_back("/dev/" + entry.path().filename().string() + " " +
                    image.substr(0, image.find('\n')));
  }
  return found;
}

std::string PdDriver::Logs() const {
  std::string all;
  for (const char* name : {"cloud", "node", "registrar"}) {
    const std::string log = TextOf(FileOf(std::string(name) + ".log"));
    all += std::string("--- ") + name + "\n" +
           log.substr(log.size() > kTailOfLog ? log.size() - kTailOfLog : 0);
  }
  return all;
}

}  // namespace volumed
