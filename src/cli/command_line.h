// The command line of volumectl: its tree of verbs and options, from which completion is made too.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace volumed {

// The parsed words of a call.
struct CommandWords {
  CliContext context;
  std::string output = "table";
  double timeout_s = 10;
  double wait_timeout_s = 30;  // kubectl's default
  std::vector<std::string> files, names;
  std::string kind, name, what, container, volume, shell, condition = "ready", cgroup;
  int64_t pid = 0;
  double interval_s = 1;
  bool force = false, ignore_not_found = false, release = false, once = false, watch = false;
  bool yes = false, dry_run = false, replace = false;
};

using Verb = std::function<ExitCode()>;

// Adds all verbs and options to `app`. Parsing fills `words` and sets `chosen`; both outlive the
// use of `app`.
void AddCommands(CLI::App& app, CommandWords& words, Verb& chosen);

}  // namespace volumed
