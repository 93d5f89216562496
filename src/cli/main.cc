// volumectl: the command line of the agent's control API.
#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace volumed {
namespace {

struct Words {
  CliContext context;
  std::string output = "table";
  double timeout_s = 10;
  double wait_timeout_s = 60;
  std::vector<std::string> files;
  std::string kind, name, what, container, condition = "ready", cgroup;
  int64_t pid = 0;
  bool force = false, release = false;
};

using Verb = std::function<ExitCode()>;

void AddObjectVerbs(CLI::App& app, Words& words, Verb& chosen) {
  CLI::App* apply = app.add_subcommand("apply", "give objects to the agent");
  apply->add_option("-f,--filename", words.files, "manifest files; - is standard input")
      ->required();
  apply->callback([&] { chosen = [&] { return RunApply(words.context, words.files); }; });

  CLI::App* del = app.add_subcommand("delete", "take an object away");
  del->add_option("kind", words.kind, "pod, secret, configmap")->required();
  del->add_option("name", words.name, "name, or a pod's uid")->required();
  del->add_flag("--force", words.force, "also while processes use the pod's mounts");
  del->callback([&] {
    chosen = [&] { return RunDelete(words.context, words.kind, words.name, words.force); };
  });

  CLI::App* get = app.add_subcommand("get", "show pods or volumes");
  get->add_option("what", words.what, "pods or volumes")
      ->required()
      ->check(CLI::IsMember({"pods", "volumes"}));
  get->add_option("name", words.name, "a pod's name or uid");
  get->callback([&] { chosen = [&] { return RunGet(words.context, words.what, words.name); }; });
}

void AddPodVerbs(CLI::App& app, Words& words, Verb& chosen) {
  CLI::App* explain = app.add_subcommand("explain", "say why a pod is not ready");
  explain->add_option("pod", words.name, "name or uid")->required();
  explain->callback([&] { chosen = [&] { return RunExplain(words.context, words.name); }; });

  CLI::App* wait = app.add_subcommand("wait", "until a pod is ready or gone");
  wait->add_option("pod", words.name, "name or uid")->required();
  wait->add_option("--for", words.condition, "ready or gone")
      ->check(CLI::IsMember({"ready", "gone"}));
  wait->add_option("--timeout", words.wait_timeout_s, "seconds")->check(CLI::PositiveNumber);
  wait->callback([&] {
    chosen = [&] {
      return RunWait(words.context, words.name, words.condition,
                     std::chrono::milliseconds(static_cast<int64_t>(words.wait_timeout_s * 1000)));
    };
  });

  CLI::App* hold = app.add_subcommand("hold", "keep a pod's mounts while a process lives");
  hold->add_option("pod", words.name, "name or uid")->required();
  CLI::Option* pid = hold->add_option("--pid", words.pid, "a process")->check(CLI::PositiveNumber);
  hold->add_option("--cgroup", words.cgroup, "a cgroup, until it is empty")->excludes(pid);
  hold->add_flag("--release", words.release, "end the hold");
  hold->callback([&] {
    if (words.pid == 0 && words.cgroup.empty()) {
      throw CLI::RequiredError("one of --pid and --cgroup");
    }
    chosen = [&] {
      return RunHold(words.context, words.name, words.pid, words.cgroup, words.release);
    };
  });

  CLI::App* retry = app.add_subcommand("retry", "forget the back-off of a pod's volumes");
  retry->add_option("pod", words.name, "name or uid")->required();
  retry->callback([&] { chosen = [&] { return RunRetry(words.context, words.name); }; });

  CLI::App* oci =
      app.add_subcommand("oci", "a container's mounts, as an OCI configuration has them");
  oci->add_option("pod", words.name, "name or uid")->required();
  oci->add_option("container", words.container, "its name")->required();
  oci->callback(
      [&] { chosen = [&] { return RunOci(words.context, words.name, words.container); }; });
}

void AddAgentVerbs(CLI::App& app, Words& words, Verb& chosen) {
  CLI::App* sources = app.add_subcommand("sources", "where objects come from");
  sources->callback([&] { chosen = [&] { return RunSources(words.context); }; });

  CLI::App* source = app.add_subcommand("source", "one source");
  source->require_subcommand(1);
  CLI::App* forget = source->add_subcommand("forget", "drop what a source delivered last");
  forget->add_option("name", words.name, "as `sources` shows it")->required();
  forget->callback([&] { chosen = [&] { return RunSourceForget(words.context, words.name); }; });

  CLI::App* status =
      app.add_subcommand("status", "the agent itself: readiness, kernel, stuck work");
  status->callback([&] { chosen = [&] { return RunStatus(words.context); }; });
}

int Main(int argc, char** argv) {
  Words words;
  words.context.socket = "/run/volumed/volumed.sock";
  Verb chosen;
  CLI::App app("volumectl talks to the volume agent of this node");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("-s,--socket", words.context.socket, "the agent's socket")
      ->envname("VOLUMED_SOCKET");
  app.add_option("-n,--namespace", words.context.name_space, "namespace");
  app.add_option("-o,--output", words.output, "table, wide, json or yaml");
  app.add_option("--request-timeout", words.timeout_s, "seconds that one request may take")
      ->check(CLI::PositiveNumber);
  AddObjectVerbs(app, words, chosen);
  AddPodVerbs(app, words, chosen);
  AddAgentVerbs(app, words, chosen);
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
  words.context.timeout = std::chrono::milliseconds(static_cast<int64_t>(words.timeout_s * 1000));
  return chosen();
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) { return volumed::Main(argc, argv); }
