// Completion as the shells themselves do it, with the scripts that volumectl prints.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "integration/agent/example_pod.h"
#include "places.h"

namespace volumed::completion_test {
namespace {

constexpr int kUsage = 2;

constexpr char kStorage[] =
    "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\n"
    "provisioner: kubernetes.io/no-provisioner\n"
    "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n"
    "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  hostPath: {path: /srv/disk}\n"
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n"
    "  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";

// In a terminal of its own: the script of volumectl is loaded, the line is typed, the tab key is
// pressed, and what stands on the line then is printed. $1: volumectl's directory; $2: how the
// script is loaded; $3: the line.
constexpr char kZshTyping[] = R"(
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell "PS1= PATH=$1:\$PATH; autoload -Uz compinit; $2"
zpty -w shell 'show() { print -r -- "LI""NE<$BUFFER>" }; zle -N show; bindkey "^X" show'
zpty -w shell 'print REA""DY'
zpty -r -m shell out '*READY*' || exit 3
zpty -w -n shell "$3"$'\t\x18'
zpty -r -m shell out '*LINE<*>*' || exit 4
out=${out##*LINE<}
print -r -- "${out%%>*}"
zpty -d shell
)";

class CompletionTest : public ExamplePodTest {
 protected:
  void StartWithPod() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready"));
  }
  // What bash offers for this line, whose last word is being completed.
  std::vector<std::string> BashOffers(const std::vector<std::string>& words) {
    std::string script =
        "source <(" + VolumectlPath() + " completion bash); COMP_WORDS=(" + VolumectlPath();
    for (const std::string& word : words) script += " '" + word + "'";
    script += "); COMP_CWORD=" + std::to_string(words.size()) +
              "; _volumectl; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const CommandResult result = RunCommand({"bash", "-c", script});
    EXPECT_EQ(result.exit_status, 0) << result.output;
    std::vector<std::string> offered;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) offered.push_back(line);
    }
    return offered;
  }
  // The line after the tab key; `load` is how zsh gets the script.
  static std::string ZshCompletes(const std::string& load, const std::string& line) {
    const std::string program = VolumectlPath();
    const CommandResult result =
        RunCommand({"env", "TERM=dumb", "timeout", "60", "zsh", "-f", "-c", kZshTyping, "zsh",
                    program.substr(0, program.rfind('/')), load, line});
    EXPECT_EQ(result.exit_status, 0) << line << ": " << result.output;
    return result.output.substr(0, result.output.find('\n'));
  }
};

TEST_F(CompletionTest, BashCompletesVerbsFlagsKindsAndNames) {
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  using Words = std::vector<std::string>;
  const auto has = [](const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const Words verbs = BashOffers({"de"});
  EXPECT_EQ(verbs, (Words{"delete", "describe"}));
  EXPECT_TRUE(has(BashOffers({"wait", "--"}), "--for"));
  EXPECT_TRUE(has(BashOffers({"wait", "--"}), "--socket"));
  EXPECT_EQ(BashOffers({"wait", "x", "--for", ""}), (Words{"ready", "gone", "create"}));
  EXPECT_EQ(BashOffers({"describe", "se"}), Words{"secret"});
  EXPECT_EQ(BashOffers({"--socket", socket_path(), "explain", "w"}), Words{"web"});
  EXPECT_EQ(BashOffers({"describe", "secret", "--socket", socket_path(), ""}), Words{"web-secret"});
  EXPECT_TRUE(
      has(BashOffers({"--socket", socket_path(), "describe", "volume", "web/"}), "web/cache"));
  EXPECT_EQ(BashOffers({"--socket", socket_path(), "retry", "web", "ca"}), Words{"cache"});
  ASSERT_NO_FATAL_FAILURE(ApplyOk(kStorage));
  EXPECT_EQ(BashOffers({"--socket", socket_path(), "get", "pv", ""}), Words{"disk"});
  EXPECT_EQ(BashOffers({"--socket", socket_path(), "describe", "storageclass", ""}), Words{"fast"});
  EXPECT_EQ(BashOffers({"--socket", socket_path(), "events", "pvc/d"}), Words{"pvc/data"});
  // Nobody answers: no names, no error, no waiting.
  EXPECT_TRUE(BashOffers({"--socket", scratch() + "/none", "explain", ""}).empty());
  EXPECT_EQ(Ctl({"completion", "fish"}).exit_status, kUsage);
}

TEST_F(CompletionTest, ZshCompletesALineThatIsTyped) {
  if (RunCommand({"sh", "-c", "command -v zsh"}).exit_status != 0) {
    GTEST_SKIP() << "skipped: needs zsh";
  }
  ASSERT_NO_FATAL_FAILURE(StartWithPod());
  // As a person sources it, and as a package installs it.
  ASSERT_EQ(
      RunCommand({"sh", "-c", VolumectlPath() + " completion zsh > " + scratch() + "/_volumectl"})
          .exit_status,
      0);
  const std::string socket = "volumectl --socket " + socket_path() + " ";
  for (const std::string& load : {std::string("compinit -u -D; source <(volumectl completion zsh)"),
                                  "fpath=(" + scratch() + " $fpath); compinit -u -D"}) {
    EXPECT_EQ(ZshCompletes(load, "volumectl desc"), "volumectl describe ");
    EXPECT_EQ(ZshCompletes(load, "volumectl wait x --for r"), "volumectl wait x --for ready ");
    EXPECT_EQ(ZshCompletes(load, "volumectl apply -f /etc/hostna"),
              "volumectl apply -f /etc/hostname ");
    EXPECT_EQ(ZshCompletes(load, socket + "explain w"), socket + "explain web ");
    EXPECT_EQ(ZshCompletes(load, socket + "explain nothing"), socket + "explain nothing");
  }
}

}  // namespace
}  // namespace volumed::completion_test
