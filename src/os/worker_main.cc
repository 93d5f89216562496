// volumed-worker: does one effect after another for the agent, in a process that can be killed.
// Started by the agent alone, with the descriptors that os/worker_process.h names. It ends when the
// agent closes the socket, after the request at hand. With --thaw= it is a thawer (os/thawer.h),
// which a worker starts.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "os/local_kernel.h"
#include "os/process_guard.h"
#include "os/thawer.h"
#include "os/worker_channel.h"
#include "os/worker_codec.h"
#include "os/worker_keys.h"
#include "os/worker_minder.h"
#include "os/worker_process.h"

namespace volumed {
namespace {

struct Arguments {
  LocalKernelOptions kernel;
  std::optional<Duration> thaw_after = std::nullopt;  // it is a thawer
};

std::optional<Arguments> ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    if (const auto root = StripPrefix(argument, "--agent-root=")) {
      arguments.kernel.agent_root = *root;
    } else if (const auto mask = StripPrefix(argument, "--mask=")) {
      arguments.kernel.masked_features.emplace_back(*mask);
    } else if (const auto limit = StripPrefix(argument, kThawArgument)) {
      const std::optional<int64_t> micros = ParseInt64(*limit);
      if (!micros || *micros <= 0) return std::nullopt;
      arguments.thaw_after = std::chrono::microseconds(*micros);
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

class Worker {
 public:
  // `keys` is nothing for a worker without a page for them.
  Worker(Kernel& kernel, std::optional<WorkerKeys> keys, Descriptor socket)
      : kernel_(kernel),
        keys_(std::move(keys)),
        channel_(std::move(socket)),
        minder_(channel_.fd()) {}

  int Run() {
    while (true) {
      const Result<std::optional<WorkerMessage>> message = channel_.Receive(true);
      if (!message.ok()) return 1;
      if (!message->has_value()) return 0;
      // A cancel that came after its request was answered.
      if ((*message)->kind != MessageKind::kBody) continue;
      const Result<AnyAnswer> answer = Serve((*message)->body);
      if (keys_) keys_->LetGo();
      // An agent that is gone takes no answer; what was done stays done.
      if (!SendAnswer(answer).ok()) return 0;
    }
  }

 private:
  Status SendAnswer(const Result<AnyAnswer>& answer) {
    const std::string body = EncodeAnswer(answer);
    const int descriptor = DescriptorOf(answer);
    if (descriptor < 0) return channel_.Send(MessageKind::kBody, body);
    return channel_.SendWithDescriptor(MessageKind::kBody, body, descriptor);
  }

  Result<AnyAnswer> Serve(const std::string& bytes) {
    ASSIGN_OR_RETURN(const WorkerRequest request, DecodeRequest(bytes));
    CancelToken cancel;
    CallOptions options;
    options.cancel = &cancel;
    options.kept_by_tools = {kWorkerLife};
    if (keys_) options.kept_by_tools.push_back(kWorkerKeys);
    options.progress = [&](int64_t done) { AtSafePoint(done, request.wants_progress, cancel); };
    minder_.Begin(request.time_left);
    Result<AnyAnswer> answer = kernel_.Perform(request.request, options);
    minder_.End();
    return answer;
  }

  void AtSafePoint(int64_t done, bool wants_progress, CancelToken& cancel) {
    if (wants_progress && !channel_.Send(MessageKind::kProgress, std::to_string(done)).ok()) return;
    // While a request runs, nothing but a cancel can come.
    const Result<std::optional<WorkerMessage>> message = channel_.Receive(false);
    if (message.ok() && message->has_value() && (*message)->kind == MessageKind::kCancel) {
      cancel.Cancel();
    }
  }

  Kernel& kernel_;
  std::optional<WorkerKeys> keys_;
  WorkerChannel channel_;
  WorkerMinder minder_;
};

// A walk keeps a descriptor per level of a tree, up to a bound above the usual soft limit.
void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(int argc, char** argv) {
  std::optional<Arguments> arguments = ParseArguments(argc, argv);
  struct stat socket = {};
  struct stat life = {};
  const bool has_socket = ::fstat(kWorkerSocket, &socket) == 0 && S_ISSOCK(socket.st_mode);
  if (arguments && arguments->thaw_after && has_socket) return RunThawer(*arguments->thaw_after);
  const bool by_agent = has_socket && ::fstat(kWorkerLife, &life) == 0 && S_ISFIFO(life.st_mode);
  if (!arguments || !by_agent) {
    std::fprintf(stderr, "volumed-worker is started by volumed, and does nothing by itself\n");
    return 64;
  }
  ::prctl(PR_SET_NAME, "volumed-worker");
  if (const Status guarded = GuardProcess(); !guarded.ok()) {
    std::fprintf(stderr, "volumed-worker: %s\n", guarded.error().ToString().c_str());
    return 78;
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0);  // modes in requests are exact
  arguments->kernel.thawer = "/proc/self/exe";
  RaiseDescriptorLimit();
  Result<std::unique_ptr<LocalKernel>> kernel = LocalKernel::Create(arguments->kernel);
  if (!kernel.ok()) {
    std::fprintf(stderr, "volumed-worker: %s\n", kernel.error().ToString().c_str());
    return 78;
  }
  std::optional<WorkerKeys> keys;
  struct stat page = {};
  // An agent that keeps no keys gives /dev/null in place of a page.
  if (::fstat(kWorkerKeys, &page) == 0 && S_ISREG(page.st_mode)) {
    Result<WorkerKeys> inherited = WorkerKeys::Inherit(kWorkerKeys);
    if (!inherited.ok()) {
      std::fprintf(stderr, "volumed-worker: %s\n", inherited.error().ToString().c_str());
      return 78;
    }
    keys.emplace(*std::move(inherited));
  }
  return Worker(**kernel, std::move(keys), Descriptor(kWorkerSocket)).Run();
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) { return volumed::Main(argc, argv); }
