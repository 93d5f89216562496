#include "cli/output.h"

#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/byte_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails for unknown Any types alone, which the API does not have.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) json = "{}";
  return json;
}

// JSON is YAML in flow style; this turns every map and list into block style.
void UseBlockStyle(YAML::Node node) {
  if (node.IsMap()) {
    node.SetStyle(YAML::EmitterStyle::Block);
    for (auto pair : node) UseBlockStyle(pair.second);
  } else if (node.IsSequence()) {
    node.SetStyle(YAML::EmitterStyle::Block);
    for (auto element : node) UseBlockStyle(element);
  }
}

std::string ReadyCount(const v1::Pod& pod) {
  if (pod.has_volume_count()) {
    return std::to_string(pod.set_up_count()) + "/" + std::to_string(pod.volume_count());
  }
  // A block volume has no mount: it is mapped.
  const auto ready =
      std::count_if(pod.volumes().begin(), pod.volumes().end(), [](const v1::Volume& volume) {
        return volume.state() == "SetUp" || volume.state() == "Mapped";
      });
  return std::to_string(ready) + "/" + std::to_string(pod.volumes_size());
}

// Of a pod that is refused only the time of that is known.
int64_t CreationOf(const v1::Pod& pod) {
  return pod.created_unix_ms() != 0 ? pod.created_unix_ms() : pod.since_unix_ms();
}

// A warning only if there is nothing worse: it keeps nothing from being done.
std::string FirstProblem(const v1::Pod& pod) {
  std::string warning = "-";
  for (const v1::Problem& problem : pod.problems()) {
    if (!problem.is_warning()) return problem.message();
    if (warning == "-") warning = "warning: " + problem.message();
  }
  for (const v1::Volume& volume : pod.volumes()) {
    if (volume.has_problem()) return volume.name() + ": " + volume.problem().message();
  }
  return warning;
}

// What a driver says may be long, and is the last column of a table; `explain` has all of it.
std::string CutForTable(const std::string& text) {
  constexpr size_t kLongest = 300;
  if (text.size() <= kLongest) return text;
  size_t end = kLongest - 3;
  // Not amid a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string StateOf(const v1::Volume& volume) {
  std::string state = volume.state();
  if (volume.stuck()) state += ",Stuck";
  if (volume.uncertain()) state += ",Uncertain";
  return state;
}

// By its name alone: a claim is of its pod's namespace.
std::string ClaimOf(const v1::Volume& volume) {
  return OrDash(volume.claim().substr(volume.claim().find('/') + 1));
}

std::string UsedOf(const v1::Volume& volume) {
  if (!volume.has_usage() || !volume.usage().has_used_bytes()) return "-";
  return FormatBytes(volume.usage().used_bytes());
}

std::string LastError(const v1::Source& source) {
  const int more = source.problems_size() - 1;
  if (source.last_error().empty() || more <= 0) return OrDash(source.last_error());
  return source.last_error() + " (and " + std::to_string(more) + " more: -o json)";
}

// "in 3s".
std::string InSeconds(int64_t millis) {
  return millis <= 0 ? "now" : "in " + std::to_string((millis + 999) / 1000) + "s";
}

// "Pod default/web".
std::string NameOf(const v1::ObjectRef& object) {
  const std::string& name_space = object.namespace_();
  if (object.name().empty()) return object.kind() + " with uid " + object.uid();
  return object.kind() + " " + name_space + (name_space.empty() ? "" : "/") + object.name();
}

}  // namespace

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string DataThatGoes(const v1::AbsentObject& object) {
  if (object.disk_data().empty()) return "";
  return "; the data on disk of its volumes goes with it: " + Join(object.disk_data(), ", ");
}

namespace {

// Why a source is not in order, what it holds, and what is about to go.
void PrintAbsence(const v1::Source& source, int64_t now, std::ostream& out) {
  if (source.unconfigured()) {
    out << source.name() << ": UNCONFIGURED: its objects stay until `volumectl source forget`\n";
  } else if (!source.incomplete_because().empty()) {
    out << source.name() << ": INCOMPLETE: " << source.incomplete_because() << "\n";
  }
  for (const v1::AbsentObject& one : source.absent()) {
    const bool will_be_missing = one.becomes_missing() && one.presence() == "going";
    out << "  " << NameOf(one.object()) << ": "
        << (will_be_missing ? "will be Missing" : one.presence());
    if (one.goes_at_unix_ms() != 0) {
      out << (will_be_missing ? " " : ", goes ") << InSeconds(one.goes_at_unix_ms() - now);
    }
    out << ": " << one.reason() << (one.presence() == "going" ? DataThatGoes(one) : "") << "\n";
  }
  for (const v1::AbsentObject& one : source.replaced()) {
    out << "  " << NameOf(one.object()) << ": " << ReplacementText(one, now) << "\n";
  }
}

// What has left it and does not go without a command.
void PrintMissing(const v1::Source& source, std::ostream& out) {
  if (source.missing_count() > 0 && source.incomplete_because().empty() && !source.unconfigured()) {
    out << source.name() << ":\n";
  }
  for (const v1::AbsentObject& one : source.missing()) {
    out << "  " << NameOf(one.object()) << ": Missing: it has left " << OrDash(one.file())
        << (one.reason().empty() ? ", and is kept as it was; put it back, or delete it by command"
                                 : "; " + one.reason())
        << "\n";
  }
  const int64_t more = source.missing_count() - source.missing_size();
  if (more > 0) out << "  and " << more << " more that are Missing\n";
}

// A name that is no manifest's is most often a slip.
void PrintUnreadFiles(const v1::Source& source, std::ostream& out) {
  const int64_t count = source.unread_file_count();
  if (count == 0) return;
  const bool more = count > source.unread_files_size();
  out << source.name() << ": " << count << (count == 1 ? " file is" : " files are")
      << " not read, as the name ends in none of .yaml, .yml and .json: "
      << Join(source.unread_files(), ", ") << (more ? ", ..." : "") << "\n";
}

// Fields that nobody knows, in manifests that are used all the same.
void PrintWarnings(const v1::Source& source, std::ostream& out) {
  for (const v1::ManifestProblem& warning : source.warnings()) {
    out << "warning: ";
    PrintManifestProblem(warning, out);
  }
  const int64_t more = source.warning_count() - source.warnings_size();
  if (more > 0) out << "and " << more << " more warnings of " << source.name() << "\n";
}

}  // namespace

void PrintManifestProblem(const v1::ManifestProblem& problem, std::ostream& out) {
  out << problem.file();
  if (problem.document() >= 0) out << ": document " << problem.document() + 1;
  if (!problem.field().empty()) out << ": " << problem.field();
  out << ": " << problem.reason() << "\n";
}

bool IsRefused(const std::string& phase) { return phase == "Refused"; }

void PrintRefusal(const std::string& name, const std::string& phase, const std::string& reason,
                  std::ostream& out) {
  if (IsRefused(phase)) out << name << ": " << reason << "\n";
}

Result<OutputFormat> ParseOutputFormat(const std::string& name) {
  if (name == "table") return OutputFormat::kTable;
  if (name == "wide") return OutputFormat::kWide;
  if (name == "json") return OutputFormat::kJson;
  if (name == "yaml") return OutputFormat::kYaml;
  return Error::NotApplied(Code::kInvalidArgument,
                           "output must be table, wide, json or yaml, not '" + name + "'");
}

bool IsForPrograms(OutputFormat format) {
  return format == OutputFormat::kJson || format == OutputFormat::kYaml;
}

void PrintTable(const Rows& rows, std::ostream& out) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    out << line << "\n";
  }
}

void PrintMessage(const google::protobuf::Message& message, OutputFormat format,
                  std::ostream& out) {
  const std::string json = ToJson(message);
  if (format != OutputFormat::kYaml) {
    out << json;
    return;
  }
  YAML::Node node = YAML::Load(json);
  UseBlockStyle(node);
  out << YAML::Dump(node) << "\n";
}

void PrintPods(const v1::GetPodsResponse& pods, OutputFormat format, int64_t now,
               std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(pods, format, out);
  const bool wide = format == OutputFormat::kWide;
  Rows rows = {{"NAMESPACE", "NAME", "PHASE", "VOLUMES", "AGE", "HELD BY", "PROBLEM"}};
  if (wide) rows[0].insert(rows[0].end(), {"UID", "SOURCE"});
  for (const v1::Pod& pod : pods.pods()) {
    rows.push_back({pod.namespace_(), pod.name(), pod.phase(), ReadyCount(pod),
                    FormatAge(CreationOf(pod), now), OrDash(Join(pod.held_by(), ",")),
                    wide ? FirstProblem(pod) : CutForTable(FirstProblem(pod))});
    if (wide) rows.back().insert(rows.back().end(), {pod.uid(), pod.source()});
  }
  PrintTable(rows, out);
}

void PrintVolumes(const v1::GetPodsResponse& pods, OutputFormat format, int64_t now,
                  std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(pods, format, out);
  const bool wide = format == OutputFormat::kWide;
  Rows rows = {
      {"NAMESPACE", "POD", "VOLUME", "PLUGIN", "CLAIM", "STATE", "USED", "AGE", "PROBLEM"}};
  if (wide) rows[0].push_back("PATH");
  for (const v1::Pod& pod : pods.pods()) {
    for (const v1::Volume& volume : pod.volumes()) {
      rows.push_back({pod.namespace_(), pod.name(), volume.name(), OrDash(volume.plugin()),
                      ClaimOf(volume), StateOf(volume), UsedOf(volume),
                      FormatAge(volume.since_unix_ms(), now),
                      wide ? OrDash(volume.problem().message())
                           : OrDash(CutForTable(volume.problem().message()))});
      if (wide) rows.back().push_back(OrDash(volume.host_path()));
    }
  }
  PrintTable(rows, out);
}

std::string ReplacementText(const v1::AbsentObject& pod, int64_t now) {
  return "is replaced " + InSeconds(pod.goes_at_unix_ms() - now) + ": " + pod.reason() +
         DataThatGoes(pod);
}

void PrintGoing(const google::protobuf::RepeatedPtrField<v1::AbsentObject>& goes,
                std::ostream& out) {
  Rows rows = {{"GOES", "MOUNTED VOLUMES", "DATA ON DISK", "FILE"}};
  Rows missing = {{"BECOMES MISSING", "FILE"}};
  for (const v1::AbsentObject& one : goes) {
    if (one.becomes_missing()) {
      missing.push_back({NameOf(one.object()), OrDash(one.file())});
      continue;
    }
    rows.push_back({NameOf(one.object()), OrDash(Join(one.mounted_volumes(), ",")),
                    OrDash(Join(one.disk_data(), ",")), OrDash(one.file())});
  }
  if (rows.size() == 1) {
    out << "nothing goes\n";
  } else {
    PrintTable(rows, out);
  }
  if (missing.size() == 1) return;
  PrintTable(missing, out);
  out << "What is Missing stays as it is, with its data, until a command deletes it.\n";
}

void PrintSources(const v1::GetSourcesResponse& sources, OutputFormat format, int64_t now,
                  std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(sources, format, out);
  Rows rows = {{"SOURCE", "COMPLETE", "HEALTHY", "OBJECTS", "LAST LIST", "LAST ERROR"}};
  for (const v1::Source& source : sources.sources()) {
    // INCOMPLETE stands below for the same.
    const bool in_order = source.incomplete_because().empty();
    rows.push_back({source.name(), source.complete() && in_order ? "yes" : "no",
                    source.healthy() && in_order ? "yes" : "no", std::to_string(source.objects()),
                    FormatAge(source.last_list_unix_ms(), now), LastError(source)});
  }
  PrintTable(rows, out);
  for (const v1::Source& source : sources.sources()) {
    PrintAbsence(source, now, out);
    PrintMissing(source, out);
    PrintUnreadFiles(source, out);
    PrintWarnings(source, out);
  }
}

namespace {

void PrintHeld(const google::protobuf::RepeatedPtrField<v1::PendingStep>& held, int64_t now,
               std::ostream& out) {
  Rows rows = {{"STEP", "VOLUME", "SINCE"}};
  for (const v1::PendingStep& step : held) {
    rows.push_back({step.step(), step.volume(), FormatAge(step.since_unix_ms(), now)});
  }
  PrintTable(rows, out);
}

}  // namespace

void PrintRecords(const v1::RecordsStatus& records, OutputFormat format, int64_t now,
                  std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(records, format, out);
  out << "transactions: " << records.number() << "\n";
  if (!records.not_compared().empty()) {
    out << "not compared: " << records.not_compared() << " (not known here)\n";
  }
  if (!records.number_problem().empty()) {
    out << "problem:      " << records.number_problem() << "\n";
  }
  if (!records.recovery()) {
    out << "recovery:     no\n";
    return;
  }
  out << "recovery:     since " << FormatAge(records.since_unix_ms(), now) << ": "
      << records.reason() << "\n"
      << "The records may be older than the disks: mkfs, recycle, delete and provision are held "
         "back until\n"
         "`volumectl records accept [--only VOLUME]`; everything else goes on.\n";
  if (!records.mounts().empty()) out << "mounted:      " << records.mounts() << "\n";
  for (const std::string& volume : records.accepted()) out << "accepted: " << volume << "\n";
  if (records.held().empty()) {
    out << "Nothing is held back at the moment.\n";
  } else {
    PrintHeld(records.held(), now, out);
  }
}

void PrintAccepted(const v1::AcceptRecordsResponse& accepted, const std::string& volume,
                   OutputFormat format, int64_t now, std::ostream& out) {
  if (IsForPrograms(format)) return PrintMessage(accepted, format, out);
  if (!accepted.was_recovery()) {
    out << "nothing is held back: the records are in order\n";
    return;
  }
  out << "records accepted" << (volume.empty() ? "" : " for volume " + volume) << "; they "
      << "were doubted because " << accepted.reason() << "\n";
  if (accepted.permitted().empty() && accepted.gone().empty()) {
    out << "nothing " << (volume.empty() ? "" : "of it ") << "had been held back\n";
  }
  if (!accepted.permitted().empty()) {
    out << "held back before, and tried now:\n";
    PrintHeld(accepted.permitted(), now, out);
  }
  if (!accepted.gone().empty()) {
    out << "held back before, and wanted by nobody any more:\n";
    PrintHeld(accepted.gone(), now, out);
    const bool any_is_provision =
        std::any_of(accepted.gone().begin(), accepted.gone().end(),
                    [](const v1::PendingStep& step) { return step.step() == "provision"; });
    if (any_is_provision) {
      out << "A volume of such a name may be in its driver's storage from before: nobody deletes "
             "it.\n";
    }
  }
  if (!accepted.mounts().empty()) out << "mounted: " << accepted.mounts() << "\n";
  if (accepted.has_damage()) {
    out << "What was in damaged or missing records is given up when the agent starts anew.\n";
  }
  if (!accepted.remains().empty() && volume.empty()) {
    out << "The recovery goes on, for these are given up by `volumectl records accept --only "
           "VOLUME` "
           "alone: "
        << accepted.remains() << "\n";
  }
}

int64_t NowUnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string FormatAge(int64_t since, int64_t now) {
  if (since <= 0) return "-";
  const int64_t seconds = std::max<int64_t>(0, (now - since) / 1000);
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + "m" + std::to_string(seconds % 60) + "s";
  }
  if (seconds < 48 * 3600) {
    return std::to_string(seconds / 3600) + "h" + std::to_string(seconds / 60 % 60) + "m";
  }
  return std::to_string(seconds / 86400) + "d";
}

std::string FormatCreation(int64_t created, int64_t now) {
  return created == 0 ? "<unknown>" : FormatAge(created, now);
}

}  // namespace volumed
