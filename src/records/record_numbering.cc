#include "records/record_numbering.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"
#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kNoMachineId[] = "machine-id";
constexpr char kNoRootUuid[] = "UUID of the root's filesystem";

Result<bool> HasNoRecords(sqlite3* db, const std::string& database_path) {
  ASSIGN_OR_RETURN(const SqliteStatement any, SqlitePrepare(db, "SELECT 1 FROM records LIMIT 1"));
  const int rc = sqlite3_step(any.get());
  if (rc == SQLITE_DONE) return true;
  if (rc == SQLITE_ROW) return false;
  return SqliteError(db, rc, "look for records in " + database_path, Outcome::kNotApplied);
}

}  // namespace

RecordNumbering::RecordNumbering(std::string file_path, RecordsPlace place, std::string sign_of_use,
                                 int64_t now_unix_ms)
    : file_(std::move(file_path)),
      place_(std::move(place)),
      sign_of_use_(std::move(sign_of_use)),
      now_unix_ms_(now_unix_ms) {}

// Each part is preceded by its length, so that no two different rows give the same bytes.
int64_t RecordNumbering::ChecksumOf(const Row& row) {
  uint32_t crc = 0;
  for (const std::string& part :
       {row.records_id, std::to_string(row.number), row.place.machine_id, row.place.root_uuid,
        row.reason, std::to_string(row.since_unix_ms), row.accepted}) {
    crc = ExtendCrc32c(crc, std::to_string(part.size()) + "/" + part);
  }
  // A row of schema version 2 has no directory.
  if (!row.place.directory.empty()) crc = ExtendCrc32c(crc, row.place.directory);
  return crc;
}

// ---- the start ----------------------------------------------------------------------------------

Result<std::optional<RecordNumbering::Row>> RecordNumbering::ReadRow(
    sqlite3* db, const std::string& database_path) {
  ASSIGN_OR_RETURN(const SqliteStatement select,
                   SqlitePrepare(db,
                                 "SELECT records_id, number, machine_id, root_uuid, reason, since,"
                                 " accepted, checksum, directory FROM numbering WHERE id=1"));
  const int rc = sqlite3_step(select.get());
  if (rc == SQLITE_DONE) return std::optional<Row>();
  if (rc != SQLITE_ROW) {
    return SqliteError(db, rc, "read the number of " + database_path, Outcome::kNotApplied);
  }
  Row row;
  row.records_id = SqliteColumn(select.get(), 0);
  row.number = static_cast<uint64_t>(sqlite3_column_int64(select.get(), 1));
  row.place = {SqliteColumn(select.get(), 2), SqliteColumn(select.get(), 3),
               SqliteColumn(select.get(), 8)};
  row.reason = SqliteColumn(select.get(), 4);
  row.since_unix_ms = sqlite3_column_int64(select.get(), 5);
  row.accepted = SqliteColumn(select.get(), 6);
  row_damaged_ = sqlite3_column_int64(select.get(), 7) != ChecksumOf(row);
  return std::optional<Row>(std::move(row));
}

std::string RecordNumbering::WhyElsewhere(const RecordsPlace& recorded) const {
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  if (differ(recorded.machine_id, place_.machine_id)) {
    return "they are of the machine with machine-id " + recorded.machine_id +
           ", and this one has " + place_.machine_id;
  }
  if (differ(recorded.root_uuid, place_.root_uuid)) {
    return "they are of a root on the filesystem with UUID " + recorded.root_uuid +
           ", and this one is on " + place_.root_uuid;
  }
  if (differ(recorded.directory, place_.directory)) {
    return "their directory is a copy: they were written in the one with " + recorded.directory +
           ", and this one has " + place_.directory;
  }
  return "";
}

std::string RecordNumbering::WhyOlder(const std::optional<Row>& row, bool empty) const {
  const std::string count = std::to_string(file_.found().number);
  switch (file_.state()) {
    case NumberFile::State::kMissing:
      if (!row && empty && !sign_of_use_.empty()) {
        return "there are none, and " + sign_of_use_ + " is of an agent that had some";
      }
      if (!row) return "";  // new, or of a release that did not number
      return file_.path() + ", which counts their transactions, is missing";
    case NumberFile::State::kDamaged:
      return file_.path() + ", which counts their transactions, is damaged";
    case NumberFile::State::kWhole:
      break;
  }
  if (!row) {
    // A file at 0 was made for records that then got no number before the agent ended.
    if (file_.found().number == 0) return "";
    return "they have no number, and " + file_.path() + " counts " + count + " transactions";
  }
  if (row_damaged_) return "the row with their number is damaged";
  if (row->records_id != file_.found().records_id) {
    return file_.path() + " counts the transactions of other records";
  }
  if (row->number < file_.found().number) {
    return "they end with transaction " + std::to_string(row->number) + ", and " + file_.path() +
           " counts " + count;
  }
  return WhyElsewhere(row->place);
}

Status RecordNumbering::Load(sqlite3* db, const std::string& database_path) {
  ASSIGN_OR_RETURN(put_,
                   SqlitePrepare(db,
                                 "INSERT INTO numbering(id, records_id, number, machine_id,"
                                 " root_uuid, reason, since, accepted, checksum, directory)"
                                 " VALUES(1,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET"
                                 " records_id=excluded.records_id, number=excluded.number,"
                                 " machine_id=excluded.machine_id, root_uuid=excluded.root_uuid,"
                                 " reason=excluded.reason, since=excluded.since,"
                                 " accepted=excluded.accepted, checksum=excluded.checksum,"
                                 " directory=excluded.directory"));
  RETURN_IF_ERROR(file_.Open());
  ASSIGN_OR_RETURN(const std::optional<Row> row, ReadRow(db, database_path));
  ASSIGN_OR_RETURN(const bool empty, HasNoRecords(db, database_path));
  const std::string reason = WhyOlder(row, empty);
  const bool has_file = file_.state() == NumberFile::State::kWhole;
  has_row_ = row.has_value();
  row_ = row && !row_damaged_ ? *row : Row();
  if (row_.records_id.empty()) row_.records_id = has_file ? file_.found().records_id : NewUuid();
  if (!reason.empty()) {
    if (has_file) row_.number = std::max(row_.number, file_.found().number);
    if (row_.reason.empty()) {
      row_.reason = reason;
      row_.since_unix_ms = now_unix_ms_;
    }
  }
  next_ = row_;
  if (next_.place.machine_id.empty()) next_.place.machine_id = place_.machine_id;
  if (next_.place.root_uuid.empty()) next_.place.root_uuid = place_.root_uuid;
  if (next_.place.directory.empty()) next_.place.directory = place_.directory;
  due_ = !has_row_ || !reason.empty() || next_.place != row_.place ||
         row_.number != file_.found().number;
  Show();
  return OkStatus();
}

// ---- transactions -------------------------------------------------------------------------------

int RecordNumbering::WriteNext() {
  const bool begins = !has_row_ && next_.reason.empty();
  if (begins && file_.state() != NumberFile::State::kWhole) {
    if (const Status made = file_.Make({row_.records_id, 0}); !made.ok()) {
      recovery_.number_problem = made.error().message();
      return SQLITE_OK;
    }
  }
  next_.number = row_.number + 1;
  sqlite3_stmt* put = put_.get();
  SqliteBind(put, 1, next_.records_id);
  sqlite3_bind_int64(put, 2, static_cast<int64_t>(next_.number));
  SqliteBind(put, 3, next_.place.machine_id);
  SqliteBind(put, 4, next_.place.root_uuid);
  SqliteBind(put, 5, next_.reason);
  sqlite3_bind_int64(put, 6, next_.since_unix_ms);
  SqliteBind(put, 7, next_.accepted);
  sqlite3_bind_int64(put, 8, ChecksumOf(next_));
  SqliteBind(put, 9, next_.place.directory);
  const int rc = sqlite3_step(put);
  sqlite3_reset(put);
  staged_ = rc == SQLITE_DONE;
  return staged_ ? SQLITE_OK : rc;
}

void RecordNumbering::Committed() {
  if (!staged_) return;
  staged_ = false;
  due_ = false;
  has_row_ = true;
  row_ = next_;
  const RecordsNumber number{row_.records_id, row_.number};
  const bool overwrites = file_.state() == NumberFile::State::kWhole &&
                          file_.found().records_id == row_.records_id &&
                          recovery_.number_problem.empty();
  const Status written = overwrites ? file_.Write(number) : file_.Make(number);
  recovery_.number_problem = written.ok() ? "" : written.error().message();
  Show();
}

void RecordNumbering::Discard() {
  next_.reason = row_.reason;
  next_.since_unix_ms = row_.since_unix_ms;
  next_.accepted = row_.accepted;
}

void RecordNumbering::Doubt(const std::string& reason) {
  if (row_.reason.find(reason) != std::string::npos) return;
  if (row_.reason.empty()) row_.since_unix_ms = next_.since_unix_ms = now_unix_ms_;
  row_.reason += (row_.reason.empty() ? "" : "; ") + reason;
  next_.reason = row_.reason;
  due_ = true;
  Show();
}

void RecordNumbering::Accept(const std::optional<std::string>& volume) {
  if (volume) {
    next_.accepted += *volume + "\n";
    return;
  }
  next_.reason.clear();
  next_.since_unix_ms = 0;
  next_.accepted.clear();
  next_.place.machine_id = place_.machine_id;
  next_.place.root_uuid = place_.root_uuid;
  next_.place.directory = place_.directory;
}

void RecordNumbering::Sync() {
  if (const Status synced = file_.Sync(); !synced.ok()) {
    recovery_.number_problem = synced.error().message();
  }
}

void RecordNumbering::Show() {
  recovery_.active = !row_.reason.empty();
  recovery_.reason = row_.reason;
  recovery_.since_unix_ms = row_.since_unix_ms;
  recovery_.number = row_.number;
  recovery_.accepted.clear();
  for (std::string& volume : SplitNonEmpty(row_.accepted, '\n')) {
    recovery_.accepted.insert(std::move(volume));
  }
  std::vector<std::string> unknown;
  if (place_.machine_id.empty()) unknown.emplace_back(kNoMachineId);
  if (place_.root_uuid.empty()) unknown.emplace_back(kNoRootUuid);
  recovery_.not_compared = Join(unknown, ", ");
}

}  // namespace volumed
