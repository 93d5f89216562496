// What a call to a CSI driver costs by the agent's channel (csi/rpc, with the trace that it keeps),
// against the bare gRPC stub on the same socket: wall time of a call, and this process's processor
// time. And how many calls a second a channel makes of a driver that takes 50 ms for each, by the
// channel's width.
//
// The driver is a process of its own, which answers NodePublishVolume and does nothing. The two
// ways take turns, and figures are medians of the rounds: of a machine that others may use, so that
// the ratios count.
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "csi.grpc.pb.h"
#include "csi/rpc/csi_channel.h"
#include "csi/rpc/csi_trace.h"

namespace volumed {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Request = csi::v1::NodePublishVolumeRequest;
using Response = csi::v1::NodePublishVolumeResponse;

[[noreturn]] void Die(const std::string& what) {
  (void)std::fprintf(stderr, "csi_bench: %s\n", what.c_str());
  std::exit(1);
}

double Micros(SteadyClock::duration span) {
  return std::chrono::duration<double, std::micro>(span).count();
}

// Of all threads of this process.
double CpuMicros() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](const timeval& time) {
    return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
  };
  return micros(usage.ru_utime) + micros(usage.ru_stime);
}

double Percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, static_cast<size_t>(part * values.size()));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

// ---- the driver ---------------------------------------------------------------------------------

// Waits without a thread, so that it takes any number of calls at a time.
class Node final : public csi::v1::Node::CallbackService {
 public:
  explicit Node(std::chrono::milliseconds delay) : delay_(delay) {}

  grpc::ServerUnaryReactor* NodePublishVolume(grpc::CallbackServerContext* context, const Request*,
                                              Response*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (delay_.count() == 0) {
      reactor->Finish(grpc::Status::OK);
      return reactor;
    }
    auto* alarm = new grpc::Alarm;
    alarm->Set(std::chrono::system_clock::now() + delay_, [reactor, alarm](bool) {
      reactor->Finish(grpc::Status::OK);
      delete alarm;
    });
    return reactor;
  }

 private:
  const std::chrono::milliseconds delay_;
};

// One process with a socket for each delay, until it is killed.
class Driver {
 public:
  explicit Driver(std::chrono::milliseconds delay) {
    char name[] = "/tmp/volumed-csi-bench-XXXXXX";
    if (::mkdtemp(name) == nullptr) Die("mkdtemp");
    directory_ = name;
    pid_ = ::fork();
    if (pid_ < 0) Die("fork");
    if (pid_ == 0) Serve(delay);
  }
  ~Driver() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  std::string socket() const { return directory_ + "/csi.sock"; }

 private:
  [[noreturn]] void Serve(std::chrono::milliseconds delay) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Node node(delay);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket(), grpc::InsecureServerCredentials());
    builder.RegisterService(&node);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (server == nullptr) ::_exit(1);
    for (;;) ::pause();
  }

  std::string directory_;
  pid_t pid_ = -1;
};

// ---- the two ways to it -------------------------------------------------------------------------

// One call, from any thread; ends the program if it fails.
using Way = std::function<void(const Request&)>;

class Bare {
 public:
  explicit Bare(const std::string& socket)
      : stub_(csi::v1::Node::NewStub(
            grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()))) {}

  void Call(const Request& request) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
    Response response;
    const grpc::Status status = stub_->NodePublishVolume(&context, request, &response);
    if (!status.ok()) Die("bare gRPC: " + status.error_message());
  }

 private:
  const std::unique_ptr<csi::v1::Node::Stub> stub_;
};

class Ours {
 public:
  Ours(const std::string& socket, int width) {
    CsiChannelOptions options{.driver = "bench.example.com", .socket = socket, .width = width};
    options.observers = {&trace_};
    auto channel = CsiChannel::Create(std::move(options), clock_, watch_);
    if (!channel.ok()) Die(channel.error().ToString());
    channel_ = std::move(*channel);
  }

  void Call(const Request& request) {
    const Result<Response> answer = channel_->Call<Response>(request, Options());
    if (!answer.ok()) Die(answer.error().ToString());
  }

  // Without a thread for each: all are handed over at once.
  void CallAll(const Request& request, int calls) {
    std::latch all(calls);
    for (int i = 0; i < calls; ++i) {
      channel_->Start(request, Options(), [&all](const CsiChannel::AnyAnswer& answer) {
        if (!answer.ok()) Die(answer.error().ToString());
        all.count_down();
      });
    }
    all.wait();
  }

 private:
  CsiCallOptions Options() const {
    return {.deadline = Deadline::After(clock_, std::chrono::minutes(2))};
  }

  const RealClock clock_;
  CsiTrace trace_{clock_};
  CsiStateWatch watch_;
  std::unique_ptr<CsiChannel> channel_;
};

// As the agent makes one, with a secret that must not get into the trace.
Request PublishRequest() {
  Request request;
  request.set_volume_id("projects/bench/zones/here/disks/pvc-0d5c9a52-6b1e-4c7e-9d0f-6f5d8a1b2c3d");
  request.set_staging_target_path(
      "/var/lib/volumed/plugins/kubernetes.io/csi/bench.example.com/"
      "f1c6e274f109de86334e5a70c97b4358aa3cf9c04482ea6d59b1997130b64c06/globalmount");
  request.set_target_path(
      "/var/lib/volumed/pods/0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a3001/volumes/kubernetes.io~csi/"
      "pvc-0d5c9a52-6b1e-4c7e-9d0f-6f5d8a1b2c3d/mount");
  csi::v1::VolumeCapability* capability = request.mutable_volume_capability();
  capability->mutable_mount()->set_fs_type("ext4");
  capability->mutable_access_mode()->set_mode(
      csi::v1::VolumeCapability_AccessMode_Mode_SINGLE_NODE_WRITER);
  (*request.mutable_volume_context())["storage.kubernetes.io/csiProvisionerIdentity"] = "bench";
  (*request.mutable_secrets())["password"] = "a-word-that-nobody-may-see";
  return request;
}

// ---- what is measured ---------------------------------------------------------------------------

struct Figures {
  std::vector<double> p50, p99, cpu, per_second;  // one of each round; microseconds, but the last
};

// `threads` threads call one after another until there were `calls`.
void Measure(const Way& way, int threads, int calls, Figures* figures) {
  const Request request = PublishRequest();
  std::vector<std::vector<double>> took(static_cast<size_t>(threads));
  const double cpu = CpuMicros();
  const SteadyClock::time_point begun = SteadyClock::now();
  std::vector<std::thread> callers;
  callers.reserve(took.size());
  for (std::vector<double>& own : took) {
    callers.emplace_back([&way, &request, &own, calls = calls / threads] {
      for (int i = 0; i < calls; ++i) {
        const SteadyClock::time_point sent = SteadyClock::now();
        way(request);
        own.push_back(Micros(SteadyClock::now() - sent));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  const double wall = Micros(SteadyClock::now() - begun);
  std::vector<double> all;
  for (const std::vector<double>& own : took) all.insert(all.end(), own.begin(), own.end());
  const auto count = static_cast<double>(all.size());
  figures->p50.push_back(Percentile(all, 0.5));
  figures->p99.push_back(Percentile(all, 0.99));
  figures->cpu.push_back((CpuMicros() - cpu) / count);
  figures->per_second.push_back(1e6 * count / wall);
}

void Show(const char* what, const std::vector<double>& ours, const std::vector<double>& bare) {
  std::printf("| %s | %.0f | %.0f | %.2f |\n", what, Median(ours), Median(bare),
              Median(ours) / Median(bare));
}

void CostOfACall(const Driver& driver, int calls, int rounds) {
  Bare bare(driver.socket());
  Ours ours(driver.socket(), 64);
  const Way ways[] = {[&ours](const Request& request) { ours.Call(request); },
                      [&bare](const Request& request) { bare.Call(request); }};
  std::printf(
      "\n| a driver that answers at once | volumed's channel | bare gRPC | ratio "
      "|\n|---|---:|---:|---:|\n");
  for (const int threads : {1, 8, 64}) {
    Figures figures[2];
    Figures warm;
    for (const Way& way : ways) Measure(way, threads, calls / 4, &warm);
    for (int round = 0; round < rounds; ++round) {
      for (int turn = 0; turn < 2; ++turn) {
        const int who = (round + turn) % 2;
        Measure(ways[who], threads, calls, &figures[who]);
      }
    }
    const std::string at = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    Show((at + ": a call, p50, us").c_str(), figures[0].p50, figures[1].p50);
    Show((at + ": a call, p99, us").c_str(), figures[0].p99, figures[1].p99);
    Show((at + ": processor time of a call, us").c_str(), figures[0].cpu, figures[1].cpu);
    Show((at + ": calls a second").c_str(), figures[0].per_second, figures[1].per_second);
  }
}

constexpr std::chrono::milliseconds kDelay(50);

void WidthOfALane(const Driver& driver, int rounds) {
  constexpr int kTurns = 20;  // of the width
  std::printf(
      "\n| a driver that takes %d ms, width | calls a second | most that it can be | ratio |\n"
      "|---|---:|---:|---:|\n",
      static_cast<int>(kDelay.count()));
  for (const int width : {1, 8, 64}) {
    Ours ours(driver.socket(), width);
    ours.Call(PublishRequest());
    std::vector<double> per_second;
    for (int round = 0; round < rounds; ++round) {
      const SteadyClock::time_point begun = SteadyClock::now();
      ours.CallAll(PublishRequest(), width * kTurns);
      per_second.push_back(1e6 * width * kTurns / Micros(SteadyClock::now() - begun));
    }
    const double most = width * 1000.0 / static_cast<double>(kDelay.count());
    std::printf("| %d | %.1f | %.0f | %.3f |\n", width, Median(per_second), most,
                Median(per_second) / most);
  }
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) {
  int calls = 6400;
  int rounds = 5;
  CLI::App app("A call to a CSI driver by the agent's channel, beside bare gRPC.");
  app.add_option("--calls", calls, "of each way, in a round");
  app.add_option("--rounds", rounds, "whose medians are shown");
  CLI11_PARSE(app, argc, argv);
  // Before this process has threads of gRPC's, which a fork would leave behind.
  const volumed::Driver quick(std::chrono::milliseconds(0));
  const volumed::Driver slow(volumed::kDelay);
  volumed::CostOfACall(quick, calls, rounds);
  volumed::WidthOfALane(slow, rounds);
  return 0;
}
