#include "cli/command_line.h"

#include <string_view>

#include "base/strings.h"
#include "cli/object_kinds.h"

namespace volumed {
namespace {

constexpr const char* kExitCodes = R"(Exit status:
  0  done
  1  the agent refused or failed
  2  the words of the call are off
  3  no such object
  4  not in time: a condition that `wait` waits for, or an answer of the agent
  5  no agent answers at the socket
  6  the role of the caller does not suffice
  7  a manifest was refused; nothing of it was applied)";

std::string KindNames(bool objects_alone) {
  std::vector<std::string_view> names;
  for (const CliKind& kind : kCliKinds) {
    if (kind.is_object || !objects_alone) names.push_back(kind.name);
  }
  return Join(names, ", ");
}

// "" for a word that `get` knows.
std::string CheckNoun(const std::string& word) {
  std::vector<std::string_view> names;
  for (const CliNoun& noun : kGetNouns) {
    if (noun.Means(word)) return "";
    names.push_back(noun.plural);
  }
  return "'" + word + "' is none of " + Join(names, ", ");
}

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

void AddObjectVerbs(CLI::App& app, CommandWords& words, Verb& chosen) {
  CLI::App* apply = app.add_subcommand("apply", "give objects to the agent");
  apply->add_option("-f,--filename", words.files, "manifest files; - is standard input")
      ->required()
      ->type_name("FILE");
  apply->add_flag("--replace", words.replace,
                  "a pod with other volumes takes the place of the pod that has its name, once the "
                  "consumers of that are gone; its emptyDirs on disk go with it");
  apply->callback(
      [&] { chosen = [&] { return RunApply(words.context, words.files, words.replace); }; });

  CLI::App* del = app.add_subcommand("delete", "take an object away");
  CLI::Option* kind = del->add_option("kind", words.kind, KindNames(true))->type_name("KIND");
  del->add_option("name", words.names, "names, or pods' uids")->type_name("NAME");
  del->add_option("-f,--filename", words.files,
                  "what these manifests name, the last first; - is standard input")
      ->type_name("FILE")
      ->excludes(kind);
  del->add_flag("--force", words.force, "also while processes use the pod's mounts");
  del->add_flag("--ignore-not-found", words.ignore_not_found, "what is not there is no failure");
  del->add_flag("--yes", words.yes, "also the data of a volume that has left its source");
  del->callback([&] {
    if (words.files.empty() && words.names.empty()) {
      throw CLI::RequiredError("KIND and NAME, or --filename");
    }
    chosen = [&] {
      const DeleteOptions options{words.force, words.ignore_not_found, words.yes};
      return words.files.empty() ? RunDelete(words.context, words.kind, words.names, options)
                                 : RunDeleteFiles(words.context, words.files, options);
    };
  });

  CLI::App* describe = app.add_subcommand("describe", "show all that is known of one object");
  describe->add_option("kind", words.kind, KindNames(false))->required()->type_name("KIND");
  describe->add_option("name", words.name, "name; a pod's uid; for a volume POD/VOLUME")
      ->required()
      ->type_name("NAME");
  describe->callback(
      [&] { chosen = [&] { return RunDescribe(words.context, words.kind, words.name); }; });

  CLI::App* get = app.add_subcommand("get", "show what there is of a kind");
  get->add_option("what", words.what,
                  "pods, volumes, persistentvolumes (pv), persistentvolumeclaims (pvc), "
                  "storageclasses (sc), secrets, configmaps (cm), nodes or csidrivers")
      ->required()
      ->check(CheckNoun)
      ->type_name("NOUN");
  get->add_option("name", words.name, "one of them; for volumes their pod")->type_name("NAME");
  get->callback([&] { chosen = [&] { return RunGet(words.context, words.what, words.name); }; });
}

void AddPodVerbs(CLI::App& app, CommandWords& words, Verb& chosen) {
  CLI::App* explain = app.add_subcommand("explain", "say why a pod is not ready");
  explain->add_option("pod", words.name, "name or uid")
      ->required()
      ->check(CheckPod)
      ->type_name("POD");
  explain->callback([&] { chosen = [&] { return RunExplain(words.context, words.name); }; });

  CLI::App* wait = app.add_subcommand("wait", "until a pod is ready, gone or there");
  wait->add_option("pod", words.name, "name or uid")->required()->check(CheckPod)->type_name("POD");
  wait->add_option("--for", words.condition, "ready, gone, or create (until there is such a pod)")
      ->check(CLI::IsMember({"ready", "gone", "create"}));
  wait->add_option("--timeout", words.wait_timeout_s, "seconds")->check(CLI::PositiveNumber);
  wait->callback([&] {
    chosen = [&] {
      return RunWait(words.context, words.name, words.condition,
                     std::chrono::milliseconds(static_cast<int64_t>(words.wait_timeout_s * 1000)));
    };
  });

  CLI::App* hold = app.add_subcommand("hold", "keep a pod's mounts while a process lives");
  hold->add_option("pod", words.name, "name or uid")->required()->check(CheckPod)->type_name("POD");
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

  CLI::App* retry = app.add_subcommand("retry", "forget a back-off and try now");
  retry->add_option("pod", words.name, "name or uid")
      ->required()
      ->check(CheckPod)
      ->type_name("POD");
  retry->add_option("volume", words.volume, "one volume; else all, and the pod itself")
      ->type_name("VOLUME");
  retry->callback(
      [&] { chosen = [&] { return RunRetry(words.context, words.name, words.volume); }; });

  CLI::App* events = app.add_subcommand("events", "what happened, as kubelet would tell it");
  events
      ->add_option("object", words.name,
                   "a pod's name or uid, pv/NAME, pvc/NAME, pvc/NAMESPACE/NAME or node/NAME; "
                   "else all")
      ->type_name("OBJECT");
  events->add_flag("-w,--watch", words.watch, "go on with each event that comes");
  events->callback(
      [&] { chosen = [&] { return RunEvents(words.context, words.name, words.watch); }; });

  CLI::App* oci =
      app.add_subcommand("oci", "a container's mounts, as an OCI configuration has them");
  oci->add_option("pod", words.name, "name or uid")->required()->check(CheckPod)->type_name("POD");
  oci->add_option("container", words.container, "its name")->required();
  oci->callback(
      [&] { chosen = [&] { return RunOci(words.context, words.name, words.container); }; });
}

void AddAgentVerbs(CLI::App& app, CommandWords& words, Verb& chosen) {
  CLI::App* top = app.add_subcommand("top", "what runs now, how far it is, and what is stuck");
  top->add_flag("--once", words.once, "show it once and end");
  top->add_option("--interval", words.interval_s, "seconds between two answers")
      ->check(CLI::Range(0.1, 60.0));
  top->callback([&] {
    chosen = [&] {
      return RunTop(words.context, words.once,
                    std::chrono::milliseconds(static_cast<int64_t>(words.interval_s * 1000)));
    };
  });

  CLI::App* sources = app.add_subcommand("sources", "where objects come from");
  sources->callback([&] { chosen = [&] { return RunSources(words.context); }; });

  CLI::App* source = app.add_subcommand("source", "one source");
  source->require_subcommand(1);
  CLI::App* accept = source->add_subcommand(
      "accept", "say that what a source has now is right: what it holds goes");
  CLI::App* forget =
      source->add_subcommand("forget", "drop all of a source that is not configured any more");
  for (CLI::App* verb : {accept, forget}) {
    verb->add_option("name", words.name, "as `sources` shows it")->required()->type_name("SOURCE");
    verb->add_flag("--yes", words.yes, "also if volumes are mounted");
    verb->add_flag("--dry-run", words.dry_run, "only show what would go");
  }
  accept->callback([&] {
    chosen = [&] { return RunSourceAccept(words.context, words.name, words.yes, words.dry_run); };
  });
  forget->callback([&] {
    chosen = [&] { return RunSourceForget(words.context, words.name, words.yes, words.dry_run); };
  });

  CLI::App* records =
      app.add_subcommand("records", "whether the agent's records may be older than the disks");
  records->require_subcommand(0, 1);
  CLI::App* accept_records = records->add_subcommand(
      "accept", "they are right: what was held back (mkfs, recycle, delete) goes on");
  accept_records->add_option("--only", words.volume, "of one volume alone, as `records` shows it")
      ->type_name("VOLUME");
  accept_records->callback(
      [&] { chosen = [&] { return RunRecordsAccept(words.context, words.volume); }; });
  records->callback([&, accept_records] {
    if (!accept_records->parsed()) chosen = [&] { return RunRecords(words.context); };
  });

  CLI::App* accept_volume = app.add_subcommand(
      "accept", "say that the directory which is at a volume's path now is right");
  accept_volume->add_option("kind", words.kind, "pv")
      ->required()
      ->type_name("KIND")
      ->check([](const std::string& kind) {
        return kPersistentVolumeNoun.Means(kind) ? std::string()
                                                 : "'" + kind + "' is no persistent volume (pv)";
      });
  accept_volume->add_option("name", words.name, "of the PersistentVolume")
      ->required()
      ->type_name("NAME");
  accept_volume->callback(
      [&] { chosen = [&] { return RunAcceptVolume(words.context, words.name); }; });

  CLI::App* version = app.add_subcommand("version", "of this program and of the agent");
  version->callback([&] { chosen = [&] { return RunVersion(words.context); }; });

  CLI::App* status =
      app.add_subcommand("status", "the agent itself: readiness, kernel, stuck work");
  status->callback([&] { chosen = [&] { return RunStatus(words.context); }; });
}

void AddShellVerbs(CLI::App& app, CommandWords& words, Verb& chosen) {
  CLI::App* completion = app.add_subcommand("completion", "print a shell's completion script");
  completion->add_option("shell", words.shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  completion->callback([&] { chosen = [&] { return RunCompletion(words.shell); }; });
}

}  // namespace

void AddCommands(CLI::App& app, CommandWords& words, Verb& chosen) {
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
  app.add_option("--request-timeout", words.timeout_s, "seconds that one request may take")
      ->check(CLI::PositiveNumber);
  AddObjectVerbs(app, words, chosen);
  AddPodVerbs(app, words, chosen);
  AddAgentVerbs(app, words, chosen);
  AddShellVerbs(app, words, chosen);
}

}  // namespace volumed
