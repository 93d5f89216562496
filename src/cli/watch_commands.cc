// The verbs that look: describe, top, events, and completion.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/describe.h"
#include "cli/top.h"

namespace volumed {
namespace {

using Stub = v1::VolumeAgent::Stub;

// A shell waits for it while somebody has pressed the tab key.
constexpr std::chrono::milliseconds kLookupTimeout(1000);
// Home, and clear what is below. Source: ECMA-48 (CUP, ED).
constexpr const char* kClearScreen = "\x1b[H\x1b[J";

// POD/VOLUME in its two halves; without a slash the volume is empty, which the agent refuses.
void SplitVolumeName(const std::string& name, v1::DescribeRequest* request) {
  const size_t slash = name.find('/');
  request->mutable_object()->set_name(name.substr(0, slash));
  if (slash != std::string::npos) request->set_volume(name.substr(slash + 1));
}

bool IsVolume(const std::string& kind) { return kind == "volume" || kind == "volumes"; }

// "web" is a pod; with a slash in it, the kind stands before the name.
v1::ObjectRef ParseObjectWord(const CliContext& context, const std::string& word) {
  v1::ObjectRef ref;
  ref.set_namespace_(context.name_space);
  const size_t slash = word.find('/');
  if (slash == std::string::npos) {
    if (!word.empty()) ref.set_kind("Pod");
    ref.set_name(word);
    return ref;
  }
  ref.set_kind(word.substr(0, slash));
  const std::string rest = word.substr(slash + 1);
  const size_t second = rest.find('/');
  if (second != std::string::npos) ref.set_namespace_(rest.substr(0, second));
  ref.set_name(second == std::string::npos ? rest : rest.substr(second + 1));
  return ref;
}

std::vector<std::string> EventRow(const v1::ObjectEvent& logged, int64_t now) {
  const v1::ObjectRef& object = logged.object();
  const v1::Event& event = logged.event();
  const std::string name_space = object.namespace_().empty() ? "" : object.namespace_() + "/";
  return {FormatAge(event.last_unix_ms(), now),
          event.type(),
          event.reason(),
          std::to_string(event.count()),
          object.kind() + " " + name_space + object.name(),
          event.message()};
}

void PrintEvents(const v1::WatchEventsResponse& answer, OutputFormat format, bool watch) {
  if (IsForPrograms(format)) {
    PrintMessage(answer, format, std::cout);
    std::cout << std::flush;
    return;
  }
  std::vector<std::vector<std::string>> rows;
  // What is followed has no heading: each answer would repeat it.
  if (!watch) rows.push_back({"LAST SEEN", "TYPE", "REASON", "COUNT", "OBJECT", "MESSAGE"});
  for (const v1::ObjectEvent& logged : answer.events()) {
    rows.push_back(EventRow(logged, NowUnixMs()));
  }
  PrintTable(rows, std::cout);
  if (answer.not_shown() > 0) std::cout << "and " << answer.not_shown() << " older ones\n";
  std::cout << std::flush;
}

// The names of a kind, for completion: no error is shown and nothing waits for long.
std::vector<std::string> NamesOf(const CliContext& context, const std::string& kind) {
  Client client(context.socket, kLookupTimeout);
  std::vector<std::string> names;
  if (kind == "source") {
    v1::GetSourcesResponse sources;
    (void)client.Call(&Stub::GetSources, v1::GetSourcesRequest(), &sources);
    for (const v1::Source& source : sources.sources()) names.push_back(source.name());
    return names;
  }
  v1::ListObjectsRequest request;
  request.set_kind(kind);
  // A pod is looked for in the default namespace; others are not offered.
  request.set_namespace_(context.name_space.empty() ? "default" : context.name_space);
  v1::ListObjectsResponse response;
  (void)client.Call(&Stub::ListObjects, request, &response);
  for (const v1::ObjectRef& object : response.objects()) names.push_back(object.name());
  return names;
}

}  // namespace

ExitCode RunDescribe(const CliContext& context, const std::string& kind, const std::string& name) {
  v1::DescribeRequest request;
  request.mutable_object()->set_kind(kind);
  request.mutable_object()->set_namespace_(context.name_space);
  request.mutable_object()->set_name(name);
  if (IsVolume(kind)) SplitVolumeName(name, &request);
  v1::DescribeResponse response;
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Call(&Stub::Describe, request, &response);
  if (!status.ok()) return ReportFailure(status, context.socket);
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    PrintDescription(response, NowUnixMs(), std::cout);
  }
  return kExitOk;
}

ExitCode RunTop(const CliContext& context, bool once, std::chrono::milliseconds interval) {
  v1::WatchOperationsRequest request;
  request.set_once(once);
  request.set_interval_ms(interval.count());
  // In a pipe each answer follows the one before.
  const bool clear = !once && !IsForPrograms(context.format) && ::isatty(STDOUT_FILENO) == 1;
  Client client(context.socket, context.timeout);
  const auto show = [&](const v1::WatchOperationsResponse& answer) {
    // Past what std::cout escapes.
    if (clear) std::fputs(kClearScreen, stdout);
    PrintTop(answer, context.format, std::cout);
    std::cout << std::flush;
  };
  const grpc::Status status =
      client.Stream<v1::WatchOperationsRequest, v1::WatchOperationsResponse>(
          &Stub::WatchOperations, request, once ? std::optional(context.timeout) : std::nullopt,
          show);
  return status.ok() ? kExitOk : ReportFailure(status, context.socket);
}

ExitCode RunEvents(const CliContext& context, const std::string& object, bool watch) {
  v1::WatchEventsRequest request;
  *request.mutable_object() = ParseObjectWord(context, object);
  request.set_follow(watch);
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Stream<v1::WatchEventsRequest, v1::WatchEventsResponse>(
      &Stub::WatchEvents, request, watch ? std::nullopt : std::optional(context.timeout),
      [&](const v1::WatchEventsResponse& answer) { PrintEvents(answer, context.format, watch); });
  return status.ok() ? kExitOk : ReportFailure(status, context.socket);
}

ExitCode RunCompletion(const std::string& shell) {
  const std::optional<std::string> script = CompletionScript(shell);
  if (!script) {
    std::cerr << "volumectl: no completion for the shell '" << shell << "'\n";
    return kExitUsage;
  }
  std::cout << *script;
  return kExitOk;
}

ExitCode RunComplete(const CliContext& context, const CLI::App& commands,
                     const std::vector<std::string>& words) {
  const NameLookup lookup = [&](const LineOptions& options, const std::string& kind) {
    CliContext mine = context;
    if (!options.socket.empty()) mine.socket = options.socket;
    mine.name_space = options.name_space;
    return NamesOf(mine, kind);
  };
  for (const std::string& candidate : Complete(commands, words, lookup)) {
    std::cout << candidate << "\n";
  }
  return kExitOk;
}

}  // namespace volumed
