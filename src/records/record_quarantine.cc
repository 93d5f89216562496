// RecordDatabase: the rows that cannot be read, or that are missing; what they hold back, and how a
// person gives them up.
#include <algorithm>

#include "base/printable_text.h"
#include "records/record_database.h"

namespace volumed {
namespace {

// How many rows the reason of a recovery names.
constexpr size_t kNamedRows = 50;

// This stands before the reason of a row that the administrator has given up.
constexpr std::string_view kAccepted = "accepted: ";

// The key of a row about a volume is its name, or its unique name.
// A damaged key may be no text: people see it, and name it, as PrintableText has it.
bool IsOfVolume(const std::string& key, const std::string& volume) {
  const std::string shown = PrintableText(key);
  return shown == volume || shown.ends_with("/" + volume);
}

}  // namespace

// Rows that have disappeared are as lost as rows that cannot be read, and are set aside as one row.
Status RecordDatabase::CompareTally() {
  ASSIGN_OR_RETURN(const std::string wrong, tally_.Compare());
  if (wrong.empty()) {
    // An older program wrote this database and counted nothing, so counting begins now.
    if (tally_.is_due()) static_cast<void>(CommitNumber());
    return OkStatus();
  }
  const QuarantinedRecord lost{kLostRowsRecordKind, kLostRowsKey, wrong};
  quarantine_.emplace(RowId(lost.kind, lost.key), wrong);
  ASSIGN_OR_RETURN(const SqliteStatement put,
                   SqlitePrepare(file_.db.get(),
                                 "INSERT INTO quarantine(kind, key, version, bytes, checksum,"
                                 " reason) VALUES(?,?,1,x'',0,?)"));
  SqliteBind(put.get(), 1, lost.kind);
  SqliteBind(put.get(), 2, lost.key);
  SqliteBind(put.get(), 3, lost.reason);
  // If the disk is full, the next start finds the difference again, for the count stays as it is.
  if (SetSynchronous(Durability::kPowerLoss).ok()) static_cast<void>(SqliteRun(put.get()));
  DoubtRecords({lost});
  return OkStatus();
}

Status RecordDatabase::LoadQuarantine() {
  sqlite3* db = file_.db.get();
  ASSIGN_OR_RETURN(const SqliteStatement select,
                   SqlitePrepare(db, "SELECT kind, key, reason FROM quarantine ORDER BY id"));
  int rc = SQLITE_OK;
  while ((rc = sqlite3_step(select.get())) == SQLITE_ROW) {
    std::string reason = SqliteColumn(select.get(), 2);
    if (reason.starts_with(kAccepted)) continue;
    quarantine_.emplace(RowId(SqliteColumn(select.get(), 0), SqliteColumn(select.get(), 1)),
                        std::move(reason));
  }
  if (rc != SQLITE_DONE) {
    return SqliteError(db, rc, "read the quarantine of " + file_.path, Outcome::kNotApplied);
  }
  std::vector<QuarantinedRecord> rows;
  for (const auto& [id, reason] : quarantine_) rows.push_back({id.first, id.second, reason});
  DoubtRecords(rows);
  return OkStatus();
}

// Each row is named, because whoever accepts the records gives up what these rows said.
void RecordDatabase::DoubtRecords(const std::vector<QuarantinedRecord>& rows) {
  const size_t named = std::min(rows.size(), kNamedRows);
  for (size_t i = 0; i < named; ++i) {
    const bool is_lost = rows[i].kind == kLostRowsRecordKind;
    numbering_.Doubt(PrintableText(is_lost ? rows[i].reason
                                           : "the record " + rows[i].kind + " \"" + rows[i].key +
                                                 "\" cannot be read: " + rows[i].reason));
  }
  if (named < rows.size()) {
    numbering_.Doubt(std::to_string(rows.size() - named) + " more cannot be read");
  }
  if (numbering_.is_due()) static_cast<void>(CommitNumber());
}

bool RecordDatabase::IsKept(const QuarantinedRecord& row) const {
  return !expendable_kinds_.contains(row.kind) &&
         std::none_of(given_up_.begin(), given_up_.end(),
                      [&row](const std::string& volume) { return IsOfVolume(row.key, volume); });
}

RecordsRecovery RecordDatabase::recovery() const {
  RecordsRecovery recovery = numbering_.recovery();
  recovery.has_damage = !quarantine_.empty();
  for (const auto& [id, reason] : quarantine_) {
    if (IsKept({id.first, id.second, reason}))
      recovery.kept_damage.insert(PrintableText(id.second));
  }
  return recovery;
}

Status RecordDatabase::AcceptLosses(const std::optional<std::string>& volume) {
  std::vector<QuarantinedRecord> given_up;
  for (const auto& [id, reason] : quarantine_) {
    const bool is_expendable = expendable_kinds_.contains(id.first);
    const bool is_its = volume && (is_expendable ? PrintableText(id.second) == *volume
                                                 : IsOfVolume(id.second, *volume));
    if (volume ? !is_its : IsKept({id.first, id.second, reason})) continue;
    given_up.push_back({id.first, id.second, reason});
  }
  RETURN_IF_ERROR(GiveUp(given_up));
  if (volume) given_up_.insert(*volume);
  return OkStatus();
}

Status RecordDatabase::GiveUp(const std::vector<QuarantinedRecord>& rows) {
  RETURN_IF_ERROR(SetSynchronous(Durability::kPowerLoss));
  const std::string prefix(kAccepted);
  std::vector<QuarantinedRecord> in_place;
  for (const QuarantinedRecord& row : rows) {
    if (!in_place_.contains(RowId(row.kind, row.key))) continue;
    in_place.push_back({row.kind, row.key, prefix + row.reason});
  }
  RETURN_IF_ERROR(MoveAside(in_place));
  for (const QuarantinedRecord& row : in_place) in_place_.erase(RowId(row.kind, row.key));
  for (const QuarantinedRecord& row : rows) {
    sqlite3_stmt* give_up = statements_.give_up.get();
    SqliteBind(give_up, 1, row.kind);
    SqliteBind(give_up, 2, row.key);
    SqliteBind(give_up, 3, prefix);
    const int rc = SqliteRun(give_up);
    if (rc != SQLITE_OK) {
      return SqliteError(file_.db.get(), rc, "give damaged records up", Outcome::kNotApplied);
    }
  }
  return OkStatus();
}

// If the agent ends before the new row is written, the key counts as never written.
Status RecordDatabase::Renew(const Record& record) {
  const RowId id(record.kind, record.key);
  const std::string reason = quarantine_.find(id)->second;
  if (!renewed_kinds_.contains(record.kind)) {
    return Error::NotApplied(Code::kFailedPrecondition, "record " + record.kind + "/" + record.key +
                                                            " is quarantined: " + reason);
  }
  if (ChecksumOnRecord(record.kind, record.key)) {
    RETURN_IF_ERROR(MoveAside({{record.kind, record.key, std::string(kAccepted) + reason}}));
    in_place_.erase(id);
  }
  RETURN_IF_ERROR(GiveUp({{record.kind, record.key, reason}}));
  quarantine_.erase(id);
  return OkStatus();
}

void RecordDatabase::QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) {
  for (const QuarantinedRecord& row : rows) {
    const RowId id(row.kind, row.key);
    if (quarantine_.find(id) == quarantine_.end()) quarantine_.emplace(id, row.reason);
    in_place_.insert(id);
  }
  DoubtRecords(rows);
}

// If the rows cannot be moved because the disk is full, they stay where they are. They are reported
// all the same, and the next start finds them again.
void RecordDatabase::SetAside(const std::vector<QuarantinedRecord>& bad) {
  for (const QuarantinedRecord& row : bad) {
    const RowId id(row.kind, row.key);
    if (quarantine_.find(id) == quarantine_.end()) quarantine_.emplace(id, row.reason);
  }
  if (!MoveAside(bad).ok() && !tally_.compared()) {
    for (const QuarantinedRecord& row : bad) uncounted_.emplace(row.kind, row.key);
  }
  DoubtRecords(bad);
}

Status RecordDatabase::MoveAside(const std::vector<QuarantinedRecord>& rows) {
  if (rows.empty()) return OkStatus();
  RETURN_IF_ERROR(SetSynchronous(Durability::kPowerLoss));
  int rc = SqliteRun(statements_.begin.get());
  for (size_t i = 0; rc == SQLITE_OK && i < rows.size(); ++i) {
    sqlite3_stmt* copy = statements_.set_aside.get();
    SqliteBind(copy, 1, rows[i].kind);
    SqliteBind(copy, 2, rows[i].key);
    SqliteBind(copy, 3, rows[i].reason);
    rc = SqliteRun(copy);
    if (tally_.compared()) tally_.Change(CountedChecksum(rows[i].kind, rows[i].key), std::nullopt);
    sqlite3_stmt* remove = statements_.remove.get();
    SqliteBind(remove, 1, rows[i].kind);
    SqliteBind(remove, 2, rows[i].key);
    if (rc == SQLITE_OK) rc = SqliteRun(remove);
  }
  if (rc == SQLITE_OK) rc = tally_.Write();
  if (rc == SQLITE_OK) rc = SqliteRun(statements_.commit.get());
  if (rc != SQLITE_OK) return *FailedAttempt(rc, /*in_commit=*/true).error;
  tally_.Committed();
  for (const QuarantinedRecord& row : rows) uncounted_.erase(RowId(row.kind, row.key));
  return OkStatus();
}

}  // namespace volumed
