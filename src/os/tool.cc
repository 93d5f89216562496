#include "os/tool.h"

#include <unistd.h>

#include <utility>

#include "base/strings.h"
#include "os/program.h"

namespace volumed {
namespace {

Result<std::string> FindTool(const ToolRun& run, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const std::string path = directory + "/" + run.program;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Error::NotApplied(Code::kNotFound,
                           run.program + " is missing: install the package " + run.package);
}

// Backspaces and escapes are for terminals.
std::string Printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\b') continue;
    const auto byte = static_cast<unsigned char>(c);
    shown += (byte < 0x20 && c != '\n') || byte == 0x7F ? ' ' : c;
  }
  return std::string(TrimSpace(shown));
}

}  // namespace

std::vector<std::string> SystemToolDirectories() {
  return {"/usr/sbin", "/sbin", "/usr/bin", "/bin"};
}

Result<ToolResult> RunTool(const ToolRun& run, const std::vector<std::string>& directories,
                           const CallOptions& options) {
  ASSIGN_OR_RETURN(const std::string path, FindTool(run, directories));
  ProgramSetup setup;
  setup.arguments = {path};
  setup.arguments.insert(setup.arguments.end(), run.arguments.begin(), run.arguments.end());
  // So that no library besides blkid judges the device.
  setup.environment = {"E2FSPROGS_LIBMAGIC_SUPPRESS=1"};
  setup.descriptors = {run.device};
  ASSIGN_OR_RETURN(const ProgramOutcome outcome, RunToEnd(setup, options));
  ToolResult result{outcome.end.status, Printable(outcome.output)};
  if (outcome.end.exited) return result;
  return Error::MaybeApplied(Code::kUnavailable, run.program + " was killed by signal " +
                                                     std::to_string(outcome.end.status) + ": " +
                                                     result.output);
}

}  // namespace volumed
