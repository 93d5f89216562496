#include "integration/agent/agent_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "base/descriptor.h"
#include "integration/few_mounts.h"
#include "places.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using Stub = v1::VolumeAgent::Stub;

constexpr Milliseconds kLookAgain(5);
constexpr auto kRpcDeadline = std::chrono::seconds(10);
constexpr auto kHttpTimeout = std::chrono::seconds(2);
constexpr int kTailOfLog = 4000;

bool EnterNamespace() {
  // Workers of a killed daemon become our children, so that they can be found and ended.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const bool is_private = ::unshare(CLONE_NEWNS) == 0 &&
                          ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (is_private) (void)KeepFewMounts();  // else it is slower
  return is_private;
}

// Starts `arguments` with its output in `output_path`; -1 when that does not work.
pid_t Spawn(const std::vector<std::string>& arguments, const std::string& output_path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = ReadText(entry.path().string() + "/stat");
    const size_t end = stat.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream fields(stat.substr(end + 1));
    std::string state;
    pid_t found = 0;
    if (fields >> state >> found && found == parent) children.push_back(std::stoi(name));
  }
  return children;
}

// Below the ports of outgoing connections: one of those may take a port while its agent restarts,
// and a look at a port where nobody listens may even connect to itself.
int FreePort() {
  std::mt19937 random(std::random_device{}());
  for (int tries = 0; tries < 1000; ++tries) {
    const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(std::uniform_int_distribution<uint16_t>(10'000, 32'000)(random));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* place = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(probe.get(), place, sizeof(address)) == 0) return ntohs(address.sin_port);
  }
  ADD_FAILURE() << "no port is free";
  return 0;
}

// Innermost first; a mount may lie on another, so until none is left.
void UnmountBelow(const std::string& prefix) {
  for (int round = 0; round < 8; ++round) {
    const std::vector<std::string> mounts = MountsBelow(prefix);
    if (mounts.empty()) return;
    for (auto line = mounts.rbegin(); line != mounts.rend(); ++line) {
      std::istringstream fields(*line);
      std::string id, parent, device, inner, point;
      fields >> id >> parent >> device >> inner >> point;
      ::umount2(point.c_str(), MNT_DETACH);
    }
  }
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& arguments) {
  char name[] = "/tmp/volumed-command-XXXXXX";
  const int file = ::mkstemp(name);
  if (file < 0) return {};
  ::close(file);
  CommandResult result;
  const pid_t pid = Spawn(arguments, name);
  if (pid > 0) result.exit_status = WaitFor(pid);
  result.output = ReadText(name);
  ::unlink(name);
  return result;
}

bool Eventually(Milliseconds limit, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  EXPECT_TRUE(file.good()) << "write " << path;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

bool Exists(const std::string& path) {
  struct stat stat {};
  return ::lstat(path.c_str(), &stat) == 0;
}

Milliseconds Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
}

std::vector<std::string> MountsBelow(const std::string& prefix) {
  std::vector<std::string> found;
  std::istringstream lines(ReadText("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, inner, point;
    fields >> id >> parent >> device >> inner >> point;
    if (point == prefix || point.starts_with(prefix + "/")) found.push_back(line);
  }
  return found;
}

void AgentTest::SetUp() {
  static const bool kHasNamespace = EnterNamespace();
  if (!kHasNamespace) GTEST_SKIP() << "skipped: needs CAP_SYS_ADMIN";
  char name[] = "/var/tmp/volumed-it-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr) << std::strerror(errno);
  ASSERT_EQ(::chmod(name, 0755), 0);
  scratch_ = name;
  root_ = scratch_ + "/root";
  ASSERT_EQ(::mkdir(manifests().c_str(), 0755), 0);
  metrics_port_ = FreePort();
}

void AgentTest::TearDown() {
  if (scratch_.empty()) return;
  EndAgent();
  EndOrphans();
  if (HasFailure()) {
    const std::string log = ReadText(log_path());
    std::cerr << "--- the daemon's last words\n"
              << log.substr(log.size() > kTailOfLog ? log.size() - kTailOfLog : 0) << "\n";
  }
  UnmountBelow(scratch_);
  ASSERT_TRUE(MountsBelow(scratch_).empty()) << "not removed, as it has mounts: " << scratch_;
  std::error_code error;
  fs::remove_all(scratch_, error);
}

void AgentTest::StartAgent() {
  ASSERT_EQ(agent_pid_, -1) << "the daemon runs already";
  std::map<std::string, std::string> lines = {
      {"root", root_},
      {"manifest-dir", "[" + manifests() + "]"},
      {"socket", socket_path()},
      {"socket-group", "\"\""},
      {"metrics-address", "127.0.0.1:" + std::to_string(metrics_port_)},
      {"node-name", "it-node"},
      {"worker", VolumedWorkerPath()},
      {"volume-plugin-dir", scratch_ + "/drivers"},
      {"removal-settle", "1s"},
      {"volume-stats-period", "1s"}};
  for (const auto& [key, value] : settings) lines[key] = value;
  std::string config;
  for (const auto& [key, value] : lines) config += key + ": " + value + "\n";
  WriteText(scratch_ + "/config.yaml", config);
  agent_pid_ = Spawn({VolumedPath(), "run", "--config", scratch_ + "/config.yaml"}, log_path());
  ASSERT_GT(agent_pid_, 0);
  stub_.reset();
}

void AgentTest::StartReadyAgent() {
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(WaitReady()) << HttpGet("/readyz");
}

bool AgentTest::AgentRuns() {
  return agent_pid_ > 0 && ::waitpid(agent_pid_, nullptr, WNOHANG) == 0;
}

bool AgentTest::WaitReady(Milliseconds limit) {
  return Eventually(limit,
                    [this] { return HttpGet("/readyz").find(" 200 ") != std::string::npos; });
}

void AgentTest::KillAgent() {
  ASSERT_GT(agent_pid_, 0);
  ::kill(agent_pid_, SIGKILL);
  WaitFor(agent_pid_);
  agent_pid_ = -1;
}

int AgentTest::StopAgent() {
  if (agent_pid_ <= 0) return -1;
  ::kill(agent_pid_, SIGTERM);
  return WaitFor(std::exchange(agent_pid_, -1));
}

void AgentTest::EndAgent() {
  if (agent_pid_ <= 0) return;
  int status = 0;
  const pid_t pid = std::exchange(agent_pid_, -1);
  if (::waitpid(pid, &status, WNOHANG) == pid) {
    ADD_FAILURE() << "the daemon ended by itself, wait status " << status;
    return;
  }
  ::kill(pid, SIGKILL);
  WaitFor(pid);
}

// Workers end by themselves when their agent does; one that does not is ended here, as otherwise
// the scratch directory could not be unmounted.
void AgentTest::EndOrphans() {
  for (const pid_t child : ChildrenOf(::getpid())) {
    const std::string command = ReadText("/proc/" + std::to_string(child) + "/cmdline");
    if (command.starts_with(VolumedWorkerPath())) ::kill(child, SIGKILL);
  }
  Eventually(std::chrono::seconds(2), [] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return ChildrenOf(::getpid()).empty();
  });
}

std::vector<pid_t> AgentTest::Workers() const { return ChildrenOf(agent_pid_); }

std::string AgentTest::HttpGet(const std::string& path) const {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval timeout{kHttpTimeout.count(), 0};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(metrics_port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n";
    (void)!::send(connection, request.data(), request.size(), MSG_NOSIGNAL);
    char buffer[16384];
    for (ssize_t got = 0; (got = ::recv(connection, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(got));
    }
  }
  ::close(connection);
  return answer;
}

CommandResult AgentTest::Ctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {VolumectlPath(), "--socket", socket_path()});
  return RunCommand(arguments);
}

std::unique_ptr<v1::VolumeAgent::Stub> AgentTest::NewStub() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return v1::VolumeAgent::NewStub(grpc::CreateCustomChannel(
      "unix://" + socket_path(), grpc::InsecureChannelCredentials(), arguments));
}

template <typename Request, typename Response>
grpc::Status AgentTest::Call(grpc::Status (v1::VolumeAgent::Stub::*method)(grpc::ClientContext*,
                                                                           const Request&,
                                                                           Response*),
                             const Request& request, Response* response) {
  // A connection that failed backs off; a test knows when the agent is back, and makes a new one.
  if (!stub_) stub_ = NewStub();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kRpcDeadline);
  const grpc::Status status = (stub_.get()->*method)(&context, request, response);
  if (!status.ok()) stub_.reset();
  return status;
}

grpc::Status AgentTest::Apply(const std::string& manifest, v1::ApplyResponse* response) {
  v1::ApplyRequest request;
  request.set_file("test");
  request.set_manifest(manifest);
  v1::ApplyResponse mine;
  return Call(&Stub::Apply, request, response != nullptr ? response : &mine);
}

void AgentTest::ApplyOk(const std::string& manifest) {
  v1::ApplyResponse response;
  const grpc::Status status = Apply(manifest, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.problems_size(), 0) << response.ShortDebugString();
}

grpc::Status AgentTest::Delete(const std::string& kind, const std::string& name, bool force) {
  v1::DeleteRequest request;
  request.mutable_object()->set_kind(kind);
  request.mutable_object()->set_namespace_("default");
  request.mutable_object()->set_name(name);
  request.set_force(force);
  v1::DeleteResponse response;
  return Call(&Stub::Delete, request, &response);
}

grpc::Status AgentTest::Hold(const std::string& pod, pid_t pid, const std::string& cgroup) {
  v1::HoldRequest request;
  request.mutable_pod()->set_kind("Pod");
  request.mutable_pod()->set_namespace_("default");
  request.mutable_pod()->set_name(pod);
  request.set_pid(pid);
  request.set_cgroup(cgroup);
  v1::HoldResponse response;
  return Call(&Stub::Hold, request, &response);
}

std::optional<v1::Pod> AgentTest::FindPod(const std::string& name) {
  v1::GetPodsRequest request;
  request.set_name(name);
  v1::GetPodsResponse response;
  if (!Call(&Stub::GetPods, request, &response).ok() || response.pods_size() != 1) {
    return std::nullopt;
  }
  return response.pods(0);
}

bool AgentTest::WaitPhase(const std::string& pod, const std::string& phase, Milliseconds limit) {
  return Eventually(limit, [&] {
    const std::optional<v1::Pod> found = FindPod(pod);
    return found && found->phase() == phase;
  });
}

bool AgentTest::WaitGone(const std::string& pod, Milliseconds limit) {
  return Eventually(limit, [&] {
    v1::GetPodsRequest request;
    request.set_name(pod);
    v1::GetPodsResponse response;
    return Call(&Stub::GetPods, request, &response).ok() && response.pods_size() == 0;
  });
}

v1::GetSourcesResponse AgentTest::Sources() {
  v1::GetSourcesResponse response;
  EXPECT_TRUE(Call(&Stub::GetSources, v1::GetSourcesRequest(), &response).ok());
  return response;
}

v1::GetStatusResponse AgentTest::AgentStatus() {
  v1::GetStatusResponse response;
  EXPECT_TRUE(Call(&Stub::GetStatus, v1::GetStatusRequest(), &response).ok());
  return response;
}

std::string AgentTest::FailedParts() {
  std::string names;
  const v1::GetStatusResponse status = AgentStatus();
  for (const v1::FailedPart& part : status.failed_parts()) {
    names += part.name() + ": " + part.error() + "\n";
  }
  return names;
}

std::string AgentTest::VolumePath(const std::string& uid, const std::string& plugin,
                                  const std::string& volume) const {
  return root() + "/pods/" + uid + "/volumes/kubernetes.io~" + plugin + "/" + volume;
}

std::string AgentTest::LeftOvers() {
  std::string left;
  for (const std::string& mount : MountsBelow(root() + "/pods")) left += "mount " + mount + "\n";
  std::error_code error;
  fs::directory_iterator entry(root() + "/pods", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    left += "directory " + entry->path().string() + "\n";
  }
  if (error) left += "cannot read " + root() + "/pods: " + error.message() + "\n";
  v1::GetPodsResponse pods;
  if (!Call(&Stub::GetPods, v1::GetPodsRequest(), &pods).ok())
    left += "the agent does not answer\n";
  for (const v1::Pod& pod : pods.pods()) left += "pod " + pod.ShortDebugString() + "\n";
  return left;
}

std::string AgentTest::CsiLeftOvers() const {
  std::string left;
  const std::string directory = root() + "/plugins/kubernetes.io/csi";
  for (const std::string& mount : MountsBelow(root() + "/plugins")) left += "mount " + mount + "\n";
  std::error_code none;
  for (fs::recursive_directory_iterator entry(directory, none);
       !none && entry != fs::recursive_directory_iterator(); entry.increment(none)) {
    const bool is_of_volume = !entry->is_directory() || entry->path().filename() == "globalmount";
    if (is_of_volume) left += entry->path().string() + "\n";
  }
  return left;
}

Sleeper::Sleeper() { pid_ = Spawn({"sleep", "1000"}, "/dev/null"); }

void Sleeper::End() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  WaitFor(std::exchange(pid_, -1));
}

}  // namespace volumed
