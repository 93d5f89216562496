// Running a program for an effect and waiting for its end, with what it printed last.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/child_process.h"
#include "os/kernel.h"

namespace volumed {

// So much of the end of the output is kept unless somebody says otherwise.
inline constexpr size_t kProgramOutputBytes = 4096;

struct ProgramSetup {
  std::vector<std::string> arguments;    // the first is the program's absolute path
  std::vector<std::string> environment;  // besides PATH and LC_ALL=C
  std::vector<int> descriptors;          // which it has from 3 on, before options.kept_by_tools
  size_t output_bytes = kProgramOutputBytes;  // of the output, at most this much is kept
  // Set: it runs in a scope of its own, called after this ("mount", "/path"), where there are
  // scopes, and without options.kept_by_tools.
  std::optional<std::pair<std::string, std::string>> scope = std::nullopt;
};

// How it ended. That it failed is no error of RunToEnd().
struct ProgramOutcome {
  ChildEnd end;
  std::string output;  // the end of stdout and stderr
};

// The program is in the caller's process group. A daemon that it leaves behind is not waited for.
// Threads: any. Blocks: until the program ends: whoever cannot wait for it kills the worker, and
// the program with it. Progress: bytes that it read and wrote.
// Errors: errno of the start, not applied; maybe applied when it was started and had to be killed
// at once, for want of descriptors. If its scope cannot be made, the program runs without one, and
// the worker says so once on stderr.
Result<ProgramOutcome> RunToEnd(const ProgramSetup& setup, const CallOptions& options);

Result<ProgramEnd> DoRunProgram(const RunProgram& request, const CallOptions& options);

}  // namespace volumed
