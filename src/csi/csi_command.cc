#include "csi/csi_command.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "csi.pb.h"
#include "csi/csi_names.h"
#include "csi/rpc/csi_json.h"
#include "csi/rpc/csi_outcome.h"
#include "operation/record_codec.h"

namespace volumed {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr const char* kVolumeId = "volume_id";
constexpr size_t kShownOfCommand = 128;

struct Inverses {
  std::string_view does;
  std::string_view takes_back;
};
constexpr std::array<Inverses, 3> kInverses = {{
    {"NodeStageVolume", "NodeUnstageVolume"},
    {"NodePublishVolume", "NodeUnpublishVolume"},
    {"ControllerPublishVolume", "ControllerUnpublishVolume"},
}};
// Where on a node a call is about the volume, or on which node: a call about another place neither
// repeats nor takes back.
constexpr std::array kPlaceFields{"target_path", "staging_target_path", "node_id"};
constexpr std::array kMountPathFields{"target_path", "staging_target_path"};

struct CsiCommandRow {
  CsiCommandRecord record{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.record.driver);
    v.Text(2, m.record.about);
    v.Text(3, m.record.method);
    v.Text(4, m.record.request_json);
    v(5, m.record.since_unix_ms);
  }
};

std::string TextOf(const Message& message, const std::string& field) {
  const FieldDescriptor* const found = message.GetDescriptor()->FindFieldByName(field);
  if (found == nullptr || found->is_repeated() ||
      found->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
    return "";
  }
  return message.GetReflection()->GetString(message, found);
}

std::string KeyOf(const std::string& driver, const CsiMethod& method, const std::string& about) {
  if (method.key_field == kVolumeId) return CsiUniqueName(driver, about).str();
  return method.name + "/" + CsiVolumeName(driver, about);
}

// The key of a record whose method there is.
std::string KeyOf(const CsiCommandRecord& command) {
  return KeyOf(command.driver, *FindCsiMethod(command.method), command.about);
}

// The plain fields of the request, as JSON.
std::string PlainJson(const Message& request) {
  const std::unique_ptr<Message> plain(request.New());
  plain->CopyFrom(request);
  const auto* const type = plain->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    const bool is_plain = !field->is_repeated() &&
                          field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
                          !field->options().GetExtension(::csi::v1::csi_secret);
    if (!is_plain) plain->GetReflection()->ClearField(plain.get(), field);
  }
  const Result<std::string> json = CsiJsonOf(*plain);
  return json.ok() ? *json : "";
}

// Whether both calls are about the same place, as far as both say one.
bool IsSamePlace(const CsiCommandRecord& a, const CsiCommandRecord& b) {
  const auto one = CsiRequestFromJson(*FindCsiMethod(a.method), a.request_json);
  const auto other = CsiRequestFromJson(*FindCsiMethod(b.method), b.request_json);
  if (!one.ok() || !other.ok()) return false;
  for (const char* field : kPlaceFields) {
    const bool both_have = (*one)->GetDescriptor()->FindFieldByName(field) != nullptr &&
                           (*other)->GetDescriptor()->FindFieldByName(field) != nullptr;
    if (both_have && TextOf(**one, field) != TextOf(**other, field)) return false;
  }
  return true;
}

// " with the staging_target_path "/k/stage" that it had"; "" if the request says no place.
std::string WithItsPlace(const CsiCommandRecord& command) {
  constexpr size_t kShownOfPath = 512;
  const auto request = CsiRequestFromJson(*FindCsiMethod(command.method), command.request_json);
  if (!request.ok()) return "";
  std::string places;
  for (const char* field : kPlaceFields) {
    const std::string place = TextOf(**request, field);
    if (place.empty()) continue;
    places += (places.empty() ? " with the " : " and the ") + std::string(field) + " " +
              Quoted(place, kShownOfPath);
  }
  return places.empty() ? "" : places + " that it had";
}

bool TakesBack(std::string_view method) {
  for (const Inverses& pair : kInverses) {
    if (pair.takes_back == method) return true;
  }
  return false;
}

// Whether the driver has looked at the volume before it refused a call that nothing takes back.
// What it deletes may be going still, for a call that it refused for its secrets or its form, too.
bool HasLooked(const CsiCommandRecord& command, Code refusal) {
  if (refusal == Code::kPermissionDenied || refusal == Code::kUnauthenticated) return false;
  if (command.method != kCsiDeleteVolume) return true;
  return refusal == Code::kNotFound || refusal == Code::kFailedPrecondition;
}

// Whether nothing of the command is open after this answer. A refusal says nothing of an earlier
// call, unless nothing could take that back, and the driver has looked at the volume: then it is as
// done as it will ever be.
bool Settles(const CsiCommandRecord& command, bool was_open, const Status& answer) {
  if (answer.ok()) return true;
  if (answer.error().maybe_applied()) return false;
  if (!was_open) return true;
  if (answer.error().IsAbout(kCsiNeverSent)) return false;
  if (CsiInverseOf(command.method).empty()) return HasLooked(command, answer.error().code());
  // The driver knows no such volume, so nothing of it is there.
  return TakesBack(command.method) && answer.error().code() == Code::kNotFound;
}

// Nobody makes a call by hand about a volume that is in use, the same one neither.
constexpr const char* kWhatIsToGoFirst =
    "; if it is refused because something has the volume since, delete that first: the pod, and "
    "for "
    "DeleteVolume the claim and the PersistentVolume (`volumectl delete pv NAME --force`)";

constexpr const char* kWhatReadsIt = "; `volumectl records accept`, and start the agent anew";

// 'DeleteVolume by hand of "v"'; of a row that cannot be read nobody knows more.
std::string NameForPeople(const CsiCommandRecord& command) {
  return (command.method.empty() ? "a call" : command.method) + " by hand of " +
         Quoted(command.about, kShownOfCommand);
}

std::string WhatItIsAbout(const CsiCommandRecord& command) {
  return Quoted(command.about, kShownOfCommand) + " of CSI driver " + command.driver;
}

}  // namespace

std::optional<std::string> CsiCommandKey(const std::string& driver, const CsiMethod& method,
                                         const Message& request) {
  const std::string about = TextOf(request, method.key_field);
  if (about.empty()) return std::nullopt;
  return KeyOf(driver, method, about);
}

std::string CsiVolumeToChange(const Message& request) {
  const CsiMethod* const method = CsiMethodOf(request.GetDescriptor());
  const bool is_it =
      method != nullptr && method->kind == CsiRpcKind::kMutating && method->key_field == kVolumeId;
  return is_it ? TextOf(request, kVolumeId) : "";
}

CsiCommandRecord CsiCommandOf(const std::string& driver, const CsiMethod& method,
                              const Message& request, int64_t now_unix_ms) {
  return {driver, TextOf(request, method.key_field), method.name, PlainJson(request), now_unix_ms};
}

std::string_view CsiInverseOf(std::string_view method) {
  for (const Inverses& pair : kInverses) {
    if (pair.does == method) return pair.takes_back;
    if (pair.takes_back == method) return pair.does;
  }
  return "";
}

Record EncodeRecord(const CsiCommandRecord& record) {
  return EncodeRow(kCsiCommandRecordKind, KeyOf(record), CsiCommandRow{record},
                   kCsiCommandRecordVersion);
}

Result<CsiCommandRecord> DecodeCsiCommandRecord(const Record& row) {
  ASSIGN_OR_RETURN(CsiCommandRow read,
                   ParseRow<CsiCommandRow>(row, kCsiCommandRecordKind, kCsiCommandRecordVersion));
  const CsiMethod* const method = FindCsiMethod(read.record.method);
  if (method == nullptr || method->name != read.record.method) {
    return UnreadableRow(row, "has the RPC " + Quoted(read.record.method, kShownOfCommand));
  }
  RETURN_IF_ERROR(BelongsUnder(KeyOf(read.record), row,
                               !read.record.driver.empty() && !read.record.about.empty()));
  return std::move(read.record);
}

void CsiCommands::Restore(const LoadedRecords& rows) {
  std::vector<std::pair<std::string, std::string>> unreadable;  // key and reason
  for (const QuarantinedRecord& row : rows.quarantined)
    unreadable.emplace_back(row.key, row.reason);
  const MutexLock lock(mu_);
  for (const Record& row : rows.records) {
    const Result<CsiCommandRecord> record = DecodeCsiCommandRecord(row);
    if (record.ok()) {
      entries_[row.key] = {.command = *record, .running = false, .open = true, .stored = true};
    } else {
      unreadable.emplace_back(row.key, record.error().message());
    }
  }
  for (const auto& [key, reason] : unreadable) {
    Entry& entry = entries_[key];
    entry.unreadable = reason;
    const auto volume = ParseCsiUniqueName(UniqueVolumeName(key));
    if (volume) entry.command.driver = volume->driver;
  }
}

Error CsiCommands::Refusal(const Entry& there) const {
  if (!there.unreadable.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "a call by hand about it is on record, and the row cannot be read: " +
                                 there.unreadable + kWhatReadsIt);
  }
  const CsiCommandRecord& command = there.command;
  if (there.running) {
    return Error::NotApplied(Code::kUnavailable, WhatItIsAbout(command) + ": " + command.method +
                                                     " by hand is under way");
  }
  const std::string inverse(CsiInverseOf(command.method));
  return Error::NotApplied(Code::kFailedPrecondition,
                           WhatItIsAbout(command) + ": " + command.method +
                               " by hand has an open outcome: make it again" +
                               (inverse.empty() ? "" : ", or " + inverse) +
                               ", by hand (volumectl csi " + command.driver + ")" +
                               WithItsPlace(command) + kWhatIsToGoFirst);
}

Result<CsiCommands::Pass> CsiCommands::AdmitOperation(const std::string& driver,
                                                      const Message& request) {
  const CsiMethod* const method = CsiMethodOf(request.GetDescriptor());
  if (method == nullptr || method->kind == CsiRpcKind::kReadOnly) return Pass();
  std::optional<std::string> key = CsiCommandKey(driver, *method, request);
  if (!key) return Pass();
  const MutexLock lock(mu_);
  const auto found = entries_.find(*key);
  if (found != entries_.end()) return Refusal(found->second);
  ++operations_[*key];
  return Pass(*this, *std::move(key));
}

Status CsiCommands::CheckVolume(const std::string& driver, const std::string& handle) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(CsiUniqueName(driver, handle).str());
  return found == entries_.end() ? OkStatus() : Status(Refusal(found->second));
}

void CsiCommands::OperationEnded(const std::string& key) {
  const MutexLock lock(mu_);
  const auto found = operations_.find(key);
  if (--found->second == 0) operations_.erase(found);
}

bool CsiCommands::HasOf(const std::string& driver) const {
  const MutexLock lock(mu_);
  for (const auto& [key, entry] : entries_) {
    if (entry.command.driver == driver) return true;
  }
  return false;
}

bool CsiCommands::IsOpen(const CsiCommandRecord& command) const {
  const MutexLock lock(mu_);
  return entries_.contains(KeyOf(command));
}

std::vector<std::pair<CsiVolumeId, std::string>> CsiCommands::OpenDeletions() const {
  std::vector<std::pair<CsiVolumeId, std::string>> open;
  const MutexLock lock(mu_);
  for (const auto& [key, entry] : entries_) {
    const bool is_readable = entry.unreadable.empty();
    if (is_readable && !(entry.open && entry.command.method == kCsiDeleteVolume)) continue;
    std::optional<CsiVolumeId> volume = ParseCsiUniqueName(UniqueVolumeName(key));
    if (!volume) continue;
    open.emplace_back(*std::move(volume),
                      is_readable
                          ? "DeleteVolume by hand, whose outcome is open"
                          : std::string("a call by hand whose row cannot be read") + kWhatReadsIt);
  }
  return open;
}

std::vector<std::string> CsiCommands::OpenOf(const std::string& driver) const {
  std::vector<std::string> open;
  const MutexLock lock(mu_);
  for (const auto& [key, entry] : entries_) {
    if (entry.command.driver != driver) continue;
    open.push_back(NameForPeople(entry.command) + (entry.running ? ", under way" : ""));
  }
  return open;
}

Status CsiCommands::CheckGiveUp(const std::string& driver) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.command.driver != driver) continue;
    if (entry.running || !entry.unreadable.empty()) return Refusal(entry);
  }
  return OkStatus();
}

Result<std::map<std::string, std::string>> CsiCommands::PathsToGiveUp(
    const std::string& driver) const {
  std::map<std::string, std::string> paths;
  const MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckGiveUp(driver));
  for (const auto& [key, entry] : entries_) {
    if (entry.command.driver != driver) continue;
    const auto request =
        CsiRequestFromJson(*FindCsiMethod(entry.command.method), entry.command.request_json);
    if (!request.ok()) continue;
    for (const char* field : kMountPathFields) {
      const std::string path = TextOf(**request, field);
      if (!path.empty()) paths.emplace(path, NameForPeople(entry.command));
    }
  }
  return paths;
}

Result<std::vector<std::string>> CsiCommands::GiveUp(const std::string& driver) {
  std::map<std::string, std::string> going;  // key -> for people
  {
    const MutexLock lock(mu_);
    RETURN_IF_ERROR(CheckGiveUp(driver));
    for (auto& [key, entry] : entries_) {
      if (entry.command.driver != driver) continue;
      entry.running = true;  // nobody makes it again while its row goes
      going.emplace(key, NameForPeople(entry.command));
    }
  }
  std::vector<std::string> given_up;
  Status removed = OkStatus();
  for (const auto& [key, text] : going) {
    if (removed.ok()) {
      removed = store_.Remove(kCsiCommandRecordKind, key, kCsiCommandRecordDurability);
    }
    const MutexLock lock(mu_);
    if (removed.ok()) {
      entries_.erase(key);
      given_up.push_back(text);
    } else {
      entries_.at(key).running = false;
    }
  }
  if (removed.ok()) return given_up;
  return given_up.empty() ? removed.error() : removed.error().AsMaybeApplied();
}

Status CsiCommands::CheckAgainst(const Entry& there, const CsiCommandRecord& command) const {
  if (there.running || !there.unreadable.empty()) return Refusal(there);
  const bool is_of_pair = command.method == there.command.method ||
                          command.method == CsiInverseOf(there.command.method);
  if (!is_of_pair) return Refusal(there);
  if (IsSamePlace(there.command, command)) return OkStatus();
  return Refusal(there).With("this call is about another place, or node, than the open one");
}

Status CsiCommands::CheckLocked(const CsiCommandRecord& command) const {
  const std::string key = KeyOf(command);
  if (operations_.count(key) > 0) {
    return Error::NotApplied(
        Code::kUnavailable,
        WhatItIsAbout(command) + ": the agent calls the driver about it just now");
  }
  const auto found = entries_.find(key);
  return found == entries_.end() ? OkStatus() : CheckAgainst(found->second, command);
}

Status CsiCommands::CheckCommand(const CsiCommandRecord& command) const {
  const MutexLock lock(mu_);
  return CheckLocked(command);
}

Status CsiCommands::Begin(const CsiCommandRecord& command) {
  const MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckLocked(command));
  const auto [entry, is_new] = entries_.try_emplace(KeyOf(command));
  if (is_new) entry->second.command = command;
  entry->second.running = true;
  return OkStatus();
}

// What is open already is on record by its first call: of the same two it may be either.
Status CsiCommands::Write(const CsiCommandRecord& command) {
  {
    const MutexLock lock(mu_);
    Entry& entry = entries_.at(KeyOf(command));
    if (entry.stored) return OkStatus();
    entry.stored = true;  // also if the store does not know whether it has written it
  }
  return store_.Put(EncodeRecord(command), kCsiCommandRecordDurability);
}

bool CsiCommands::End(const CsiCommandRecord& command, const Status& answer) {
  const std::string key = KeyOf(command);
  bool stored = false;
  bool settled = false;
  {
    const MutexLock lock(mu_);
    Entry& entry = entries_.at(key);
    settled = Settles(command, entry.open, answer);
    stored = entry.stored;
  }
  if (settled && stored) {
    const Status removed = store_.Remove(kCsiCommandRecordKind, key, kCsiCommandRecordDurability);
    if (!removed.ok()) {
      log_.Warning(
          "the row of a call by hand stays: the call has to be made again",
          {{"driver", command.driver}, {"method", command.method}, {"error", removed.error()}});
      settled = false;
    }
  }
  const MutexLock lock(mu_);
  if (settled) {
    entries_.erase(key);
    return true;
  }
  entries_.at(key).running = false;
  entries_.at(key).open = true;
  return false;
}

}  // namespace volumed
