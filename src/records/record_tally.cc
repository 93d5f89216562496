#include "records/record_tally.h"

#include "base/crc32c.h"

namespace volumed {
namespace {

// The value of a database that an older program has written, before the first count.
constexpr int64_t kNotCounted = -1;

int64_t ChecksumOf(int64_t rows, uint64_t sum) {
  return ExtendCrc32c(0, std::to_string(rows) + "/" + std::to_string(sum));
}

}  // namespace

Status RecordTally::Prepare(sqlite3* db) {
  db_ = db;
  ASSIGN_OR_RETURN(put_, SqlitePrepare(db,
                                       "INSERT INTO tally(id, rows, sum, checksum) VALUES(1,?,?,?)"
                                       " ON CONFLICT(id) DO UPDATE SET rows=excluded.rows,"
                                       " sum=excluded.sum, checksum=excluded.checksum"));
  return OkStatus();
}

void RecordTally::Found(int64_t checksum) { Change(std::nullopt, checksum); }

Result<std::string> RecordTally::Compare() {
  counted_ = staged_;
  compared_ = true;
  ASSIGN_OR_RETURN(const SqliteStatement select,
                   SqlitePrepare(db_, "SELECT rows, sum, checksum FROM tally WHERE id=1"));
  const int rc = sqlite3_step(select.get());
  if (rc == SQLITE_DONE) return std::string("the count of the rows is gone");
  if (rc != SQLITE_ROW) {
    return SqliteError(db_, rc, "read the count of the rows", Outcome::kNotApplied);
  }
  const int64_t rows = sqlite3_column_int64(select.get(), 0);
  const auto sum = static_cast<uint64_t>(sqlite3_column_int64(select.get(), 1));
  if (rows == kNotCounted) return std::string();
  if (sqlite3_column_int64(select.get(), 2) != ChecksumOf(rows, sum)) {
    return std::string("the count of the rows is damaged");
  }
  recorded_ = Count{rows, sum};
  const int64_t there = counted_.rows + damaged_;
  // If the disk is full, damaged rows could not be set aside, and are there without being counted.
  if (there != rows && counted_.rows != rows) {
    return std::to_string(rows) + " rows were written, and " + std::to_string(there) +
           " are there: which ones are missing, nobody knows";
  }
  if (damaged_ == 0 && counted_.sum != sum) {
    return std::string(
        "some of the rows are not those that were written: which ones, nobody knows");
  }
  return std::string();
}

// The sum of the checksums wraps round at 2^64.
void RecordTally::Change(std::optional<int64_t> before, std::optional<int64_t> after) {
  if (before) {
    --staged_.rows;
    staged_.sum -= static_cast<uint64_t>(*before);
  }
  if (after) {
    ++staged_.rows;
    staged_.sum += static_cast<uint64_t>(*after);
  }
}

int RecordTally::Write() {
  if (!compared_ || recorded_ == staged_) return SQLITE_OK;
  sqlite3_bind_int64(put_.get(), 1, staged_.rows);
  sqlite3_bind_int64(put_.get(), 2, static_cast<int64_t>(staged_.sum));
  sqlite3_bind_int64(put_.get(), 3, ChecksumOf(staged_.rows, staged_.sum));
  const int rc = sqlite3_step(put_.get());
  sqlite3_reset(put_.get());
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void RecordTally::Committed() {
  counted_ = staged_;
  if (compared_) recorded_ = counted_;
}

}  // namespace volumed
