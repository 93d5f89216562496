// What the agent and its workers do for themselves: they leave no memory behind in a core file, no
// stray signal ends them, and a worker that hangs ends also if its agent has stopped.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "integration/agent/example_pod.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::process_guard_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr char kCanary[] = "CANARY-4be1d5a07c93";
// Two seconds of deadline, two of the worker's own grace, and the rest for a slow machine.
constexpr Milliseconds kOrphanEnds = seconds(15);

class ProcessGuardTest : public ExamplePodTest {
 protected:
  void SetUp() override {
    ExamplePodTest::SetUp();
    before_ = fs::current_path();
    ASSERT_EQ(::getrlimit(RLIMIT_CORE, &limit_before_), 0);
  }
  void TearDown() override {
    fs::current_path(before_);
    ::setrlimit(RLIMIT_CORE, &limit_before_);
    ExamplePodTest::TearDown();
  }

  // Core files of this process's children are as large as they like, and come to scratch().
  void WelcomeCoreFiles() {
    rlimit limit = limit_before_;
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_CORE, &limit), 0);
    fs::current_path(scratch());
  }
  std::set<std::string> CoreFiles() const {
    std::set<std::string> files;
    for (const auto& entry : fs::directory_iterator(scratch())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("core") && entry.is_regular_file()) files.insert(entry.path());
    }
    return files;
  }
  // A process that guards nothing leaves a file that holds what it knew.
  bool AnUnguardedProcessLeavesACoreFile() {
    RunCommand({"/bin/sh", "-c", std::string("x=") + kCanary + "; kill -SEGV $$"});
    bool holds = false;
    for (const std::string& file : CoreFiles()) {
      holds = holds || ReadText(file).find(kCanary) != std::string::npos;
      fs::remove(file);
    }
    return holds;
  }
  static bool IsAlive(pid_t pid) {
    const std::string stat = ReadText("/proc/" + std::to_string(pid) + "/stat");
    return !stat.empty() && stat.find(") Z ") == std::string::npos;
  }

  // It has come to GuardProcess().
  static bool IsGuarded(pid_t pid) {
    std::istringstream status(ReadText("/proc/" + std::to_string(pid) + "/status"));
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigIgn:")) continue;
      return ((std::stoull(line.substr(7), nullptr, 16) >> (SIGPWR - 1)) & 1) != 0;
    }
    return false;
  }

 private:
  fs::path before_;
  rlimit limit_before_ = {};
};

TEST_F(ProcessGuardTest, ACrashOfTheAgentOrAWorkerLeavesNoCoreFileWithSecrets) {
  ASSERT_NO_FATAL_FAILURE(WelcomeCoreFiles());
  if (!AnUnguardedProcessLeavesACoreFile()) {
    GTEST_SKIP() << "skipped: /proc/sys/kernel/core_pattern writes no file here";
  }
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Replaced(ExampleObjects("hello"), "not-a-real-password", kCanary)));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExamplePod(host_path())));
  ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
  ASSERT_EQ(ReadText(ExampleVolume("secret", "secret") + "/password"), kCanary);

  const std::vector<pid_t> workers = Workers();
  ASSERT_FALSE(workers.empty());
  for (const pid_t worker : workers) ::kill(worker, SIGSEGV);
  ASSERT_TRUE(
      Eventually(kPatience, [&] { return std::none_of(workers.begin(), workers.end(), IsAlive); }));
  const pid_t agent = agent_pid();
  ::kill(agent, SIGABRT);
  ASSERT_TRUE(Eventually(kPatience, [&] { return !IsAlive(agent); }));
  for (const std::string& file : CoreFiles()) ADD_FAILURE() << file << " was left";
  KillAgent();  // reaps it
}

TEST_F(ProcessGuardTest, SignalsThatNobodyMeansEndNeitherTheAgentNorAWorker) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello")));
  const std::vector<pid_t> workers = Workers();
  ASSERT_FALSE(workers.empty());
  // One that has only just begun is ended by them.
  ASSERT_TRUE(Eventually(kPatience,
                         [&] { return std::all_of(workers.begin(), workers.end(), IsGuarded); }));
  for (const int number : {SIGUSR1, SIGUSR2, SIGALRM}) {
    ::kill(agent_pid(), number);
    for (const pid_t worker : workers) ::kill(worker, number);
  }
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExamplePod(host_path())));
  ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
  EXPECT_TRUE(AgentRuns());
  for (const pid_t worker : workers) EXPECT_TRUE(IsAlive(worker)) << worker;
}

TEST_F(ProcessGuardTest, AWorkerThatHangsEndsPastItsDeadlineThoughItsAgentHasStopped) {
  const std::string source = scratch() + "/hangfs";
  ASSERT_TRUE(fs::create_directory(source));
  HangfsMount hangfs(HangfsPath(), source, scratch() + "/control");
  if (!hangfs.mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
  settings["deadline-mount"] = "2s";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  hangfs.Hang();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: sick, uid: uid-sick}\nspec:\n"
      "  containers: [{name: main, image: i, volumeMounts: [{name: remote, mountPath: /r}]}]\n"
      "  volumes: [{name: remote, hostPath: {path: " +
      source + ", type: Directory}}]\n"));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const std::optional<v1::Pod> pod = FindPod("sick");
    return pod && pod->volumes_size() == 1 && pod->volumes(0).running_step() == "ReserveStorage";
  })) << Ctl({"explain", "sick"}).output;
  const std::vector<pid_t> workers = Workers();
  KillAgent();
  EXPECT_TRUE(Eventually(kOrphanEnds, [&] {
    return std::none_of(workers.begin(), workers.end(), IsAlive);
  })) << "a worker outlives its deadline for ever";
}

}  // namespace
}  // namespace volumed::process_guard_test
