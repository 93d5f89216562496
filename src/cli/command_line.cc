#include "cli/command_line.h"

#include <cstdlib>
#include <iostream>

#include "cli/calls.h"
#include "cli/object_kinds.h"

namespace volumed {
namespace {

constexpr const char* kDefaultSocket = "/run/volumed/volumed.sock";

constexpr const char* kExitCodes = R"(Exit status:
  0  done
  1  the agent refused or failed
  2  the words of the call are off
  3  no such object
  4  not in time: a condition that `wait` waits for, or an answer of the agent
  5  no agent answers at the socket
  6  the role of the caller does not suffice
  7  a manifest was refused; nothing of it was applied)";

// "" for what may be a pod. "pvc/data" would be pod "data" of namespace "pvc", which is most often
// not there, and then gone.
std::string CheckPod(const std::string& word) {
  const std::string kind = word.substr(0, word.find('/'));
  if (kind == word) return "";
  for (const CliNoun& noun : kGetNouns) {
    if (!noun.Means(kind)) continue;
    return "'" + word + "' names a kind: it takes a pod, as NAME, NAMESPACE/NAME or a uid";
  }
  return "";
}

// A year: far beyond it the milliseconds, and the moment at which they end, would overflow.
constexpr double kFewestSeconds = 0.001, kMostSeconds = 365 * 24 * 3600;

std::string CheckSeconds(const std::string& word) {
  char* end = nullptr;
  const double seconds = std::strtod(word.c_str(), &end);
  const bool is_number = !word.empty() && *end == '\0';
  if (is_number && seconds >= kFewestSeconds && seconds <= kMostSeconds) return "";
  return "it takes 0.001 to 31536000 seconds (a year), not '" + word + "'";
}

}  // namespace

CLI::Option* AddSeconds(CLI::App& verb, const char* option, double& seconds, const char* help) {
  return verb.add_option(option, seconds, help)->check(CheckSeconds);
}

CLI::Option* AddAbandoned(CLI::App& verb, bool& abandoned) {
  return verb.add_flag("--abandoned", abandoned,
                       "also what an orchestrator (a Kubernetes cluster) has made through this "
                       "driver: you have seen there that no object of it has this id any more");
}

CLI::Option* AddPodPlace(CLI::App& verb, std::string& pod) {
  return verb.add_option("pod", pod, "name or uid")->required()->check(CheckPod)->type_name("POD");
}

void AddCommands(CLI::App& app, CommonWords& words, Verb& chosen) {
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kExitCodes);
  app.set_version_flag("--version", VOLUMED_VERSION, "of this program");
  app.add_option("-s,--socket", words.context.socket, "the agent's socket")
      ->envname("VOLUMED_SOCKET")
      ->type_name("FILE");
  app.add_option("-n,--namespace", words.context.name_space, "namespace");
  app.add_option("-o,--output", words.output, "table, wide, json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}));
  AddSeconds(app, "--request-timeout", words.timeout_s, "seconds that one request may take");
  const Verbs verbs(app, words.context, chosen);
  AddObjectVerbs(verbs);
  AddPodVerbs(verbs);
  AddAgentVerbs(verbs);
  AddDriverVerbs(verbs);
  AddSnapshotVerbs(verbs);
  AddPoolVerbs(verbs);
  AddShellVerbs(verbs);
}

int RunCommandLine(int argc, const char* const* argv) {
  CommonWords words;
  words.context.socket = kDefaultSocket;
  Verb chosen;
  CLI::App app("volumectl talks to the volume agent of this node");
  AddCommands(app, words, chosen);
  // Asked by the completion scripts; its words are those of another call and not to be parsed.
  if (argc > 1 && std::string(argv[1]) == "__complete") {
    if (const char* socket = std::getenv("VOLUMED_SOCKET")) words.context.socket = socket;
    return RunComplete(words.context, app, {argv + 2, argv + argc});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const Result<OutputFormat> format = ParseOutputFormat(words.output);
  if (!format.ok()) {
    std::cerr << "volumectl: " << format.error().message() << "\n";
    return kExitUsage;
  }
  words.context.format = *format;
  words.context.timeout = MillisecondsOf(words.timeout_s);
  return chosen();
}

}  // namespace volumed
