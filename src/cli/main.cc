// volumectl: the command line of the agent's control API.
#include <iostream>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/plain_output.h"

namespace volumed {
namespace {

constexpr const char* kDefaultSocket = "/run/volumed/volumed.sock";

int Main(int argc, char** argv) {
  const PlainOutput plain_out(std::cout);
  const PlainOutput plain_err(std::cerr);
  CommandWords words;
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
  words.context.timeout = std::chrono::milliseconds(static_cast<int64_t>(words.timeout_s * 1000));
  return chosen();
}

}  // namespace
}  // namespace volumed

int main(int argc, char** argv) { return volumed::Main(argc, argv); }
