#include "pool/lvm_tools.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

constexpr const char* kLvmDirectories[] = {"/usr/sbin", "/sbin"};
// What pods write into their volumes is never taken for a disk of a group.
constexpr char kLvmConfig[] = "devices/scan_lvs=0";
constexpr char kLvsFields[] =
    "lv_name,lv_uuid,vg_uuid,pool_lv,lv_tags,lv_size,vg_extent_size,lv_permissions,lv_active,"
    "lv_suspended,lv_device_open,lv_kernel_minor,data_percent,metadata_percent,lv_health_status";
// A logical volume takes about 500 bytes of the output, of which RunProgram keeps 64 KiB.
constexpr size_t kFoundAtOnce = 64;
constexpr size_t kLvsOutput = size_t{64} << 10;
constexpr size_t kChangeOutput = size_t{4} << 10;

Error CannotBeRead(const std::string& what) {
  return Error::NotApplied(Code::kInternal, "the answer of lvs cannot be read: " + what);
}

// Warnings go to the same output as the answer, which begins and ends with lines of its own.
std::string JsonIn(const std::string& output) {
  std::string json;
  bool has_begun = false;
  size_t end = 0;
  for (const std::string& line : Split(output, '\n')) {
    const std::string_view text = TrimSpace(line);
    has_begun = has_begun || text == "{";
    if (!has_begun) continue;
    json += line + "\n";
    if (text == "}") end = json.size();
  }
  return json.substr(0, end);
}

// "12.34"; nullopt also for what is no such number.
std::optional<int64_t> Hundredths(const std::string& text) {
  const size_t dot = text.find('.');
  std::string digits = text.substr(0, dot);
  std::string fraction = dot == std::string::npos ? "" : text.substr(dot + 1);
  fraction.resize(2, '0');
  digits += fraction;
  const bool is_number = !text.empty() && std::all_of(digits.begin(), digits.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? ParseInt64(digits) : std::nullopt;
}

// The rows of the report; nullopt if it is none.
std::optional<std::vector<std::map<std::string, std::string>>> RowsOf(const std::string& output) {
  const auto json = nlohmann::json::parse(JsonIn(output), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("report") || !json["report"].is_array()) {
    return std::nullopt;
  }
  std::vector<std::map<std::string, std::string>> rows;
  for (const auto& report : json["report"]) {
    if (!report.is_object() || !report.contains("lv") || !report["lv"].is_array()) {
      return std::nullopt;
    }
    for (const auto& volume : report["lv"]) {
      if (!volume.is_object()) return std::nullopt;
      auto& row = rows.emplace_back();
      for (const auto& [field, value] : volume.items()) {
        if (!value.is_string()) return std::nullopt;
        row[field] = value.get<std::string>();
      }
    }
  }
  return rows;
}

Result<LogicalVolume> VolumeOf(const std::map<std::string, std::string>& row) {
  const auto text = [&row](const char* field) {
    const auto found = row.find(field);
    return found == row.end() ? std::string() : found->second;
  };
  LogicalVolume volume;
  volume.name = text("lv_name");
  volume.uuid = text("lv_uuid");
  volume.group_uuid = text("vg_uuid");
  volume.thin_pool = text("pool_lv");
  volume.tags = SplitNonEmpty(text("lv_tags"), ',');
  volume.is_read_only = text("lv_permissions").starts_with("read-only");
  volume.is_active = text("lv_active") == "active";
  volume.is_suspended = text("lv_suspended") == "suspended";
  volume.is_open = text("lv_device_open") == "open";
  volume.data_used = Hundredths(text("data_percent"));
  volume.metadata_used = Hundredths(text("metadata_percent"));
  volume.health = text("lv_health_status");
  const std::optional<int64_t> size = ParseInt64(text("lv_size"));
  const std::optional<int64_t> extent = ParseInt64(text("vg_extent_size"));
  const std::optional<int64_t> minor = ParseInt64(text("lv_kernel_minor"));
  if (volume.name.empty() || volume.uuid.empty() || volume.group_uuid.empty() || !size || !extent ||
      *size <= 0 || *extent <= 0) {
    return CannotBeRead("something of a logical volume is missing");
  }
  volume.size_bytes = *size;
  volume.extent_bytes = *extent;
  const bool has_device = volume.is_active && minor && *minor >= 0;
  if (has_device) volume.device = "/dev/dm-" + std::to_string(*minor);
  if (volume.is_active && !has_device) return CannotBeRead("the number of a device is missing");
  return volume;
}

// Divided first, so that the product is none that is too large.
int64_t PartOf(int64_t bytes, int64_t hundredths) {
  return bytes / kWholeInHundredths * hundredths +
         bytes % kWholeInHundredths * hundredths / kWholeInHundredths;
}

// The lines about descriptors that the tool was given are no complaint of what it was asked for.
std::string SaidBy(const std::string& output) {
  std::vector<std::string> said;
  for (const std::string& line : Split(output, '\n')) {
    const std::string text(TrimSpace(line));
    if (!text.empty() && !text.starts_with("File descriptor ")) said.push_back(text);
  }
  return PrintableText(Join(said, "; "));
}

std::string ComplaintOf(const std::string& tool, const ProgramEnd& end) {
  const std::string said = SaidBy(end.output);
  return tool + " ended with status " + std::to_string(end.exit_status) +
         (said.empty() ? "" : ": " + said);
}

// As device-mapper has the name of a group or a logical volume in that of a device.
std::string InDeviceName(const std::string& name) {
  std::string doubled;
  for (const char c : name) doubled += c == '-' ? "--" : std::string(1, c);
  return doubled;
}

// The number of the thin device that stands in a tool's way in the thin pool of this device; empty
// if none does. Source: lvm2, libdm-deptree.c (_thin_pool_node_message).
std::string ThinDeviceInTheWay(const std::string& output, const std::string& pool_device) {
  constexpr std::string_view kIsThere = "already contain thin device with device_id ";
  for (const std::string& line : Split(output, '\n')) {
    const size_t at = line.find(kIsThere);
    if (at == std::string::npos || line.find(" " + pool_device + " ") == std::string::npos)
      continue;
    const std::string rest = line.substr(at + kIsThere.size());
    return rest.substr(0, rest.find_first_not_of("0123456789"));
  }
  return "";
}

std::string UuidIs(const LogicalVolume& volume) { return "lv_uuid=\"" + volume.uuid + "\""; }

}  // namespace

int64_t UsedAtLeast(const LogicalVolume& volume) {
  const int64_t used = volume.data_used.value_or(0);
  if (used >= kWholeInHundredths) return volume.size_bytes;
  return PartOf(volume.size_bytes, std::max<int64_t>(used - 1, 0));
}

// Only what is nothing is shown as nothing.
int64_t UsedAtMost(const LogicalVolume& volume) {
  const int64_t used = volume.data_used.value_or(kWholeInHundredths);
  if (used == 0) return 0;
  return PartOf(volume.size_bytes, std::min(used + 1, kWholeInHundredths));
}

Result<std::vector<LogicalVolume>> ParseLvs(const std::string& output) {
  const auto rows = RowsOf(output);
  if (!rows) return CannotBeRead(SaidBy(output).substr(0, kChangeOutput));
  std::vector<LogicalVolume> volumes;
  for (const auto& row : *rows) {
    ASSIGN_OR_RETURN(LogicalVolume volume, VolumeOf(row));
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

Result<ProgramEnd> LvmTools::Run(const std::string& tool, const std::vector<std::string>& arguments,
                                 size_t output_bytes, const CallOptions& call) const {
  for (const char* directory : kLvmDirectories) {
    RunProgram run;
    run.arguments = {std::string(directory) + "/" + tool};
    run.arguments.insert(run.arguments.end(), arguments.begin(), arguments.end());
    run.output_bytes = output_bytes;
    Result<ProgramEnd> end = kernel_.Call(run, call);
    if (end.ok() || end.error().sys_errno() != ENOENT) return end;
  }
  return Error::NotApplied(Code::kFailedPrecondition,
                           "a volume of backend lvm needs lvm2: this node has no " + tool +
                               ": install the package lvm2");
}

Result<ProgramEnd> LvmTools::RunLvm(const std::string& tool,
                                    const std::vector<std::string>& arguments, size_t output_bytes,
                                    const CallOptions& call) const {
  std::vector<std::string> all = {"--config", kLvmConfig};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Run(tool, all, output_bytes, call);
}

Result<std::string> LvmTools::List(const std::string& fields, const std::string& selection,
                                   const CallOptions& call) const {
  Result<ProgramEnd> end = RunLvm("lvs",
                                  {"--reportformat", "json", "--units", "b", "--nosuffix", "-o",
                                   fields, "--select", selection, names_.volume_group},
                                  kLvsOutput, call);
  // It only asks.
  if (!end.ok()) {
    const Error& error = end.error();
    return Error::FromParts(error.code(), Outcome::kNotApplied, error.sys_errno(), error.message());
  }
  if (end->exit_status == 0) return std::move(end->output);
  return Error::NotApplied(Code::kFailedPrecondition, ComplaintOf("lvs", *end));
}

Result<std::vector<LogicalVolume>> LvmTools::Select(const std::string& selection,
                                                    const CallOptions& call) const {
  ASSIGN_OR_RETURN(const std::string output, List(kLvsFields, selection, call));
  return ParseLvs(output);
}

Result<std::map<std::string, LogicalVolume>> LvmTools::Find(const std::vector<std::string>& names,
                                                            const CallOptions& call) const {
  std::map<std::string, LogicalVolume> found;
  for (size_t at = 0; at < names.size(); at += kFoundAtOnce) {
    std::vector<std::string> terms;
    for (size_t i = at; i < std::min(at + kFoundAtOnce, names.size()); ++i) {
      terms.push_back("lv_name=\"" + names[i] + "\"");
    }
    ASSIGN_OR_RETURN(const std::vector<LogicalVolume> some, Select(Join(terms, " || "), call));
    for (const LogicalVolume& volume : some) found[volume.name] = volume;
  }
  return found;
}

Result<std::vector<std::string>> LvmTools::FindActive(const std::string& prefix,
                                                      const CallOptions& call) const {
  ASSIGN_OR_RETURN(const std::string output,
                   List("lv_name", "lv_active=\"active\" && lv_name=~\"^" + prefix + "\"", call));
  const auto rows = RowsOf(output);
  if (!rows) return CannotBeRead(SaidBy(output).substr(0, kChangeOutput));
  std::vector<std::string> names;
  for (const auto& row : *rows) {
    const auto name = row.find("lv_name");
    if (name != row.end()) names.push_back(name->second);
  }
  return names;
}

Result<std::vector<LogicalVolume>> LvmTools::FindSuspended(const std::string& prefix,
                                                           const CallOptions& call) const {
  return Select("lv_suspended=\"suspended\" && lv_name=~\"^" + prefix + "\"", call);
}

Result<LvmTools::Complaint> LvmTools::Change(const std::string& tool,
                                             const std::vector<std::string>& arguments,
                                             const CallOptions& call) const {
  CallOptions to_the_end = call;
  to_the_end.must_finish = true;
  std::vector<std::string> all = {"--yes"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  ASSIGN_OR_RETURN(ProgramEnd end, RunLvm(tool, all, kChangeOutput, to_the_end));
  if (end.exit_status == 0) return Complaint();
  const Result<bool> forgotten = ForgetHalfMade(end.output, to_the_end);
  if (!forgotten.ok()) return ComplaintOf(tool, end) + "; " + forgotten.error().message();
  if (*forgotten) {
    const Result<ProgramEnd> again = RunLvm(tool, all, kChangeOutput, to_the_end);
    if (!again.ok()) return again.error().AsMaybeApplied();
    end = *again;
  }
  return end.exit_status == 0 ? Complaint() : ComplaintOf(tool, end);
}

Result<bool> LvmTools::ForgetHalfMade(const std::string& output, const CallOptions& call) const {
  const std::string pool_device =
      InDeviceName(names_.volume_group) + "-" + InDeviceName(names_.thin_pool) + "-tpool";
  const std::string number = ThinDeviceInTheWay(output, pool_device);
  if (number.empty()) return false;
  ASSIGN_OR_RETURN(
      const std::string listed,
      List("lv_name,lv_tags", "pool_lv=\"" + names_.thin_pool + "\" && thin_id=" + number, call));
  const auto rows = RowsOf(listed);
  if (!rows || rows->size() != 1) return false;
  const auto name = rows->front().find("lv_name");
  const auto tags = rows->front().find("lv_tags");
  if (name == rows->front().end() || tags == rows->front().end()) return false;
  const std::vector<std::string> has = SplitNonEmpty(tags->second, ',');
  if (std::find(has.begin(), has.end(), LvmTagOf(name->second)) == has.end()) return false;
  ASSIGN_OR_RETURN(
      const ProgramEnd end,
      Run("dmsetup", {"message", pool_device, "0", "delete " + number}, kChangeOutput, call));
  if (end.exit_status == 0) return true;
  return Error::MaybeApplied(Code::kInternal, ComplaintOf("dmsetup", end));
}

Result<LvmTools::Complaint> LvmTools::ChangeThis(const std::string& tool,
                                                 std::vector<std::string> arguments,
                                                 const LogicalVolume& volume,
                                                 const CallOptions& call) const {
  arguments.insert(arguments.end(), {"--select", UuidIs(volume), PathOf(volume.name)});
  return Change(tool, arguments, call);
}

Result<LvmTools::Complaint> LvmTools::MakeThin(const std::string& name, const std::string& tag,
                                               int64_t bytes, const CallOptions& call) const {
  return Change(
      "lvcreate",
      {"--type", "thin", "--virtualsize", std::to_string(bytes) + "b", "--setactivationskip", "y",
       "--addtag", tag, "--name", name, "--thinpool", names_.thin_pool, names_.volume_group},
      call);
}

Result<LvmTools::Complaint> LvmTools::MakeSnapshot(const std::string& of, const std::string& name,
                                                   const std::string& tag, bool read_only,
                                                   const CallOptions& call) const {
  // "--snapshot" would have the module of other snapshots loaded, which the agent's unit forbids.
  return Change("lvcreate",
                {"--type", "thin", "--permission", read_only ? "r" : "rw", "--setactivationskip",
                 "y", "--addtag", tag, "--name", name, PathOf(of)},
                call);
}

Result<LvmTools::Complaint> LvmTools::Activate(const LogicalVolume& volume,
                                               const CallOptions& call) const {
  return ChangeThis("lvchange", {"--activate", "y", "--ignoreactivationskip"}, volume, call);
}

Result<LvmTools::Complaint> LvmTools::Deactivate(const LogicalVolume& volume,
                                                 const CallOptions& call) const {
  return ChangeThis("lvchange", {"--activate", "n"}, volume, call);
}

Result<LvmTools::Complaint> LvmTools::SetReadOnly(const LogicalVolume& volume, bool read_only,
                                                  const CallOptions& call) const {
  return ChangeThis("lvchange", {"--permission", read_only ? "r" : "rw"}, volume, call);
}

Result<LvmTools::Complaint> LvmTools::Extend(const LogicalVolume& volume, int64_t bytes,
                                             const CallOptions& call) const {
  return Change("lvextend", {"--size", std::to_string(bytes) + "b", PathOf(volume.name)}, call);
}

Result<LvmTools::Complaint> LvmTools::Remove(const LogicalVolume& volume,
                                             const CallOptions& call) const {
  return ChangeThis("lvremove", {}, volume, call);
}

Result<LvmTools::Complaint> LvmTools::Resume(const LogicalVolume& volume,
                                             const CallOptions& call) const {
  return ChangeThis("lvchange", {"--refresh"}, volume, call);
}

}  // namespace volumed
