// The verbs of volumectl. Each is one function that takes the parsed words and returns the exit
// code.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "cli/client.h"
#include "cli/output.h"

namespace CLI {
class App;
}  // namespace CLI

namespace volumed {

struct CliContext {
  std::string socket;
  OutputFormat format = OutputFormat::kTable;
  std::chrono::milliseconds timeout{10000};
  std::string name_space;  // "": "default", or all if the verb lists
};

// Reads the file; "-" is standard input. Returns nullopt, after a line on stderr, if it cannot be
// read.
std::optional<std::string> ReadManifest(const std::string& file);

// `replace` replaces pods whose volumes the manifest changes.
ExitCode RunApply(const CliContext& context, const std::vector<std::string>& files, bool replace);
struct DeleteOptions {
  bool force = false;
  bool ignore_not_found = false;
  bool yes = false;
};
// Deletes the objects one after the other, even if one before has failed; the exit code is that of
// the last failure.
ExitCode RunDelete(const CliContext& context, const std::string& kind,
                   const std::vector<std::string>& names, const DeleteOptions& options);
// Deletes what the manifests name, the last object first.
ExitCode RunDeleteFiles(const CliContext& context, const std::vector<std::string>& files,
                        const DeleteOptions& options);
ExitCode RunGet(const CliContext& context, const std::string& what, const std::string& name);
ExitCode RunDescribe(const CliContext& context, const std::string& kind, const std::string& name);
ExitCode RunExplain(const CliContext& context, const std::string& pod);
// `wait_timeout` limits the wait for the condition; the context's timeout limits everything else.
ExitCode RunWait(const CliContext& context, const std::string& pod, const std::string& condition,
                 std::chrono::milliseconds wait_timeout);
ExitCode RunHold(const CliContext& context, const std::string& pod, int64_t pid,
                 const std::string& cgroup, bool release);
// An empty `volume` means all volumes of the pod.
ExitCode RunRetry(const CliContext& context, const std::string& pod, const std::string& volume);
ExitCode RunSources(const CliContext& context);
ExitCode RunRecords(const CliContext& context);
// An empty `volume` means all volumes.
ExitCode RunRecordsAccept(const CliContext& context, const std::string& volume);
// `name` is that of a PersistentVolume.
ExitCode RunAcceptVolume(const CliContext& context, const std::string& name);
// Both show what goes. `yes` allows it even if volumes are mounted or have data on disk.
ExitCode RunSourceAccept(const CliContext& context, const std::string& source, bool yes,
                         bool dry_run);
ExitCode RunSourceForget(const CliContext& context, const std::string& source, bool yes,
                         bool dry_run);
ExitCode RunOci(const CliContext& context, const std::string& pod, const std::string& container);
ExitCode RunStatus(const CliContext& context);
// Prints the version of the program and that of the agent.
ExitCode RunVersion(const CliContext& context);
// Runs until a signal comes; with `once` it prints one answer.
ExitCode RunTop(const CliContext& context, bool once, std::chrono::milliseconds interval);
// `object` is a pod, KIND/NAME, or KIND/NAMESPACE/NAME; an empty one means all objects.
ExitCode RunEvents(const CliContext& context, const std::string& object, bool watch);
ExitCode RunCompletion(const std::string& shell);
// Prints what may come next after `words`, one candidate a line.
ExitCode RunComplete(const CliContext& context, const CLI::App& commands,
                     const std::vector<std::string>& words);

}  // namespace volumed
