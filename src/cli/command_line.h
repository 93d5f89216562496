// The command line of volumectl: its tree of verbs and options. Completion is made from the same
// tree.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace volumed {

// What the words of a call become.
struct CommandWords {
  CliContext context;
  std::string output = "table";
  double timeout_s = 10;
  double wait_timeout_s = 30;  // kubectl's
  std::vector<std::string> files, names;
  std::string kind, name, what, container, volume, shell, condition = "ready", cgroup;
  int64_t pid = 0;
  double interval_s = 1;
  bool force = false, ignore_not_found = false, release = false, once = false, watch = false;
  bool yes = false, dry_run = false, replace = false;
};

using Verb = std::function<ExitCode()>;

// Adds everything to `app`; parsing fills `words` and sets `chosen`. Both outlive `app`'s use.
void AddCommands(CLI::App& app, CommandWords& words, Verb& chosen);

}  // namespace volumed
