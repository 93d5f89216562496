// The agent, its workers, or both are ended with kill -9 at random moments of a pod's life: whatever
// the moment, what the next agent makes of it must be what was asked for.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <random>
#include <thread>

#include "integration/agent/example_pod.h"

namespace volumed {
namespace {

using std::chrono::microseconds;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class KillTest : public ExamplePodTest {
 protected:
  enum class Victim { kAgent, kWorker, kBoth };

  // One command of the life, and how it is known that it has come true.
  struct Step {
    const char* name;
    std::function<grpc::Status()> command;
    std::function<std::string()> problem;
  };

  std::vector<Step> MakeLife();
  // The time from the command until it has come true, when nobody is killed.
  microseconds RunUndisturbed(const Step& step);
  void RunAndKill(const Step& step, microseconds longest);
  void KillAtRandom();
  void CommandUntilTaken(const Step& step);
  microseconds Random(microseconds longest) {
    return microseconds(std::uniform_int_distribution<int64_t>(0, longest.count())(random_));
  }

  std::mt19937_64 random_;
  std::string greeting_ = "hello";
  std::string foreign_;
  int turn_ = 0;
  std::map<std::string, int> kills_;
};

std::vector<KillTest::Step> KillTest::MakeLife() {
  const auto apply = [this] {
    return Apply(ExampleObjects(greeting_) + "\n---\n" + ExamplePod(host_path()));
  };
  const auto present = [this] { return ExampleProblem(greeting_); };
  const auto present_and_kept = [this] {
    std::string problem = ExampleProblem(greeting_);
    return problem.empty() ? ForeignProblem(foreign_) : problem;
  };
  const auto remove = [this] {
    const grpc::Status status = Delete("Pod", "web");
    // A command whose answer was lost may have been taken.
    return status.error_code() == grpc::StatusCode::NOT_FOUND ? grpc::Status::OK : status;
  };
  return {
      {"apply", apply, present},
      {"update", [this] { return Apply(ExampleObjects(greeting_)); }, present_and_kept},
      {"nothing", [] { return grpc::Status::OK; }, present_and_kept},
      {"delete", remove, [this] { return LeftOvers(); }},
  };
}

void KillTest::CommandUntilTaken(const Step& step) {
  grpc::Status status;
  ASSERT_TRUE(Eventually(kPatience, [&] {
    status = step.command();
    return status.ok();
  })) << step.name
      << ": " << status.error_message();
}

microseconds KillTest::RunUndisturbed(const Step& step) {
  const auto start = std::chrono::steady_clock::now();
  CommandUntilTaken(step);
  EXPECT_TRUE(Eventually(kPatience, [&] { return step.problem().empty(); }))
      << step.name << ": " << step.problem();
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
}

void KillTest::KillAtRandom() {
  const auto victim = static_cast<Victim>(std::uniform_int_distribution<int>(0, 2)(random_));
  std::vector<pid_t> workers = Workers();
  std::shuffle(workers.begin(), workers.end(), random_);
  const auto kill_worker = [&] {
    if (!workers.empty()) ::kill(workers.front(), SIGKILL);
  };
  switch (victim) {
    case Victim::kWorker:
      kill_worker();
      ++kills_["worker"];
      return;
    case Victim::kBoth:
      kill_worker();
      KillAgent();
      ++kills_["both"];
      break;
    case Victim::kAgent:
      KillAgent();
      ++kills_["agent"];
      break;
  }
  StartAgent();
}

void KillTest::RunAndKill(const Step& step, microseconds longest) {
  (void)api();  // the killer below must not make a new one
  std::thread killer([this, delay = Random(longest)] { std::this_thread::sleep_for(delay); });
  // The command's answer may be lost with the agent; then it is given again.
  auto first = std::async(std::launch::async, [command = step.command] { (void)command(); });
  killer.join();
  const pid_t agent = agent_pid();
  if (agent > 0) KillOnlyProcesses();
  first.wait();
}

}  // namespace
}  // namespace volumed
