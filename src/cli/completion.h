// Completion: what may stand next on a command line, from the tree of commands itself; the shells'
// scripts only ask (`volumectl __complete WORDS...`) and show.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace volumed {

// Options of the line so far that change what a lookup answers.
struct LineOptions {
  std::string socket;
  std::string name_space;
};

// The names that exist of a kind ("pod", "volume", "source", or any that the agent knows); none
// when the agent does not answer: a shell must neither hang nor show an error.
using NameLookup = std::function<std::vector<std::string>(const LineOptions&, const std::string&)>;

// Printed in place of candidates: the shell completes files.
inline constexpr const char* kCompleteFiles = ":files";

// `words` follow the program's name; the last one, perhaps empty, is to be completed. What a value
// may be follows from its type name in the tree: KIND, NOUN (of `get`), POD, VOLUME, NAME (of the
// kind or noun before it), OBJECT (a pod, or KIND/NAME), SOURCE, FILE, or a set of choices.
std::vector<std::string> Complete(const CLI::App& commands, const std::vector<std::string>& words,
                                  const NameLookup& lookup);

// The script for "bash" or "zsh"; nothing for another shell.
std::optional<std::string> CompletionScript(const std::string& shell);

}  // namespace volumed
