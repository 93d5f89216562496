#include "records/record_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace volumed {
namespace {

// This number ("VREC") marks the file as one of this program. Source:
// sqlite.org/pragma.html#pragma_application_id.
constexpr int64_t kApplicationId = 0x56524543;

// STRICT makes SQLite refuse a value of the wrong type.
constexpr const char* kSchemaVersion1 =
    "CREATE TABLE records(kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,"
    " bytes BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(kind, key))"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE quarantine(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL,"
    " version INTEGER NOT NULL, bytes BLOB NOT NULL, checksum INTEGER NOT NULL,"
    " reason TEXT NOT NULL) STRICT;"
    "PRAGMA application_id=1448232259;"
    "PRAGMA user_version=1;";
static_assert(kApplicationId == 1448232259);

// From this version on, only a program that keeps the laws of absence (docs/OBJECTS.md) may use the
// file: another one would take what it finds for all that there is. The table `numbering` has one
// row at most (records/record_numbering.h).
constexpr const char* kSchemaVersion2 =
    "CREATE TABLE numbering(id INTEGER PRIMARY KEY CHECK(id=1), records_id TEXT NOT NULL,"
    " number INTEGER NOT NULL, machine_id TEXT NOT NULL, root_uuid TEXT NOT NULL,"
    " reason TEXT NOT NULL, since INTEGER NOT NULL, accepted TEXT NOT NULL,"
    " checksum INTEGER NOT NULL) STRICT;";

// From this version on, only a program that counts what it writes (records/record_tally.h), and
// says where, may use the file.
constexpr const char* kSchemaVersion3 =
    "CREATE TABLE tally(id INTEGER PRIMARY KEY CHECK(id=1), rows INTEGER NOT NULL,"
    " sum INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT;"
    "INSERT INTO tally(id, rows, sum, checksum) VALUES(1, -1, 0, 0);"
    "ALTER TABLE numbering ADD COLUMN directory TEXT NOT NULL DEFAULT '';";

std::vector<std::string> MigrationsOf(const RecordFileOptions& options) {
  std::vector<std::string> migrations = {kSchemaVersion2, kSchemaVersion3};
  migrations.insert(migrations.end(), options.migrations.begin(), options.migrations.end());
  return migrations;
}

Code CodeOf(sqlite3* db, int rc) {
  if (IsSqliteFull(db, rc)) return Code::kResourceExhausted;
  switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::kFailedPrecondition;
    case SQLITE_TOOBIG:
      return Code::kInvalidArgument;
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_CONSTRAINT:
      return Code::kInternal;
    default:
      return Code::kUnavailable;
  }
}

Error SystemError(const std::string& what) {
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

Error Refused(Code code, const std::string& path, const std::string& why) {
  return Error::NotApplied(
      code, path + " " + why + "; it was left as it is: move it away to start without records");
}

Result<Descriptor> LockDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return SystemError("make directory " + directory);
  }
  Descriptor fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return SystemError("open directory " + directory);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError("lock " + directory);
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the records in " + directory + " are used by another process");
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return SystemError("stat " + directory);
  if ((info.st_mode & 07777) != 0700 && fchmod(fd.get(), 0700) != 0) {
    return SystemError("set mode of " + directory);
  }
  return fd;
}

Result<SqliteHandle> OpenSqlite(const std::string& path, const std::string& vfs) {
  sqlite3* raw = nullptr;
  // SQLite needs no mutex, because whoever holds the handle uses it from one thread at a time.
  const int rc = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                 vfs.empty() ? nullptr : vfs.c_str());
  SqliteHandle db(raw);
  if (rc != SQLITE_OK) return SqliteError(raw, rc, "open " + path, Outcome::kNotApplied);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return db;
}

Status SyncFile(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0) return SystemError("open " + path);
  if (fsync(fd.get()) != 0) return SystemError("sync " + path);
  return OkStatus();
}

// The file gets its name only when it is complete, so that an empty records.db is never the trace
// of an interrupted start but always a loss, which must not pass for "no records".
Status CreateDatabase(int directory_fd, const std::string& path, const std::string& vfs) {
  const std::string fresh = path + ".new";
  for (const char* suffix : {"", "-journal", "-wal"}) {
    if (unlink((fresh + suffix).c_str()) != 0 && errno != ENOENT) {
      return SystemError("remove " + fresh + suffix);
    }
  }
  {
    const Descriptor fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.get() < 0) return SystemError("create " + fresh);
    if (fchmod(fd.get(), 0600) != 0) return SystemError("set mode of " + fresh);
  }
  {
    ASSIGN_OR_RETURN(SqliteHandle db, OpenSqlite(fresh, vfs));
    const std::string sql =
        std::string("PRAGMA locking_mode=EXCLUSIVE; BEGIN;") + kSchemaVersion1 + "COMMIT;";
    RETURN_IF_ERROR(SqliteExec(db.get(), sql.c_str(), "create " + fresh));
    RETURN_IF_ERROR(SqliteExec(db.get(), "PRAGMA journal_mode=WAL;", "create " + fresh));
  }
  RETURN_IF_ERROR(SyncFile(fresh));
  if (rename(fresh.c_str(), path.c_str()) != 0) return SystemError("rename " + fresh);
  if (fsync(directory_fd) != 0) return SystemError("sync the directory of " + path);
  return OkStatus();
}

// Makes the file if that is allowed. What exists is not touched, except for its mode.
Status EnsureFile(int directory_fd, const std::string& path, const std::string& vfs) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return SystemError("stat " + path);
    struct stat log {};
    if (lstat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0) {
      return Error::NotApplied(Code::kDataLoss, path + " is missing, but its log " + path +
                                                    "-wal is there and may hold records; put the "
                                                    "file back, or move the log away");
    }
    return CreateDatabase(directory_fd, path, vfs);
  }
  if (!S_ISREG(info.st_mode)) {
    return Refused(Code::kFailedPrecondition, path, "is not a regular file");
  }
  if (info.st_size == 0) return Refused(Code::kDataLoss, path, "is empty");
  if ((info.st_mode & 07777) != 0600 && chmod(path.c_str(), 0600) != 0) {
    return SystemError("set mode of " + path);
  }
  return OkStatus();
}

// Returns the first column of the first row.
Result<std::string> QueryText(sqlite3* db, const std::string& sql, const std::string& what) {
  ASSIGN_OR_RETURN(SqliteStatement statement, SqlitePrepare(db, sql));
  const int rc = sqlite3_step(statement.get());
  if (rc != SQLITE_ROW) return SqliteError(db, rc, what, Outcome::kNotApplied);
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
  return std::string(text != nullptr ? text : "");
}

Status CheckOwner(sqlite3* db, const std::string& path) {
  auto id = QueryText(db, "PRAGMA application_id;", "read " + path);
  if (!id.ok() && id.error().code() == Code::kDataLoss) {
    return Refused(Code::kDataLoss, path, "cannot be read as a database: " + id.error().message());
  }
  if (!id.ok()) return id.error();
  if (*id != std::to_string(kApplicationId)) {
    return Refused(Code::kFailedPrecondition, path, "is a database of another program");
  }
  return OkStatus();
}

// Returns the schema version of the file, if this program knows it.
Result<int64_t> ReadVersion(sqlite3* db, const std::string& path, int64_t ours) {
  ASSIGN_OR_RETURN(const std::string text,
                   QueryText(db, "PRAGMA user_version;", "read the schema version of " + path));
  const int64_t found = std::stoll(text);
  if (found > ours || found < 1) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             path + " has schema version " + text +
                                 ", and this program knows versions 1 to " + std::to_string(ours) +
                                 "; start a version of volumed that knows version " + text);
  }
  return found;
}

Status Migrate(sqlite3* db, const std::string& path, int64_t found,
               const std::vector<std::string>& migrations) {
  for (; found <= static_cast<int64_t>(migrations.size()); ++found) {
    const std::string what = "migrate " + path + " to schema version " + std::to_string(found + 1);
    const std::string sql = "BEGIN IMMEDIATE;" + migrations[static_cast<size_t>(found - 1)] +
                            ";PRAGMA user_version=" + std::to_string(found + 1) + ";COMMIT;";
    if (Status done = SqliteExec(db, sql.c_str(), what); !done.ok()) {
      // This fails if there is no transaction any more, and then nothing has to be taken back.
      sqlite3_exec(db, "ROLLBACK;", nullptr, nullptr, nullptr);
      return done;
    }
  }
  return OkStatus();
}

Status CheckIntegrity(sqlite3* db, const std::string& path) {
  auto verdict = QueryText(db, "PRAGMA quick_check(1);", "check " + path);
  if (verdict.ok() && *verdict == "ok") return OkStatus();
  if (!verdict.ok() && verdict.error().code() != Code::kDataLoss) return verdict.error();
  return Refused(Code::kDataLoss, path,
                 "is damaged: " + (verdict.ok() ? *verdict : verdict.error().message()));
}

Status Configure(sqlite3* db, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string mode,
                   QueryText(db, "PRAGMA journal_mode=WAL;", "set the journal mode of " + path));
  if (mode != "wal") {
    return Error::NotApplied(Code::kUnavailable,
                             path + " cannot be written with a write-ahead log: " + mode);
  }
  // Checkpoints are made by the owner of the connection, when nobody waits.
  return SqliteExec(db,
                    "PRAGMA wal_autocheckpoint=0;"
                    "PRAGMA journal_size_limit=4194304;"
                    "PRAGMA temp_store=MEMORY;"
                    "PRAGMA trusted_schema=OFF;"
                    "PRAGMA cell_size_check=ON;",
                    "configure " + path);
}

}  // namespace

bool IsSqliteFull(sqlite3* db, int rc) {
  if ((rc & 0xff) == SQLITE_FULL) return true;
  if ((rc & 0xff) != SQLITE_IOERR || db == nullptr) return false;
  const int sys_errno = sqlite3_system_errno(db);
  return sys_errno == ENOSPC || sys_errno == EDQUOT;
}

Error SqliteError(sqlite3* db, int rc, std::string_view what, Outcome outcome) {
  int sys_errno = 0;
  if ((rc & 0xff) == SQLITE_FULL) sys_errno = ENOSPC;
  if (db != nullptr && ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN)) {
    sys_errno = sqlite3_system_errno(db);
    // SQLite does not keep the errno of every call, but this was a failure of the disk in any case.
    if (sys_errno == 0 && (rc & 0xff) == SQLITE_IOERR) sys_errno = EIO;
  }
  std::string message(what);
  message += ": ";
  message += sqlite3_errstr(rc);
  // The connection's own text says more, if it belongs to this failure.
  if (db != nullptr && sqlite3_extended_errcode(db) == rc &&
      std::strcmp(sqlite3_errmsg(db), sqlite3_errstr(rc)) != 0) {
    message += std::string(" (") + sqlite3_errmsg(db) + ")";
  }
  if (sys_errno != 0) {
    const char* text = ::strerrordesc_np(sys_errno);
    message +=
        " [" + ErrnoName(sys_errno) + (text != nullptr ? std::string(": ") + text : "") + "]";
  }
  return Error::FromParts(CodeOf(db, rc), outcome, sys_errno, std::move(message));
}

Status SqliteExec(sqlite3* db, const char* sql, std::string_view what) {
  const int rc = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return SqliteError(db, rc, what, Outcome::kNotApplied);
  return OkStatus();
}

Result<SqliteStatement> SqlitePrepare(sqlite3* db, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int rc = sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  SqliteStatement statement(raw);
  if (rc != SQLITE_OK) return SqliteError(db, rc, "prepare a statement", Outcome::kNotApplied);
  return statement;
}

void SqliteBind(sqlite3_stmt* statement, int index, const std::string& text) {
  sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::string SqliteColumn(sqlite3_stmt* row, int column) {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(row, column));
  const int size = sqlite3_column_bytes(row, column);
  return data == nullptr ? std::string() : std::string(data, static_cast<size_t>(size));
}

int SqliteRun(sqlite3_stmt* statement) {
  const int rc = sqlite3_step(statement);
  sqlite3_reset(statement);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

Result<RecordFile> OpenRecordFile(const RecordFileOptions& options) {
  RecordFile file;
  ASSIGN_OR_RETURN(file.lock, LockDirectory(options.directory));
  file.path = options.directory + "/" + kRecordFileName;
  RETURN_IF_ERROR(EnsureFile(file.lock.get(), file.path, options.vfs));
  ASSIGN_OR_RETURN(file.db, OpenSqlite(file.path, options.vfs));
  sqlite3* db = file.db.get();
  // Exclusive before the first read: a second line against another user (the sqlite3 shell does not
  // ask for our lock), and the log's index then lives in memory instead of a shared file.
  RETURN_IF_ERROR(SqliteExec(db, "PRAGMA locking_mode=EXCLUSIVE;", "lock " + file.path));
  RETURN_IF_ERROR(CheckOwner(db, file.path));
  const std::vector<std::string> migrations = MigrationsOf(options);
  const int64_t ours = 1 + static_cast<int64_t>(migrations.size());
  ASSIGN_OR_RETURN(const int64_t found, ReadVersion(db, file.path, ours));
  RETURN_IF_ERROR(Configure(db, file.path));
  RETURN_IF_ERROR(CheckIntegrity(db, file.path));
  RETURN_IF_ERROR(Migrate(db, file.path, found, migrations));
  return file;
}

}  // namespace volumed
