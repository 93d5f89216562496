// From `apply` to mounted and from `delete` to gone, with the real agent: its own process, its
// workers, its socket, its root and records on the filesystem of the scratch directory.
//
// The pod has a secret, a configMap, a projected volume with a service account token, an emptyDir
// in memory and a subPath. As a yardstick measured in the same run, interleaved: what the same
// mounts cost when each is made by running mount(8), as kubelet's mount-utils does.
//
//   pod_start_bench --agent build/release/src/agent/volumed [--pods 200] [--scratch /var/tmp]
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "agent.grpc.pb.h"

extern char** environ;

namespace volumed {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

[[noreturn]] void Die(const std::string& message) {
  std::cerr << "pod_start_bench: " << message << "\n";
  std::exit(EXIT_FAILURE);
}

pid_t Spawn(const std::vector<std::string>& words, bool quiet) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) Die("cannot start " + words[0]);
  return pid;
}

void RunToEnd(const std::vector<std::string>& words) {
  int status = 0;
  const pid_t pid = Spawn(words, false);
  if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    Die(words[0] + " " + words.back() + " failed");
  }
}

std::string Objects() {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
         "data: {a: one, b: two, c: three}\n---\n"
         "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {user: u, word: w}\n";
}

std::string PodManifest(int number) {
  const std::string n = std::to_string(number);
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p" + n + ", uid: bench-" + n +
         "}\n"
         "spec:\n"
         "  securityContext: {fsGroup: 2000}\n"
         "  containers:\n"
         "  - name: main\n"
         "    image: x\n"
         "    volumeMounts:\n"
         "    - {name: s, mountPath: /s}\n"
         "    - {name: c, mountPath: /c}\n"
         "    - {name: t, mountPath: /t}\n"
         "    - {name: m, mountPath: /m}\n"
         "    - {name: c, mountPath: /one, subPath: a}\n"
         "  volumes:\n"
         "  - {name: s, secret: {secretName: s}}\n"
         "  - {name: c, configMap: {name: c}}\n"
         "  - name: t\n"
         "    projected:\n"
         "      sources:\n"
         "      - serviceAccountToken: {path: token, audience: bench}\n"
         "  - {name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}\n";
}

class Agent {
 public:
  Agent(const std::string& program, const fs::path& scratch)
      : socket_((scratch / "agent.sock").string()) {
    std::ofstream(scratch / "config.yaml")
        << "root: " << (scratch / "root").string() << "\nmanifest-dir: [" << scratch.string()
        << "/manifests]\nsocket: " << socket_
        << "\nsocket-group: \"\"\nmetrics-address: \"\"\nlog-level: error\n";
    fs::create_directories(scratch / "manifests");
    pid_ = Spawn({program, "run", "--config", (scratch / "config.yaml").string()}, false);
    stub_ = v1::VolumeAgent::NewStub(
        grpc::CreateChannel("unix://" + socket_, grpc::InsecureChannelCredentials()));
    WaitUntilReady();
  }
  ~Agent() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  void Apply(const std::string& manifest) {
    v1::ApplyRequest request;
    request.set_file("bench");
    request.set_manifest(manifest);
    v1::ApplyResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->Apply(&context, request, &response);
    if (!status.ok()) Die("apply: " + status.error_message());
    if (response.problems_size() > 0) Die("apply: " + response.problems(0).reason());
  }

  void Delete(const std::string& uid) {
    v1::DeleteRequest request;
    request.mutable_object()->set_kind("Pod");
    request.mutable_object()->set_uid(uid);
    v1::DeleteResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->Delete(&context, request, &response);
    if (!status.ok()) Die("delete: " + status.error_message());
  }

  void Wait(const std::string& uid, const std::string& condition) {
    v1::WaitRequest request;
    request.mutable_pod()->set_kind("Pod");
    request.mutable_pod()->set_uid(uid);
    request.set_for_(condition);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const auto reader = stub_->Wait(&context, request);
    v1::WaitResponse response;
    while (reader->Read(&response)) {
    }
    if (!reader->Finish().ok() || !response.met()) {
      Die("pod " + uid + " is not " + condition + ": " + response.ShortDebugString());
    }
  }

 private:
  void WaitUntilReady() {
    for (int i = 0; i < 1000; ++i) {
      v1::GetStatusResponse response;
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
      if (stub_->GetStatus(&context, v1::GetStatusRequest(), &response).ok() && response.ready()) {
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    Die("the agent is not ready");
  }

  const std::string socket_;
  pid_t pid_ = 0;
  std::unique_ptr<v1::VolumeAgent::Stub> stub_;
};

template <typename Work>
double Timed(const Work& work) {
  const Clock::time_point start = Clock::now();
  work();
  return Millis(Clock::now() - start).count();
}

// Three tmpfs mounts, and a bind with its read-only remount, each by mount(8).
void MountByCommand(const fs::path& directory) {
  for (const char* name : {"s", "t", "m"}) {
    fs::create_directories(directory / name);
    RunToEnd({"mount", "-t", "tmpfs", "-o", "size=1048576", "tmpfs", (directory / name).string()});
  }
  std::ofstream(directory / "source") << "x";
  std::ofstream(directory / "bind") << "";
  RunToEnd({"mount", "--no-canonicalize", "-o", "bind", (directory / "source").string(),
            (directory / "bind").string()});
  RunToEnd({"mount", "--no-canonicalize", "-o", "bind,remount", (directory / "source").string(),
            (directory / "bind").string()});
}

void UnmountByCommand(const fs::path& directory) {
  for (const char* name : {"s", "t", "m", "bind"}) {
    RunToEnd({"umount", (directory / name).string()});
  }
  fs::remove_all(directory);
}

double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(part * static_cast<double>(values.size())))];
}

void Print(const char* name, const std::vector<double>& values,
           const std::vector<double>* yardstick) {
  std::printf("%-34s %8.2f %8.2f", name, Percentile(values, 0.5), Percentile(values, 0.99));
  if (yardstick)
    std::printf("   %.2f of it", Percentile(values, 0.5) / Percentile(*yardstick, 0.5));
  std::printf("\n");
}

std::string FilesystemOf(const fs::path& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return "unknown";
  return info.f_type == 0xEF53 ? "ext4" : "magic " + std::to_string(info.f_type);
}

int Main(int argc, char** argv) {
  std::string program;
  std::string parent = "/var/tmp";
  int pods = 200;
  CLI::App app("pod start latency of the real agent");
  app.add_option("--agent", program, "the volumed program")->required()->check(CLI::ExistingFile);
  app.add_option("--pods", pods, "how many pods")->check(CLI::Range(10, 100000));
  app.add_option("--scratch", parent, "where the root and the records are made");
  CLI11_PARSE(app, argc, argv);
  if (::geteuid() != 0) Die("needs root: it mounts");

  std::string name = parent + "/volumed-bench-XXXXXX";
  const fs::path scratch = ::mkdtemp(name.data());
  std::vector<double> start, stop, mount_command, umount_command;
  {
    Agent agent(program, scratch);
    agent.Apply(Objects());
    const int warm_up = pods / 10;
    for (int i = 0; i < pods + warm_up; ++i) {
      const std::string uid = "bench-" + std::to_string(i);
      const std::string manifest = PodManifest(i);
      const double up = Timed([&] {
        agent.Apply(manifest);
        agent.Wait(uid, "ready");
      });
      const double down = Timed([&] {
        agent.Delete(uid);
        agent.Wait(uid, "gone");
      });
      const fs::path by_command = scratch / ("command-" + std::to_string(i));
      const double command_up = Timed([&] { MountByCommand(by_command); });
      const double command_down = Timed([&] { UnmountByCommand(by_command); });
      if (i < warm_up) continue;
      start.push_back(up);
      stop.push_back(down);
      mount_command.push_back(command_up);
      umount_command.push_back(command_down);
    }
  }
  std::printf("root and records on %s, %d pods, milliseconds\n", FilesystemOf(scratch).c_str(),
              pods);
  std::printf("%-34s %8s %8s\n", "", "p50", "p99");
  Print("its 5 mounts alone, by mount(8)", mount_command, nullptr);
  Print("apply to mounted, whole pod", start, &mount_command);
  Print("its 4 unmounts alone, by umount(8)", umount_command, nullptr);
  Print("delete to gone, whole pod", stop, &umount_command);
  RunToEnd({"umount", "-R", (scratch / "root").string()});
  fs::remove_all(scratch);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) { return volumed::Main(argc, argv); }
