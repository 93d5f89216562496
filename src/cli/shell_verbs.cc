// What shells ask for: the verb completion, and the candidates for the next word.
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/calls.h"
#include "cli/completion.h"

namespace volumed {
namespace {

struct CompletionWords {
  std::string shell;
};

ExitCode RunCompletion(const CliContext& /*context*/, const CompletionWords& words) {
  const std::optional<std::string> script = CompletionScript(words.shell);
  if (!script) {
    std::cerr << "volumectl: no completion for the shell '" << words.shell << "'\n";
    return kExitUsage;
  }
  std::cout << *script;
  return kExitOk;
}

// A shell waits for it while somebody has pressed the tab key.
constexpr std::chrono::milliseconds kLookupTimeout(1000);

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
  if (kind == "driver") {
    v1::GetDriversResponse drivers;
    (void)client.Call(&Stub::GetDrivers, v1::GetDriversRequest(), &drivers);
    for (const v1::Driver& driver : drivers.drivers()) names.push_back(driver.name());
    return names;
  }
  if (kind == "snapshot") {
    v1::GetSnapshotsResponse snapshots;
    (void)client.Call(&Stub::GetSnapshots, v1::GetSnapshotsRequest(), &snapshots);
    for (const v1::Snapshot& snapshot : snapshots.snapshots()) names.push_back(snapshot.id());
    return names;
  }
  if (kind == "pool") {
    v1::GetPoolsResponse pools;
    (void)client.Call(&Stub::GetPools, v1::GetPoolsRequest(), &pools);
    for (const v1::Pool& pool : pools.pools()) names.push_back(pool.name());
    return names;
  }
  if (kind == "pool-volume") {
    v1::GetPoolVolumesResponse volumes;
    (void)client.Call(&Stub::GetPoolVolumes, v1::GetPoolVolumesRequest(), &volumes);
    for (const v1::PoolVolume& volume : volumes.volumes()) names.push_back(volume.id());
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

void AddShellVerbs(const Verbs& verbs) {
  verbs.Add<CompletionWords>(
      "completion", "print a shell's completion script",
      [](CLI::App& verb, CompletionWords& words) {
        verb.add_option("shell", words.shell, "bash or zsh")
            ->required()
            ->check(CLI::IsMember({"bash", "zsh"}));
      },
      RunCompletion);
}

}  // namespace volumed
