#include "records/record_database.h"

#include <algorithm>
#include <limits>

#include "base/crc32c.h"

namespace volumed {
namespace {

// These are pages of 4 KiB. Early is where SQLite makes checkpoints by itself. Late is 32 MiB,
// which bounds the log of an agent that is never idle.
constexpr int kCheckpointEarlyPages = 1000;
constexpr int kCheckpointLatePages = 8000;

// Each part is preceded by its length, so that no two different rows give the same bytes.
int64_t ChecksumOf(std::string_view kind, std::string_view key, int64_t version,
                   std::string_view bytes) {
  const std::string lengths = std::to_string(kind.size()) + "/" + std::to_string(key.size()) + "/" +
                              std::to_string(version) + "/";
  uint32_t crc = ExtendCrc32c(0, lengths);
  crc = ExtendCrc32c(crc, kind);
  crc = ExtendCrc32c(crc, key);
  return ExtendCrc32c(crc, bytes);
}

std::string Name(const Record& record) { return "record " + record.kind + "/" + record.key; }

}  // namespace

RecordDatabase::RecordDatabase(RecordFile file, Ballast ballast, RecordNumbering numbering,
                               const RecordDatabaseOptions& options)
    : file_(std::move(file)),
      ballast_(std::move(ballast)),
      numbering_(std::move(numbering)),
      expendable_kinds_(options.expendable_kinds),
      renewed_kinds_(options.renewed_kinds),
      teardown_kinds_(options.teardown_kinds) {}

Result<std::unique_ptr<RecordDatabase>> RecordDatabase::Open(const RecordDatabaseOptions& options) {
  Ballast ballast(options.file.directory + "/records.ballast", options.ballast_bytes);
  Result<RecordFile> opened = OpenRecordFile(options.file);
  // The migration of an older schema needs space.
  if (!opened.ok() && opened.error().code() == Code::kResourceExhausted && ballast.Spend()) {
    opened = OpenRecordFile(options.file);
  }
  if (!opened.ok()) return opened.error();
  RETURN_IF_ERROR(ballast.Restore());
  std::unique_ptr<RecordDatabase> database(
      new RecordDatabase(*std::move(opened), std::move(ballast),
                         RecordNumbering(options.file.directory + kNumberFileSuffix, options.place,
                                         options.sign_of_use, options.now_unix_ms),
                         options));
  RETURN_IF_ERROR(database->Prepare());
  RETURN_IF_ERROR(database->numbering_.Load(database->file_.db.get(), database->file_.path));
  // If the number cannot be written now, the next transaction writes it, and this process keeps it
  // meanwhile.
  if (database->numbering_.is_due()) static_cast<void>(database->CommitNumber());
  RETURN_IF_ERROR(database->LoadQuarantine());
  // Every row is read once at the start, so that a bad one is known before anybody asks for its
  // kind.
  ASSIGN_OR_RETURN(const SqliteStatement all,
                   SqlitePrepare(database->file_.db.get(),
                                 "SELECT kind, key, version, bytes, checksum FROM records"));
  RETURN_IF_ERROR(database->Scan(all.get()));
  RETURN_IF_ERROR(database->CompareTally());
  return database;
}

Status RecordDatabase::Prepare() {
  sqlite3* db = file_.db.get();
  ASSIGN_OR_RETURN(statements_.begin, SqlitePrepare(db, "BEGIN IMMEDIATE"));
  ASSIGN_OR_RETURN(statements_.commit, SqlitePrepare(db, "COMMIT"));
  ASSIGN_OR_RETURN(statements_.rollback, SqlitePrepare(db, "ROLLBACK"));
  ASSIGN_OR_RETURN(
      statements_.put,
      SqlitePrepare(db,
                    "INSERT INTO records(kind, key, version, bytes, checksum) VALUES(?,?,?,?,?)"
                    " ON CONFLICT(kind, key) DO UPDATE SET version=excluded.version,"
                    " bytes=excluded.bytes, checksum=excluded.checksum"));
  ASSIGN_OR_RETURN(statements_.remove,
                   SqlitePrepare(db, "DELETE FROM records WHERE kind=? AND key=?"));
  ASSIGN_OR_RETURN(statements_.exists,
                   SqlitePrepare(db, "SELECT checksum FROM records WHERE kind=? AND key=?"));
  ASSIGN_OR_RETURN(
      statements_.set_aside,
      SqlitePrepare(db,
                    "INSERT INTO quarantine(kind, key, version, bytes, checksum, reason)"
                    " SELECT kind, key, version, bytes, checksum, ?3 FROM records"
                    " WHERE kind=?1 AND key=?2"));
  ASSIGN_OR_RETURN(statements_.give_up,
                   SqlitePrepare(db,
                                 "UPDATE quarantine SET reason=?3||reason WHERE kind=?1 AND key=?2"
                                 " AND substr(reason,1,length(?3))<>?3"));
  RETURN_IF_ERROR(tally_.Prepare(db));
  sqlite3_wal_hook(
      db,
      [](void* pages, sqlite3*, const char*, int log_pages) {
        *static_cast<int*>(pages) = log_pages;
        return SQLITE_OK;
      },
      &log_pages_);
  return OkStatus();
}

// ---- writing ------------------------------------------------------------------------------------

// kProcess: synchronous=NORMAL. A commit is a write(2) into the log: with the page cache it
// outlives the agent, however that ends. Only checkpoints are synced, which keeps the file whole
// through a power cut; the last commits may be missing then, and always the last ones, never some
// in between. kPowerLoss: synchronous=FULL. The log is synced after the commit, and so is every
// earlier commit, since they are earlier in the same file. OFF would save nothing here and would
// leave checkpoints unsynced: a power cut could then damage the file. Source:
// sqlite.org/pragma.html#pragma_synchronous, sqlite.org/wal.html#ckpt.
Status RecordDatabase::SetSynchronous(Durability durability) {
  if (synchronous_ == durability) return OkStatus();
  synchronous_.reset();
  const char* sql = nullptr;
  switch (durability) {
    case Durability::kProcess:
      sql = "PRAGMA synchronous=NORMAL;";
      break;
    case Durability::kPowerLoss:
      sql = "PRAGMA synchronous=FULL;";
      break;
  }
  RETURN_IF_ERROR(SqliteExec(file_.db.get(), sql, "set the durability of " + file_.path));
  synchronous_ = durability;
  return OkStatus();
}

void RecordDatabase::Apply(const std::vector<RecordChange*>& changes, Durability durability) {
  if (changes.empty()) return;
  Status ready = log_uncertain_ ? RepairLog() : OkStatus();
  if (ready.ok()) ready = SetSynchronous(durability);
  NoticeRoom();

  std::vector<RecordChange*> admitted;
  for (RecordChange* change : changes) {
    change->status = ready.ok() ? Admit(*change) : ready;
    if (change->status.ok()) admitted.push_back(change);
  }
  if (admitted.size() > 1 && !log_uncertain_) {
    const Attempt attempt = TryCommit(admitted);
    if (!attempt.error) return;
    if (attempt.error->maybe_applied()) {
      for (RecordChange* change : admitted) change->status = *attempt.error;
      return;
    }
  }
  // The batch is one change, or a transaction that failed as a whole. Each change is made on its
  // own then, so that one caller's trouble stays with that caller.
  for (RecordChange* change : admitted) ApplyOne(*change);
}

// If there is still no room, only new rows are refused, so the others do not depend on this.
void RecordDatabase::NoticeRoom() {
  if (on_ballast()) static_cast<void>(ballast_.Restore());
}

Status RecordDatabase::CheckRoom() {
  NoticeRoom();
  if (!on_ballast()) return OkStatus();
  return Full("the space left is kept for teardown");
}

Error RecordDatabase::Full(const std::string& consequence) const {
  return Error::FromParts(Code::kResourceExhausted, Outcome::kNotApplied, ENOSPC,
                          "the disk of " + file_.path + " is full; " + consequence);
}

void RecordDatabase::ApplyOne(RecordChange& change) {
  if (log_uncertain_) {
    change.status = RepairLog();
    if (!change.status.ok()) return;
  }
  change.status = Admit(change);
  if (!change.status.ok()) return;
  Attempt attempt = TryCommit({&change});
  if (attempt.error && attempt.error->code() == Code::kResourceExhausted && ballast_.Spend()) {
    change.status = Admit(change);  // a new row must not eat the ballast
    if (!change.status.ok()) return;
    attempt = TryCommit({&change});
  }
  if (attempt.error) change.status = attempt.error->With("write " + Name(*change.record));
}

Status RecordDatabase::Admit(const RecordChange& change) {
  const Record& record = *change.record;
  if (record.kind.empty() || record.key.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "a record needs a kind and a key");
  }
  if (change.remove) return OkStatus();
  if (quarantine_.contains(RowId(record.kind, record.key))) RETURN_IF_ERROR(Renew(record));
  if (!on_ballast() || IsOfTeardown(record)) return OkStatus();
  if (ChecksumOnRecord(record.kind, record.key)) return OkStatus();
  return Full("new " + Name(record) + " is refused, and the space left is kept for teardown");
}

bool RecordDatabase::IsOfTeardown(const Record& record) const {
  const std::string first = record.key.substr(0, record.key.find('/'));
  return teardown_kinds_.contains(record.kind) ||
         teardown_kinds_.contains(record.kind + "/" + first);
}

std::optional<int64_t> RecordDatabase::ChecksumOnRecord(const std::string& kind,
                                                        const std::string& key) {
  sqlite3_stmt* exists = statements_.exists.get();
  SqliteBind(exists, 1, kind);
  SqliteBind(exists, 2, key);
  std::optional<int64_t> checksum;
  if (sqlite3_step(exists) == SQLITE_ROW) checksum = sqlite3_column_int64(exists, 0);
  sqlite3_reset(exists);
  return checksum;
}

std::optional<int64_t> RecordDatabase::CountedChecksum(const std::string& kind,
                                                       const std::string& key) {
  return uncounted_.contains(RowId(kind, key)) ? std::nullopt : ChecksumOnRecord(kind, key);
}

int RecordDatabase::Write(const RecordChange& change) {
  const Record& record = *change.record;
  // Whoever removes it does not know what it says.
  if (in_place_.contains(RowId(record.kind, record.key))) return SQLITE_OK;
  const std::optional<int64_t> before = CountedChecksum(record.kind, record.key);
  std::optional<int64_t> after;
  sqlite3_stmt* statement = change.remove ? statements_.remove.get() : statements_.put.get();
  SqliteBind(statement, 1, record.kind);
  SqliteBind(statement, 2, record.key);
  if (!change.remove) {
    sqlite3_bind_int64(statement, 3, record.version);
    // An empty std::string still has data(): a null pointer would be bound as NULL.
    sqlite3_bind_blob64(statement, 4, record.bytes.data(), record.bytes.size(), SQLITE_STATIC);
    after = ChecksumOf(record.kind, record.key, record.version, record.bytes);
    sqlite3_bind_int64(statement, 5, *after);
  }
  tally_.Change(before, after);
  return SqliteRun(statement);
}

RecordDatabase::Attempt RecordDatabase::TryCommit(const std::vector<RecordChange*>& changes) {
  int rc = SqliteRun(statements_.begin.get());
  for (size_t i = 0; rc == SQLITE_OK && i < changes.size(); ++i) rc = Write(*changes[i]);
  if (rc != SQLITE_OK) return FailedAttempt(rc, /*in_commit=*/false);
  if (synchronous_ == Durability::kPowerLoss) rc = numbering_.WriteNext();
  if (rc == SQLITE_OK) rc = tally_.Write();
  if (rc != SQLITE_OK) return FailedAttempt(rc, /*in_commit=*/false);
  rc = SqliteRun(statements_.commit.get());
  if (rc != SQLITE_OK) return FailedAttempt(rc, /*in_commit=*/true);
  if (!changes.empty()) ++commits_;
  has_log_ = true;
  tally_.Committed();
  numbering_.Committed();
  return {};
}

RecordDatabase::Attempt RecordDatabase::CommitNumber() {
  Status ready = log_uncertain_ ? RepairLog() : OkStatus();
  if (ready.ok()) ready = SetSynchronous(Durability::kPowerLoss);
  if (!ready.ok()) return {SQLITE_ERROR, ready.error()};
  Attempt attempt = TryCommit({});
  if (attempt.error && attempt.error->code() == Code::kResourceExhausted && ballast_.Spend()) {
    attempt = TryCommit({});
  }
  return attempt;
}

Status RecordDatabase::AcceptRecords(const std::optional<std::string>& volume) {
  if (!recovery().active) return OkStatus();
  RETURN_IF_ERROR(AcceptLosses(volume));
  numbering_.Accept(volume);
  const Attempt attempt = CommitNumber();
  if (!attempt.error) {
    // Nothing is known of the rows that are kept.
    std::vector<QuarantinedRecord> kept;
    for (const auto& [id, reason] : quarantine_) {
      if (IsKept({id.first, id.second, reason})) kept.push_back({id.first, id.second, reason});
    }
    if (!volume) DoubtRecords(kept);
    return OkStatus();
  }
  numbering_.Discard();
  return attempt.error->With("record that the records are accepted");
}

// A commit that failed in the disk may have left its frames, commit mark included, in the log:
// this connection does not count them, but the recovery of the next one would. And after a failed
// fsync the kernel may call pages clean that never reached the disk. A checkpoint that empties the
// log settles both: what counts is written anew, and the rest is cut off.
RecordDatabase::Attempt RecordDatabase::FailedAttempt(int rc, bool in_commit) {
  sqlite3* db = file_.db.get();
  Attempt attempt{rc, SqliteError(db, rc, "commit", Outcome::kNotApplied)};
  numbering_.Unstage();
  tally_.Unstage();
  if (sqlite3_get_autocommit(db) == 0) SqliteRun(statements_.rollback.get());
  if (in_commit && (rc & 0xff) == SQLITE_IOERR && !RepairLog().ok()) {
    attempt.error = attempt.error->AsMaybeApplied();
  }
  return attempt;
}

Status RecordDatabase::RepairLog() {
  log_uncertain_ = true;
  const int rc = Checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
  if (rc != SQLITE_OK) {
    return SqliteError(file_.db.get(), rc,
                       "empty the log of " + file_.path + " after a failed write",
                       Outcome::kNotApplied);
  }
  log_uncertain_ = false;
  return OkStatus();
}

void RecordDatabase::CheckpointWhenIdle() {
  if (!has_log_ || log_uncertain_) return;
  Checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
  has_log_ = false;
}

void RecordDatabase::CheckpointIfDue(bool nobody_waits) {
  // While the ballast is spent the log must not grow, because the ballast is all the space that
  // there is.
  const int due = on_ballast() ? 1 : nobody_waits ? kCheckpointEarlyPages : kCheckpointLatePages;
  if (log_pages_ < due || log_uncertain_) return;
  const int rc = Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  // The log keeps what could not be written back, and the next call tries again.
  if (IsSqliteFull(file_.db.get(), rc) && ballast_.Spend()) {
    Checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  }
}

int RecordDatabase::Checkpoint(int mode) {
  const int rc = sqlite3_wal_checkpoint_v2(file_.db.get(), nullptr, mode, nullptr, nullptr);
  if (rc == SQLITE_OK) {
    log_pages_ = 0;
    numbering_.Sync();
  }
  return rc;
}

// ---- reading ------------------------------------------------------------------------------------

Result<LoadedRecords> RecordDatabase::Load(const std::string& kind) {
  ASSIGN_OR_RETURN(const SqliteStatement select,
                   SqlitePrepare(file_.db.get(),
                                 "SELECT kind, key, version, bytes, checksum FROM records"
                                 " WHERE kind=? ORDER BY key"));
  SqliteBind(select.get(), 1, kind);
  ASSIGN_OR_RETURN(LoadedRecords loaded, Scan(select.get()));
  loaded.quarantined.clear();
  for (const auto& [id, reason] : quarantine_) {
    if (id.first != kind) continue;
    loaded.quarantined.push_back({id.first, id.second, reason, in_place_.contains(id)});
  }
  return loaded;
}

Result<LoadedRecords> RecordDatabase::Scan(sqlite3_stmt* select) {
  LoadedRecords loaded;
  int rc = SQLITE_OK;
  while ((rc = sqlite3_step(select)) == SQLITE_ROW) {
    Record record{SqliteColumn(select, 0), SqliteColumn(select, 1), 0, SqliteColumn(select, 3)};
    const int64_t version = sqlite3_column_int64(select, 2);
    const int64_t checksum = sqlite3_column_int64(select, 4);
    if (checksum != ChecksumOf(record.kind, record.key, version, record.bytes)) {
      loaded.quarantined.push_back({record.kind, record.key, "its checksum is wrong"});
    } else if (version < 0 || version > std::numeric_limits<uint32_t>::max()) {
      loaded.quarantined.push_back(
          {record.kind, record.key, "its version is " + std::to_string(version)});
    } else if (!in_place_.contains(RowId(record.kind, record.key))) {
      record.version = static_cast<uint32_t>(version);
      loaded.records.push_back(std::move(record));
      if (!tally_.compared()) tally_.Found(checksum);
    }
  }
  sqlite3_reset(select);
  if (rc != SQLITE_DONE) {
    return SqliteError(file_.db.get(), rc, "read " + file_.path, Outcome::kNotApplied);
  }
  for (size_t i = 0; i < loaded.quarantined.size() && !tally_.compared(); ++i) {
    tally_.FoundDamaged();
  }
  if (!loaded.quarantined.empty()) SetAside(loaded.quarantined);
  return loaded;
}

}  // namespace volumed
