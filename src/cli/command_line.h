// The command line of volumectl: its tree of verbs and options, from which completion is made too.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "cli/verbs.h"

namespace volumed {

// The options that every verb has, as they are parsed. Parsing fills of the context only socket and
// name_space; RunCommandLine makes its format and timeout of the other two.
struct CommonWords {
  CliContext context;
  std::string output = "table";
  double timeout_s = 10;  // seconds that one request may take
};

// Adds all verbs and options to `app`. Parsing fills `words` and sets `chosen`, and throws a
// CLI::ParseError for a line that is wrong; both outlive the use of `app`.
void AddCommands(CLI::App& app, CommonWords& words, Verb& chosen);

// Parses the command line and carries it out. Returns the exit code (cli/exit_code.h). The socket
// is that of --socket, else of VOLUMED_SOCKET, else /run/volumed/volumed.sock. Blocks: as long as
// the verb does.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace volumed
