// The verbs of volumectl: one function each, words in, exit code out.
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
  std::string name_space;  // "": default, or all where a verb lists
};

// "-" is standard input; nullopt, and a line on stderr, if it cannot be read.
std::optional<std::string> ReadManifest(const std::string& file);

// `replace`: pods whose volumes are others are replaced.
ExitCode RunApply(const CliContext& context, const std::vector<std::string>& files, bool replace);
struct DeleteOptions {
  bool force = false;
  bool ignore_not_found = false;
  bool yes = false;
};
// One after the other, whatever becomes of those before; the exit code is the last failure's.
ExitCode RunDelete(const CliContext& context, const std::string& kind,
                   const std::vector<std::string>& names, const DeleteOptions& options);
// What the manifests name, the last first.
ExitCode RunDeleteFiles(const CliContext& context, const std::vector<std::string>& files,
                        const DeleteOptions& options);
ExitCode RunGet(const CliContext& context, const std::string& what, const std::string& name);
ExitCode RunDescribe(const CliContext& context, const std::string& kind, const std::string& name);
ExitCode RunExplain(const CliContext& context, const std::string& pod);
// `wait_timeout` is for the condition, the context's timeout for everything else.
ExitCode RunWait(const CliContext& context, const std::string& pod, const std::string& condition,
                 std::chrono::milliseconds wait_timeout);
ExitCode RunHold(const CliContext& context, const std::string& pod, int64_t pid,
                 const std::string& cgroup, bool release);
// `volume` empty: all of the pod.
ExitCode RunRetry(const CliContext& context, const std::string& pod, const std::string& volume);
ExitCode RunSources(const CliContext& context);
ExitCode RunRecords(const CliContext& context);
// `volume` empty: all of them.
ExitCode RunRecordsAccept(const CliContext& context, const std::string& volume);
// Of a PersistentVolume.
ExitCode RunAcceptVolume(const CliContext& context, const std::string& name);
// Both show what goes. `yes`: also if volumes are mounted.
ExitCode RunSourceAccept(const CliContext& context, const std::string& source, bool yes,
                         bool dry_run);
ExitCode RunSourceForget(const CliContext& context, const std::string& source, bool yes,
                         bool dry_run);
ExitCode RunOci(const CliContext& context, const std::string& pod, const std::string& container);
ExitCode RunStatus(const CliContext& context);
// The program's and the agent's.
ExitCode RunVersion(const CliContext& context);
// Until a signal comes, or once.
ExitCode RunTop(const CliContext& context, bool once, std::chrono::milliseconds interval);
// `object`: a pod, or KIND/NAME, or KIND/NAMESPACE/NAME; empty: of all.
ExitCode RunEvents(const CliContext& context, const std::string& object, bool watch);
ExitCode RunCompletion(const std::string& shell);
// Prints what may stand next in `words`, one a line.
ExitCode RunComplete(const CliContext& context, const CLI::App& commands,
                     const std::vector<std::string>& words);

}  // namespace volumed
