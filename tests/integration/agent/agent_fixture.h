// AgentTest: the real daemon on a scratch root, in a mount namespace that nothing leaks from,
// spoken to by gRPC, by volumectl and by HTTP. Whatever a test leaves behind is ended and
// unmounted: only processes that this one started are ever ended.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent.grpc.pb.h"

namespace volumed {

using Milliseconds = std::chrono::milliseconds;

// How long anything may take that is not itself measured; a machine under load is slow.
inline constexpr Milliseconds kPatience = std::chrono::seconds(30);

// Runs `program`; `output` holds what it wrote to its standard output and error.
struct CommandResult {
  int exit_status = -1;  // 128 + signal when it was killed
  std::string output;
};
CommandResult RunCommand(const std::vector<std::string>& arguments);

bool Eventually(Milliseconds limit, const std::function<bool()>& condition);
std::string ReadText(const std::string& path);  // "" when it cannot be read
void WriteText(const std::string& path, const std::string& text);
std::string Replaced(std::string text, const std::string& from, const std::string& to);
bool Exists(const std::string& path);
Milliseconds Since(std::chrono::steady_clock::time_point start);
// The lines of this process's mountinfo whose mount point is `prefix` or below.
std::vector<std::string> MountsBelow(const std::string& prefix);

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The daemon, with `settings` as lines of its configuration file.
  void StartAgent();
  // Starts it and waits until it is ready.
  void StartReadyAgent();
  void KillAgent();  // kill -9, and waited for
  int StopAgent();   // SIGTERM; the exit status
  bool AgentRuns();
  bool WaitReady(Milliseconds limit = kPatience);
  pid_t agent_pid() const { return agent_pid_; }
  int metrics_port() const { return metrics_port_; }
  std::vector<pid_t> Workers() const;

  // /metrics, /readyz ...; "" when nothing answers within two seconds.
  std::string HttpGet(const std::string& path) const;
  CommandResult Ctl(std::vector<std::string> arguments) const;
  // A connection of its own, for another thread.
  std::unique_ptr<v1::VolumeAgent::Stub> NewStub() const;

  // The calls of the API that tests use, with a deadline each.
  grpc::Status Apply(const std::string& manifest, v1::ApplyResponse* response = nullptr);
  void ApplyOk(const std::string& manifest);
  grpc::Status Delete(const std::string& kind, const std::string& name, bool force = false);
  grpc::Status Hold(const std::string& pod, pid_t pid, const std::string& cgroup = "");
  std::optional<v1::Pod> FindPod(const std::string& name);
  bool WaitPhase(const std::string& pod, const std::string& phase, Milliseconds limit = kPatience);
  bool WaitGone(const std::string& pod, Milliseconds limit = kPatience);
  v1::GetSourcesResponse Sources();
  v1::GetStatusResponse AgentStatus();
  std::string FailedParts();  // a line "NAME: ERROR" for each

  std::string VolumePath(const std::string& uid, const std::string& plugin,
                         const std::string& volume) const;
  // "" when no mount, no directory and no pod is left of any pod.
  std::string LeftOvers();
  // "" when no mount, no file and no directory of a CSI volume is left below plugins.
  std::string CsiLeftOvers() const;

  const std::string& scratch() const { return scratch_; }
  std::string root() const { return root_; }
  std::string manifests() const { return scratch_ + "/manifests"; }
  std::string socket_path() const { return scratch_ + "/volumed.sock"; }
  std::string log_path() const { return scratch_ + "/daemon.log"; }
  void set_root(std::string root) { root_ = std::move(root); }

  // Lines of the configuration file that differ from the fixture's own.
  std::map<std::string, std::string> settings;

 private:
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::VolumeAgent::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
                    const Request& request, Response* response);
  void EndAgent();
  void EndOrphans();

  std::string scratch_;
  std::string root_;
  int metrics_port_ = 0;
  pid_t agent_pid_ = -1;
  std::unique_ptr<v1::VolumeAgent::Stub> stub_;
};

// A process of ours that just is there: a consumer for holds.
class Sleeper {
 public:
  Sleeper();
  ~Sleeper() { End(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }
  void End();

 private:
  pid_t pid_ = -1;
};

}  // namespace volumed
