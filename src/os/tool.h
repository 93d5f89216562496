// RunTool: runs one program of the system (mkfs, fsck) for an effect and waits for its end. The
// device reaches it as an inherited descriptor, so that it works on what was checked whatever
// became of the path.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// The path of the device in a tool's arguments.
inline constexpr char kToolDevice[] = "/proc/self/fd/3";

struct ToolRun {
  std::string program;  // "mkfs.ext4"; looked for in the directories
  std::string package;  // for the error when it is missing
  std::vector<std::string> arguments;
  int device = -1;
};

// How a tool ended by itself, well or not.
struct ToolResult {
  int exit_code = 0;
  std::string output;  // the end of stdout and stderr, in printable characters
};

// Where tools are looked for, in order. Source: the PATH that mount(8) and fsck(8) use.
std::vector<std::string> SystemToolDirectories();

// Threads: any. Blocks: until the tool ends; it is never killed here. The tool is in the caller's
// process group and keeps options.kept_by_tools open. Progress: bytes read and written by it.
// Errors: NotFound, not applied, naming the package; errno of the start, not applied; Unavailable,
// maybe applied, when a signal ended the tool.
Result<ToolResult> RunTool(const ToolRun& run, const std::vector<std::string>& directories,
                           const CallOptions& options);

}  // namespace volumed
