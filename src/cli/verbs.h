// The verbs of volumectl. Each is one declaration: its name, its help, the words that it takes, and
// the function that carries it out. The declarations stand beside the functions, in
// object_verbs.cc, delete.cc, pod_verbs.cc, agent_verbs.cc, driver_verbs.cc, snapshot_verbs.cc,
// pool_verbs.cc and shell_verbs.cc, so that a new verb costs one of these files. The help, the
// parser and the shells' completion come from them.
#pragma once

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "cli/exit_code.h"
#include "cli/output.h"

namespace volumed {

// What every verb is told. It is complete when a verb runs, not yet when the command line is
// parsed.
struct CliContext {
  std::string socket;
  OutputFormat format = OutputFormat::kTable;
  std::chrono::milliseconds timeout{10000};
  std::string name_space;  // "": "default", or all if the verb lists
};

// The verb that the command line names, with its words. It prints to std::cout and std::cerr, and
// blocks as long as its calls do.
using Verb = std::function<ExitCode()>;

// Adds verbs to the tree of commands. `Words` is a struct of the verb's own that parsing fills; if
// it has a method Check() const, that throws a CLI::ParseError for words that contradict each
// other.
class Verbs {
 public:
  // The context and `chosen`, which parsing sets, outlive the use of `app`.
  Verbs(CLI::App& app, const CliContext& context, Verb& chosen)
      : app_(app), context_(context), chosen_(chosen) {}

  // Adds a verb. `declare` adds its places and options; `run` carries it out, after the whole line
  // was parsed. `name` and `help` are copied.
  template <typename Words>
  void Add(const char* name, const char* help, void (*declare)(CLI::App&, Words&),
           ExitCode (*run)(const CliContext&, const Words&)) const {
    CLI::App* const verb = app_.add_subcommand(name, help);
    const auto words = std::make_shared<Words>();
    declare(*verb, *words);
    verb->callback([words, run, &context = context_, &chosen = chosen_] {
      if constexpr (requires { words->Check(); }) words->Check();
      chosen = [words, run, &context] { return run(context, *words); };
    });
  }
  // Adds a verb without words of its own.
  void Add(const char* name, const char* help, ExitCode (*run)(const CliContext&)) const {
    Choose(app_.add_subcommand(name, help), run);
  }

  // Adds a verb that has verbs of its own, one of which must follow; if `run` is given, it is
  // carried out if none follows. The result adds the verbs of the group.
  Verbs Group(const char* name, const char* help,
              ExitCode (*run)(const CliContext&) = nullptr) const {
    CLI::App* const verb = app_.add_subcommand(name, help);
    verb->require_subcommand(run == nullptr ? 1 : 0, 1);
    if (run != nullptr) Choose(verb, run);
    return {*verb, context_, chosen_};
  }

 private:
  void Choose(CLI::App* verb, ExitCode (*run)(const CliContext&)) const {
    verb->callback([verb, run, &context = context_, &chosen = chosen_] {
      if (verb->get_subcommands().empty()) chosen = [run, &context] { return run(context); };
    });
  }

  CLI::App& app_;
  const CliContext& context_;
  Verb& chosen_;
};

// The groups of verbs, in the order in which the help shows them. AddObjectVerbs calls
// AddDeleteVerb, which stands between its own.
void AddObjectVerbs(const Verbs& verbs);
void AddDeleteVerb(const Verbs& verbs);
void AddPodVerbs(const Verbs& verbs);
void AddAgentVerbs(const Verbs& verbs);
void AddDriverVerbs(const Verbs& verbs);
void AddSnapshotVerbs(const Verbs& verbs);
void AddPoolVerbs(const Verbs& verbs);
void AddShellVerbs(const Verbs& verbs);

// Adds a required place that several verbs have. A pod is named by NAME, NAMESPACE/NAME or a uid. A
// word like "pvc/data", whose first part is a noun of `get`, is refused: it would be a pod in a
// namespace of that name.
CLI::Option* AddPodPlace(CLI::App& verb, std::string& pod);

// Adds an option for how long something may take, in seconds: 0.001 to 31536000 (a year). Whatever
// else is given is refused, also what is no number ("nan").
CLI::Option* AddSeconds(CLI::App& verb, const char* option, double& seconds, const char* help);

// Adds the flag by which a person deletes what an orchestrator has made, and nobody else knows of.
CLI::Option* AddAbandoned(CLI::App& verb, bool& abandoned);

// Prints what may come next after `words`, one candidate a line. Returns kExitOk, whatever the
// agent says. Blocks: for a second at most for each kind of which names are needed.
ExitCode RunComplete(const CliContext& context, const CLI::App& commands,
                     const std::vector<std::string>& words);

}  // namespace volumed
