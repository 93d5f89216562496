// The SQLite file of the record store: making it, opening it, refusing what must not be touched.
// It knows the schema and nothing of what is stored.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

struct SqliteCloser {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteHandle = std::unique_ptr<sqlite3, SqliteCloser>;
using SqliteStatement = std::unique_ptr<sqlite3_stmt, SqliteCloser>;

// The error of the last call on `db`, which answered `rc`. `what` names the attempt and its object.
// ResourceExhausted: no space; DataLoss: damaged, or no database; FailedPrecondition: in use;
// InvalidArgument: too big; Internal: a mistake of this program, or a constraint; else Unavailable.
// `db` may be null.
Error SqliteError(sqlite3* db, int rc, std::string_view what, Outcome outcome);
// Whether there is no space or no quota left, as opposed to any other failure of the disk.
bool IsSqliteFull(sqlite3* db, int rc);

// Errors of both: SqliteError(), not applied.
Status SqliteExec(sqlite3* db, const char* sql, std::string_view what);
Result<SqliteStatement> SqlitePrepare(sqlite3* db, std::string_view sql);
// `text` outlives the next run of the statement.
void SqliteBind(sqlite3_stmt* statement, int index, const std::string& text);
// The text or the bytes in a column; "" for NULL.
std::string SqliteColumn(sqlite3_stmt* row, int column);
// Runs a statement that yields no rows, and makes it ready for its next use. Answers SQLITE_OK or
// what SQLite answers.
int SqliteRun(sqlite3_stmt* statement);

struct RecordFileOptions {
  std::string directory;
  // For tests: migrations[i] is the SQL that takes the schema from version i + 3 to i + 4.
  std::vector<std::string> migrations;
  std::string vfs;  // empty: SQLite's default; tests give one that fails
};

// The open database, and the lock of its directory, which others are kept out by.
struct RecordFile {
  Descriptor lock;  // before `db`, so that it is released last
  std::string path;
  SqliteHandle db;
};

inline constexpr const char* kRecordFileName = "records.db";

// Opens <directory>/records.db, making directory (0700) and file (0600) if they are missing, and
// takes both for this process alone until the answer is destroyed. Migrates an older schema.
// Errors, not applied, no record harmed: FailedPrecondition for a file of another program or of a
// newer version, or one that another process uses; DataLoss for one that is empty, damaged, no
// database, or gone while its log is still there; Unavailable or ResourceExhausted for the disk. An
// older schema may have been migrated in part, version by version.
Result<RecordFile> OpenRecordFile(const RecordFileOptions& options);

}  // namespace volumed
