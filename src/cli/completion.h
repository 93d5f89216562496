// Completion: finds what may come next on a command line, from the tree of commands itself. The
// shells' scripts only ask (`volumectl __complete WORDS...`) and show the answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace volumed {

// Options that were given on the line so far and that change the answer of a lookup; each is "" if
// it was not given.
struct LineOptions {
  std::string socket;
  std::string name_space;
};

// Returns the existing names of a kind: "pod", "volume" (POD/VOLUME), "source", or any word for a
// kind that the agent knows. It returns none if the agent does not answer: a shell must neither
// hang nor show an error.
using NameLookup = std::function<std::vector<std::string>(const LineOptions&, const std::string&)>;

// This text in place of candidates tells the shell to complete file names.
inline constexpr const char* kCompleteFiles = ":files";

// Returns what the last word may become: candidates that begin with it, or kCompleteFiles. `words`
// follow the program's name; the last word, which may be empty, is to be completed. The type name
// of a value in the tree says what the value may be: KIND, NOUN (of `get`), POD, VOLUME, NAME (of
// the kind or noun before it), OBJECT (a pod, or KIND/NAME), SOURCE, FILE, or a set of choices.
// Blocks: as `lookup` does, which is called only if names are needed.
std::vector<std::string> Complete(const CLI::App& commands, const std::vector<std::string>& words,
                                  const NameLookup& lookup);

// The script for "bash" or "zsh"; nullopt for another shell.
std::optional<std::string> CompletionScript(const std::string& shell);

}  // namespace volumed
