// The agent, its workers, or both are ended with kill -9 at random moments of a pod's life:
// whatever the moment, what the next agent makes of it must be what was asked for.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "integration/agent/example_pod.h"
#include "run_numbers.h"

namespace volumed::kill_test {
namespace {

using std::chrono::microseconds;
using Stub = v1::VolumeAgent::Stub;

constexpr uint64_t kKills = 100;
constexpr microseconds kLongestStart = std::chrono::milliseconds(150);
constexpr int kKillAgainOneIn = 4;  // while the new agent starts

class KillTest : public ExamplePodTest {
 protected:
  // One command of the life, and what is still missing until it has come true.
  struct Step {
    const char* name;
    std::function<grpc::Status(Stub&)> command;
    std::function<std::string()> problem;
  };

  std::vector<Step> MakeLife();
  void PrepareStep(size_t index);
  void CommandUntilTaken(const Step& step);
  // The time until it has come true when nobody is killed.
  microseconds RunUndisturbed(const Step& step);
  void RunAndKill(const Step& step, microseconds longest);
  void KillOne();
  void AwaitConverged(const Step& step);

  microseconds Random(microseconds longest) {
    return microseconds(std::uniform_int_distribution<int64_t>(0, longest.count())(random_));
  }
  bool OneIn(int n) { return std::uniform_int_distribution<int>(1, n)(random_) == 1; }

  std::mt19937_64 random_;
  std::string greeting_;
  std::string foreign_;
  int turn_ = 0;
  std::map<std::string, int> kills_;
  uint64_t kill_count_ = 0;
  Milliseconds slowest_{0};
};

grpc::Status ApplyBy(Stub& stub, const std::string& manifest) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ApplyRequest request;
  request.set_file("life");
  request.set_manifest(manifest);
  v1::ApplyResponse response;
  const grpc::Status status = stub.Apply(&context, request, &response);
  EXPECT_EQ(response.problems_size(), 0) << response.ShortDebugString();
  return status;
}

grpc::Status DeleteBy(Stub& stub, const std::string& pod) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::DeleteRequest request;
  request.mutable_object()->set_kind("Pod");
  request.mutable_object()->set_namespace_("default");
  request.mutable_object()->set_name(pod);
  v1::DeleteResponse response;
  const grpc::Status status = stub.Delete(&context, request, &response);
  // A command whose answer was lost may have been taken.
  return status.error_code() == grpc::StatusCode::NOT_FOUND ? grpc::Status::OK : status;
}

std::vector<KillTest::Step> KillTest::MakeLife() {
  const auto kept = [this] {
    std::string problem = ExampleProblem(greeting_);
    return problem.empty() ? ForeignProblem(foreign_) : problem;
  };
  return {
      {"apply",
       [this](Stub& stub) {
         return ApplyBy(stub, ExampleObjects(greeting_) + "\n---\n" + ExamplePod(host_path()));
       },
       [this] { return ExampleProblem(greeting_); }},
      {"update", [this](Stub& stub) { return ApplyBy(stub, ExampleObjects(greeting_)); }, kept},
      {"nothing", [](Stub&) { return grpc::Status::OK; }, kept},
      {"delete", [](Stub& stub) { return DeleteBy(stub, "web"); }, [this] { return LeftOvers(); }},
  };
}

// What a container wrote is there before the first update, and a greeting is never used twice.
void KillTest::PrepareStep(size_t index) {
  ++turn_;
  if (index <= 1) greeting_ = "hello-" + std::to_string(turn_);
  if (index != 1) return;
  foreign_ = "written-" + std::to_string(turn_);
  WriteForeignFiles(foreign_);
}

void KillTest::CommandUntilTaken(const Step& step) {
  grpc::Status status;
  ASSERT_TRUE(Eventually(kPatience,
                         [&] {
                           status = step.command(*NewStub());
                           return status.ok();
                         }))
      << step.name << ": " << status.error_message();
}

void KillTest::AwaitConverged(const Step& step) {
  ASSERT_TRUE(Eventually(kPatience, [&] { return step.problem().empty(); }))
      << "step " << step.name << ", kill " << kill_count_ << ": " << step.problem();
}

microseconds KillTest::RunUndisturbed(const Step& step) {
  const auto start = std::chrono::steady_clock::now();
  CommandUntilTaken(step);
  AwaitConverged(step);
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
}

void KillTest::KillOne() {
  ++kill_count_;
  std::vector<pid_t> workers = Workers();
  std::shuffle(workers.begin(), workers.end(), random_);
  const int victim = std::uniform_int_distribution<int>(0, 2)(random_);
  if (victim != 0 && !workers.empty()) ::kill(workers.front(), SIGKILL);
  ++kills_[victim == 0 ? "agent" : victim == 1 ? "worker" : "both"];
  if (victim == 1) return;
  KillAgent();
  StartAgent();
}

void KillTest::RunAndKill(const Step& step, microseconds longest) {
  const microseconds delay = Random(longest);
  const std::unique_ptr<Stub> stub = NewStub();
  // Its answer may be lost with the agent; then it is given again below.
  auto first = std::async(std::launch::async, [&] { return step.command(*stub).ok(); });
  std::this_thread::sleep_for(delay);
  KillOne();
  const auto killed = std::chrono::steady_clock::now();
  if (OneIn(kKillAgainOneIn)) {
    std::this_thread::sleep_for(Random(kLongestStart));
    KillOne();
  }
  const bool taken = first.get();
  const Milliseconds answered = Since(killed);
  if (!taken) {
    ASSERT_NO_FATAL_FAILURE(CommandUntilTaken(step));
  }
  const Milliseconds commanded = Since(killed);
  AwaitConverged(step);
  if (Since(killed) > slowest_) {
    slowest_ = Since(killed);
    std::cout << "slowest so far: " << step.name << ", kill " << kill_count_ << ": answered after "
              << answered.count() << " ms, taken after " << commanded.count() << " ms, true after "
              << slowest_.count() << " ms" << std::endl;
  }
}

TEST_F(KillTest, ConvergesAfterKillAtAnyMoment) {
  const uint64_t seed = NumberOfRun("VOLUMED_SEED", std::random_device()());
  const uint64_t kills = NumberOfRun("VOLUMED_KILLS", kKills);
  std::cout << "VOLUMED_SEED=" << seed << " VOLUMED_KILLS=" << kills << std::endl;
  random_.seed(seed);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::vector<Step> life = MakeLife();
  std::vector<microseconds> longest;
  for (size_t i = 0; i < life.size(); ++i) {
    PrepareStep(i);
    longest.push_back(RunUndisturbed(life[i]));
    ASSERT_FALSE(HasFailure());
    std::cout << "undisturbed " << life[i].name << ": " << longest.back().count() << " us\n";
  }
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; kill_count_ < kills || i % life.size() != 0; ++i) {
    PrepareStep(i % life.size());
    RunAndKill(life[i % life.size()], longest[i % life.size()]);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", kill " << kill_count_;
  }
  std::cout << kill_count_ << " kills (agent " << kills_["agent"] << ", worker " << kills_["worker"]
            << ", both " << kills_["both"] << ") converged in " << Since(start).count() << " ms\n";
  EXPECT_EQ(LeftOvers(), "");
  EXPECT_EQ(StopAgent(), 0);
}

}  // namespace
}  // namespace volumed::kill_test
