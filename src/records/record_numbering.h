// RecordNumbering: numbers the synced transactions of a record database, once in the database and
// once in a file beside it, and says from both whether the records may be older than the world.
//
// SQLite drops the frames of its log behind a damaged one without a word, and a database that was
// put back from a copy looks like any other. Both then have a lower number than the file. The
// number of a database alone, which is ahead of the file after a power cut, means nothing.
// Source: sqlite.org/walformat.html#recovery.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "records/number_file.h"
#include "records/record_file.h"
#include "records/recoverable_records.h"

namespace volumed {

// Behind the name of the records' directory: a copy of the directory that is put back does not
// bring the file along, and is noticed.
inline constexpr const char* kNumberFileSuffix = ".number";

// What tells a machine and its root from another one. "": not known, and then not compared.
struct RecordsPlace {
  std::string machine_id;
  std::string root_uuid;  // of the filesystem
  // By what the records' directory is known, which no copy of it has.
  std::string directory = {};
  friend bool operator==(const RecordsPlace&, const RecordsPlace&) = default;
};

// Threads: one at a time. Blocks: on the disk.
class RecordNumbering {
 public:
  // `sign_of_use`: a path that only an agent with records leaves, "" if there is none.
  // `now_unix_ms`: when a recovery that is noticed now began.
  RecordNumbering(std::string file_path, RecordsPlace place, std::string sign_of_use,
                  int64_t now_unix_ms);

  // Compares what the database and the file say. Writes nothing. Errors: of the disk, not applied.
  Status Load(sqlite3* db, const std::string& database_path);
  // Whether a transaction of its own is to follow Load(): there is something to put on record.
  bool is_due() const { return due_; }

  // Puts the next number into the transaction that is open; returns SQLite's answer. The first
  // number of all is not written if its file cannot be made: a number without its file would read
  // as a loss at the next start.
  int WriteNext();
  // That transaction is synced: the file follows.
  void Committed();
  // That transaction failed.
  void Unstage() { staged_ = false; }
  // Takes back what Accept() has changed and no transaction has written.
  void Discard();

  // The records lack something that they had: a recovery begins, or has one reason more. What
  // cannot be put on record now is with the next transaction, and holds in this process.
  void Doubt(const std::string& reason);
  // The next transaction says that everything, or this volume, is accepted.
  void Accept(const std::optional<std::string>& volume);
  // Syncs the file.
  void Sync();

  const RecordsRecovery& recovery() const { return recovery_; }

 private:
  // The row, but for its checksum.
  struct Row {
    std::string records_id;
    uint64_t number = 0;
    RecordsPlace place;
    std::string reason;  // of the recovery; empty: there is none
    int64_t since_unix_ms = 0;
    std::string accepted;  // names of volumes, a line each
  };

  static int64_t ChecksumOf(const Row& row);
  Result<std::optional<Row>> ReadRow(sqlite3* db, const std::string& database_path);
  // Empty: the records are those that the file counts, of this machine. `empty`: there are none.
  std::string WhyOlder(const std::optional<Row>& row, bool empty) const;
  std::string WhyElsewhere(const RecordsPlace& recorded) const;
  void Show();

  NumberFile file_;
  const RecordsPlace place_;
  const std::string sign_of_use_;
  const int64_t now_unix_ms_;
  SqliteStatement put_;
  bool row_damaged_ = false;
  bool has_row_ = false;
  bool due_ = false;
  bool staged_ = false;  // the open transaction has the next number
  Row row_;              // as of the last transaction
  Row next_;
  RecordsRecovery recovery_;
};

}  // namespace volumed
