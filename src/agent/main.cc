// volumed: the volume agent of a node.
#include <CLI/CLI.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/config.h"
#include "agent/config_checks.h"
#include "agent/csi_serve_settings.h"
#include "agent/heap_trimmer.h"
#include "os/process_guard.h"

namespace volumed {
namespace {

constexpr char kDefaultConfig[] = "/etc/volumed/config.yaml";
constexpr int kCommentColumn = 48;  // in the output of check-config

struct Words {
  std::string config = kDefaultConfig;
  FlagValues flags;
};

// Every key of the configuration is also a flag.
void AddConfigFlags(CLI::App& app, Words& words, CLI::Option** config_option) {
  *config_option =
      app.add_option("--config", words.config, "configuration file")->capture_default_str();
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string name(key.name);
    app.add_option_function<std::vector<std::string>>(
           "--" + name,
           [&words, name](const std::vector<std::string>& values) { words.flags[name] = values; },
           std::string(key.help) + " (" + std::string(ReloadWord(key)) + ")")
        ->type_name(std::string(key.type))
        ->expected(1, -1)
        ->delimiter(',');
  }
}

int CheckConfig(const Result<Config>& config) {
  const std::vector<ConfigKey> keys = ConfigKeys();
  const auto values = PrintConfig(*config);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string line = values[i].first + ": " + values[i].second;
    std::cout << std::left << std::setw(kCommentColumn) << line << " # " << ReloadWord(keys[i])
              << "\n";
  }
  return EXIT_SUCCESS;
}

// For when an agent has ended without having done so itself: a kubelet takes a driver to be there
// as long as its socket is. That of an agent that lives stays.
int RemoveSockets(const Result<Config>& config) {
  if (config.ok() && config->csi_registry.empty()) return EXIT_SUCCESS;
  const Status removed = config.ok()
                             ? RegistrationServer::RemoveDead(RegistrationSettingsOf(*config))
                             : Status(config.error());
  if (removed.ok()) return EXIT_SUCCESS;
  std::cerr << "volumed: " << removed.error().message() << "\n";
  return EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  // Modes are given exactly where files are made; an inherited umask must not change them.
  ::umask(0);
  if (const Status guarded = GuardProcess(); !guarded.ok()) {
    std::cerr << "volumed: " << guarded.error().message() << "\n";
    return EXIT_FAILURE;
  }
  Words words;
  CLI::App app("volumed makes the volumes of a node's pods present, and takes them away");
  app.require_subcommand(1);
  app.set_version_flag("--version", VOLUMED_VERSION);
  CLI::Option* config_option = nullptr;
  CLI::App* run = app.add_subcommand("run", "run the agent");
  AddConfigFlags(*run, words, &config_option);
  CLI::App* check = app.add_subcommand("check-config", "check the configuration and print it");
  CLI::Option* check_option = nullptr;
  AddConfigFlags(*check, words, &check_option);
  CLI::Option* check_file =
      check->add_option("file", words.config, "configuration file, as --config")
          ->type_name("FILE")
          ->excludes(check_option);
  CLI::App* remove = app.add_subcommand(
      "remove-sockets", "remove the CSI driver's registration that an ended agent left");
  CLI::Option* remove_option = nullptr;
  AddConfigFlags(*remove, words, &remove_option);
  CLI11_PARSE(app, argc, argv);

  const bool named = config_option->count() > 0 || check_option->count() > 0 ||
                     check_file->count() > 0 || remove_option->count() > 0;
  const Status answers = CheckConfigFile(words.config);
  const Result<Config> config =
      answers.ok() ? LoadConfig(words.config, named, words.flags) : Result<Config>(answers.error());
  if (remove->parsed()) return RemoveSockets(config);
  const SilentPlaces silent =
      check->parsed() ? SilentPlaces::kAreProblems : SilentPlaces::kMayBeLacked;
  const Status usable = config.ok() ? CheckPlaces(*config, silent) : config.error();
  if (!usable.ok()) {
    std::cerr << "volumed: " << usable.error().message() << "\n";
    return EXIT_FAILURE;
  }
  if (check->parsed()) return CheckConfig(config);
  // If the file exists now, it must exist when it is read again; otherwise all its settings would
  // be lost.
  const bool found = ::access(words.config.c_str(), F_OK) == 0;
  return RunAgent(*config, {words.config, named || found, words.flags});
}

}  // namespace
}  // namespace volumed

// An exception that nobody expects ends the program where it is thrown, and leaves its core.
int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  volumed::LimitHeap();
  return volumed::Main(argc, argv);
}
