#include "cli/completion.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "base/strings.h"
#include "cli/object_kinds.h"

namespace volumed {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kBash =
    R"(# bash completion for volumectl; `volumectl completion bash` prints it.
_volumectl() {
  local -a lines
  mapfile -t lines < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  if [[ ${lines[0]-} == ':files' ]]; then
    compopt -o default 2>/dev/null
    return
  fi
  COMPREPLY=("${lines[@]}")
}
complete -F _volumectl volumectl
)";

constexpr const char* kZsh = R"(#compdef volumectl
# zsh completion for volumectl; `volumectl completion zsh` prints it.
_volumectl() {
  local -a lines
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "${lines[1]}" == ':files' ]]; then
    _files
  elif [[ -n "${lines[1]}" ]]; then
    compadd -- "${lines[@]}"
  fi
}
if [[ "${funcstack[1]}" == _volumectl ]]; then
  _volumectl "$@"
else
  compdef _volumectl volumectl
fi
)";

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool IsPositional(const CLI::Option* option) {
  return option->get_positional() && option->get_lnames().empty() && option->get_snames().empty();
}

// "TEXT:{a,b}" has the choices a and b.
Words Choices(const std::string& type_name) {
  const size_t open = type_name.find('{');
  const size_t close = type_name.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return SplitNonEmpty(type_name.substr(open + 1, close - open - 1), ',');
}

// Walks the line as the parser would, and then says what may come.
class Line {
 public:
  Line(const CLI::App& commands, const NameLookup& lookup) : lookup_(lookup) {
    path_.push_back(&commands);
  }

  void Take(const std::string& word) {
    if (word == "=") return;  // bash makes three words of --option=value
    if (pending_ != nullptr) return TakeValue(*std::exchange(pending_, nullptr), word);
    if (word.size() > 1 && word[0] == '-') return TakeOption(word);
    if (const CLI::App* command = FindCommand(word)) {
      path_.push_back(command);
    } else {
      positionals_.push_back(word);
    }
  }

  Words Candidates(const std::string& word) const {
    if (pending_ != nullptr) return ValuesOf(pending_->get_type_name(), word);
    if (!word.empty() && word[0] == '-') return Flags();
    Words all = Commands();
    const std::vector<const CLI::Option*> places = path_.back()->get_options(&IsPositional);
    if (positionals_.size() < places.size()) {
      for (std::string& value : ValuesOf(places[positionals_.size()]->get_type_name(), word)) {
        all.push_back(std::move(value));
      }
    }
    return all;
  }

 private:
  void TakeOption(const std::string& word) {
    const size_t equals = word.find('=');
    const CLI::Option* option = FindOption(word.substr(0, equals));
    if (option == nullptr || !TakesValue(*option)) return;
    if (equals == std::string::npos) {
      pending_ = option;
    } else {
      TakeValue(*option, word.substr(equals + 1));
    }
  }
  void TakeValue(const CLI::Option& option, const std::string& value) {
    if (option.check_lname("socket")) options_.socket = value;
    if (option.check_lname("namespace")) options_.name_space = value;
  }
  // Options of the commands above count too.
  const CLI::Option* FindOption(const std::string& name) const {
    for (const CLI::App* app : path_) {
      if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
    }
    return nullptr;
  }
  const CLI::App* FindCommand(const std::string& name) const {
    if (!positionals_.empty()) return nullptr;
    for (const CLI::App* app :
         path_.back()->get_subcommands([](const CLI::App*) { return true; })) {
      if (app->get_name() == name) return app;
    }
    return nullptr;
  }
  Words Commands() const {
    Words names;
    if (!positionals_.empty()) return names;
    for (const CLI::App* app :
         path_.back()->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(app->get_name());
    }
    return names;
  }
  Words Flags() const {
    Words flags;
    for (const CLI::App* app : path_) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
      }
    }
    std::sort(flags.begin(), flags.end());
    flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
    return flags;
  }
  Words ValuesOf(const std::string& type, const std::string& word) const {
    if (type == "FILE") return {kCompleteFiles};
    if (type == "KIND") return Kinds();
    if (type == "NOUN") return Nouns();
    if (type == "POD" || type == "SOURCE")
      return lookup_(options_, type == "POD" ? "pod" : "source");
    if (type == "DRIVER") return lookup_(options_, "driver");
    if (type == "POOL") return lookup_(options_, "pool");
    if (type == "POOLVOLUME") return lookup_(options_, "pool-volume");
    if (type == "SNAPSHOT") return lookup_(options_, "snapshot");
    if (type == "PV") return lookup_(options_, "persistentvolume");
    if (type == "OBJECT") return Objects(word);
    if (type == "NAME" && !positionals_.empty()) return lookup_(options_, KindOfNames());
    if (type == "VOLUME" && !positionals_.empty()) return VolumesOf(positionals_[0]);
    return Choices(type);
  }
  Words Kinds() const {
    Words kinds;
    for (const CliKind& kind : kCliKinds) {
      if (kind.can_be_deleted || path_.back()->get_name() != "delete") {
        kinds.emplace_back(kind.name);
      }
    }
    return kinds;
  }
  static Words Nouns() {
    Words nouns;
    for (const CliNoun& noun : kGetNouns) nouns.emplace_back(noun.plural);
    for (const CliNoun& noun : kGetNouns) nouns.emplace_back(noun.short_name);
    return nouns;
  }
  // Of the names that follow the first place, which is a kind, or a noun of `get`.
  std::string KindOfNames() const {
    if (path_.back()->get_name() != "get") return positionals_[0];
    for (const CliNoun& noun : kGetNouns) {
      if (noun.Means(positionals_[0])) return std::string(noun.names_of);
    }
    return positionals_[0];
  }
  // Pods, and KIND/NAME of the others; only those kinds are looked up that the word may begin.
  Words Objects(const std::string& word) const {
    Words all;
    if (word.find('/') == std::string::npos) all = lookup_(options_, "pod");
    for (const std::string_view kind : kEventKinds) {
      const std::string prefix = std::string(kind) + "/";
      if (!prefix.starts_with(word) && !word.starts_with(prefix)) continue;
      for (const std::string& name : lookup_(options_, std::string(kind))) {
        all.push_back(prefix + name);
      }
    }
    return all;
  }
  Words VolumesOf(const std::string& pod) const {
    Words names;
    for (const std::string& volume : lookup_(options_, "volume")) {
      if (const auto name = StripPrefix(volume, pod + "/")) names.emplace_back(*name);
    }
    return names;
  }

  const NameLookup& lookup_;
  std::vector<const CLI::App*> path_;     // the program, its verb, the verb's verb
  const CLI::Option* pending_ = nullptr;  // waits for its value
  Words positionals_;
  LineOptions options_;
};

}  // namespace

Words Complete(const CLI::App& commands, const Words& words, const NameLookup& lookup) {
  Line line(commands, lookup);
  for (size_t i = 0; i + 1 < words.size(); ++i) line.Take(words[i]);
  const std::string last = words.empty() || words.back() == "=" ? "" : words.back();
  Words matching;
  for (std::string& candidate : line.Candidates(last)) {
    if (candidate == kCompleteFiles || candidate.starts_with(last)) {
      matching.push_back(std::move(candidate));
    }
  }
  return matching;
}

std::optional<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return std::nullopt;
}

}  // namespace volumed
