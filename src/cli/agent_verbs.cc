// The verbs about the agent itself, its sources and its records: top, sources, source, records,
// accept, version, status.
#include <unistd.h>

#include <cstdio>
#include <ios>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "cli/calls.h"
#include "cli/object_kinds.h"
#include "cli/top.h"

namespace volumed {
namespace {

struct TopWords {
  bool once = false;
  double interval_s = 1;
};

// Home, and clear what is below. Source: ECMA-48 (CUP, ED).
constexpr const char* kClearScreen = "\x1b[H\x1b[J";

ExitCode RunTop(const CliContext& context, const TopWords& words) {
  const bool once = words.once;
  v1::WatchOperationsRequest request;
  request.set_once(once);
  request.set_interval_ms(MillisecondsOf(words.interval_s).count());
  // In a pipe each answer follows the one before.
  const bool clear = !once && !IsForPrograms(context.format) && ::isatty(STDOUT_FILENO) == 1;
  Client client(context.socket, context.timeout);
  const auto show = [&](const v1::WatchOperationsResponse& answer) {
    // Past what std::cout escapes.
    if (clear) std::fputs(kClearScreen, stdout);
    PrintTop(answer, context.format, std::cout);
    std::cout << std::flush;
  };
  const grpc::Status status =
      client.Stream<v1::WatchOperationsRequest, v1::WatchOperationsResponse>(
          &Stub::WatchOperations, request, once ? std::optional(context.timeout) : std::nullopt,
          show);
  return status.ok() ? kExitOk : ReportFailure(status, context.socket);
}

ExitCode RunSources(const CliContext& context) {
  v1::GetSourcesResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetSources, v1::GetSourcesRequest(), &response, "");
  if (code == kExitOk) PrintSources(response, context.format, NowUnixMs(), std::cout);
  return code;
}

struct SourceWords {
  std::string name;
  bool yes = false, dry_run = false;
};

// Shows what a command would take from a source, and then gives it.
template <typename Request, typename Response, typename Method>
ExitCode TakeFromSource(const CliContext& context, Method method, const SourceWords& words,
                        const std::string& done) {
  Request request;
  request.set_name(words.name);
  request.set_dry_run(true);
  Response response;
  if (const ExitCode code = CallAndSay(context, method, request, &response, ""); code != kExitOk) {
    return code;
  }
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    PrintGoing(response.goes(), std::cout);
  }
  if (words.dry_run) return kExitOk;
  request.set_dry_run(false);
  request.set_yes(words.yes);
  const std::string said = IsForPrograms(context.format) ? "" : "source " + words.name + " " + done;
  return CallAndSay(context, method, request, &response, said);
}

ExitCode RunSourceAccept(const CliContext& context, const SourceWords& words) {
  return TakeFromSource<v1::AcceptSourceRequest, v1::AcceptSourceResponse>(
      context, &Stub::AcceptSource, words, "accepted");
}

ExitCode RunSourceForget(const CliContext& context, const SourceWords& words) {
  return TakeFromSource<v1::ForgetSourceRequest, v1::ForgetSourceResponse>(
      context, &Stub::ForgetSource, words, "forgotten");
}

ExitCode RunRecords(const CliContext& context) {
  v1::GetRecordsResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetRecords, v1::GetRecordsRequest(), &response, "");
  if (code == kExitOk) PrintRecords(response.records(), context.format, NowUnixMs(), std::cout);
  return code;
}

struct RecordsAcceptWords {
  std::string volume;  // empty: all volumes
};

ExitCode RunRecordsAccept(const CliContext& context, const RecordsAcceptWords& words) {
  v1::AcceptRecordsRequest request;
  request.set_volume(words.volume);
  v1::AcceptRecordsResponse response;
  const ExitCode code = CallAndSay(context, &Stub::AcceptRecords, request, &response, "");
  if (code == kExitOk)
    PrintAccepted(response, words.volume, context.format, NowUnixMs(), std::cout);
  return code;
}

struct AcceptVolumeWords {
  std::string kind;
  std::string name;  // of the PersistentVolume
};

ExitCode RunAcceptVolume(const CliContext& context, const AcceptVolumeWords& words) {
  const std::string& name = words.name;
  v1::AcceptVolumeRequest request;
  request.set_name(name);
  v1::AcceptVolumeResponse response;
  const ExitCode code = CallAndSay(context, &Stub::AcceptVolume, request, &response, "");
  if (code != kExitOk) return code;
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else if (!response.was_other()) {
    std::cout << "pv " << name << ": " << response.path() << " is what is on record ("
              << response.now() << "); there is nothing to accept\n";
  } else {
    std::cout << "pv " << name << " has its data in " << response.path() << " (" << response.now()
              << ") from now on, and not in " << response.before() << "\n";
  }
  return kExitOk;
}

// Prints the version of the program and that of the agent.
ExitCode RunVersion(const CliContext& context) {
  std::cout << "volumectl " << VOLUMED_VERSION << "\n";
  v1::GetStatusResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetStatus, v1::GetStatusRequest(), &response, "");
  if (code == kExitOk) std::cout << "volumed   " << response.version() << "\n";
  return code;
}

// A map of the answer by its keys: in the message it has no order.
template <typename Map>
void PrintByKey(const char* name, const Map& map, std::ostream& out) {
  if (map.empty()) return;
  out << name << ":\n";
  const std::map<std::string, typename Map::mapped_type> sorted(map.begin(), map.end());
  for (const auto& [key, value] : sorted) {
    out << "  " << key << ": " << std::boolalpha << value << "\n";
  }
}

// As YAML: what does not work is above all that is as it should be.
void PrintStatus(const v1::GetStatusResponse& status, std::ostream& out) {
  v1::GetStatusResponse first = status;
  first.clear_kernel_features();
  first.clear_csi_settings();
  first.clear_deadlines();
  first.clear_mount_table();
  first.clear_records();
  PrintMessage(first, OutputFormat::kYaml, out);
  v1::GetStatusResponse figures;
  if (status.has_mount_table()) *figures.mutable_mount_table() = status.mount_table();
  if (status.has_records()) *figures.mutable_records() = status.records();
  if (figures.ByteSizeLong() != 0) PrintMessage(figures, OutputFormat::kYaml, out);
  PrintByKey("kernel_features", status.kernel_features(), out);
  PrintByKey("csi_settings", status.csi_settings(), out);
  PrintByKey("deadlines", status.deadlines(), out);
}

ExitCode RunStatus(const CliContext& context) {
  v1::GetStatusResponse response;
  const ExitCode code =
      CallAndSay(context, &Stub::GetStatus, v1::GetStatusRequest(), &response, "");
  if (code != kExitOk) return code;
  if (context.format == OutputFormat::kJson) {
    PrintMessage(response, OutputFormat::kJson, std::cout);
  } else {
    PrintStatus(response, std::cout);
  }
  return kExitOk;
}

void DeclareSource(CLI::App& verb, SourceWords& words) {
  verb.add_option("name", words.name, "as `sources` shows it")->required()->type_name("SOURCE");
  verb.add_flag("--yes", words.yes, "also if volumes are mounted");
  verb.add_flag("--dry-run", words.dry_run, "only show what would go");
}

void DeclareAcceptVolume(CLI::App& verb, AcceptVolumeWords& words) {
  verb.add_option("kind", words.kind, "pv")
      ->required()
      ->type_name("KIND")
      ->check([](const std::string& kind) {
        return kPersistentVolumeNoun.Means(kind) ? std::string()
                                                 : "'" + kind + "' is no persistent volume (pv)";
      });
  verb.add_option("name", words.name, "of the PersistentVolume")->required()->type_name("NAME");
}

}  // namespace

void AddAgentVerbs(const Verbs& verbs) {
  verbs.Add<TopWords>(
      "top", "what runs now, how far it is, and what is stuck",
      [](CLI::App& verb, TopWords& words) {
        verb.add_flag("--once", words.once, "show it once and end");
        verb.add_option("--interval", words.interval_s, "seconds between two answers")
            ->check(CLI::Range(0.1, 60.0));
      },
      RunTop);
  verbs.Add("sources", "where objects come from", RunSources);
  const Verbs source = verbs.Group("source", "one source");
  source.Add<SourceWords>("accept", "say that what a source has now is right: what it holds goes",
                          DeclareSource, RunSourceAccept);
  source.Add<SourceWords>("forget", "drop all of a source that is not configured any more",
                          DeclareSource, RunSourceForget);
  const Verbs records =
      verbs.Group("records", "whether the agent's records may be older than the disks", RunRecords);
  records.Add<RecordsAcceptWords>(
      "accept", "they are right: what was held back (mkfs, recycle, delete, provision) goes on",
      [](CLI::App& verb, RecordsAcceptWords& words) {
        verb.add_option("--only", words.volume, "of one volume alone, as `records` shows it")
            ->type_name("VOLUME");
      },
      RunRecordsAccept);
  verbs.Add<AcceptVolumeWords>("accept",
                               "say that the directory which is at a volume's path now is right",
                               DeclareAcceptVolume, RunAcceptVolume);
  verbs.Add("version", "of this program and of the agent", RunVersion);
  verbs.Add("status", "the agent itself: readiness, kernel, stuck work", RunStatus);
}

}  // namespace volumed
