// RecordDatabase: rows and what guards them, on one SQLite connection: checksums, quarantine,
// durability, ballast. The thread that uses it, and the queue before it, belong to
// SqliteRecordStore.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "records/ballast.h"
#include "records/record_file.h"
#include "records/record_numbering.h"
#include "records/record_store.h"
#include "records/record_tally.h"

namespace volumed {

// One Put or Remove on its way to the disk. `record` is the caller's and outlives the change; a
// removal uses its kind and key only.
struct RecordChange {
  const Record* record = nullptr;
  bool remove = false;
  Durability durability = Durability::kProcess;
  Status status;  // the answer
};

// See SqliteRecordStoreOptions, of which these are.
struct RecordDatabaseOptions {
  RecordFileOptions file;
  int64_t ballast_bytes = 0;
  RecordsPlace place;
  std::string sign_of_use;
  int64_t now_unix_ms = 0;
  std::set<std::string> expendable_kinds;
  std::set<std::string> renewed_kinds;
  std::set<std::string> teardown_kinds;
};

// Threads: one at a time. Blocks: on the disk.
class RecordDatabase {
 public:
  // Opens the file, compares the numbers and the tally, and reads every row once, so that a bad one
  // is known before anybody asks for its kind. Errors: those of OpenRecordFile, of the ballast and
  // of the disk.
  static Result<std::unique_ptr<RecordDatabase>> Open(const RecordDatabaseOptions& options);
  // Writes the log back into the file; nothing is lost if that fails.
  ~RecordDatabase() = default;

  // Makes the changes, all of the same durability, in one transaction, and sets the status of each.
  // A change that is refused or fails takes no other one with it, unless it is not known what the
  // disk has of the transaction: then all of them are maybe applied.
  void Apply(const std::vector<RecordChange*>& changes, Durability durability);

  // The rows of one kind. Unreadable ones are set aside. Errors, not applied: those of SqliteError.
  Result<LoadedRecords> Load(const std::string& kind);

  // These rows count as unreadable from now on, and stay where they are.
  void QuarantineInPlace(const std::vector<QuarantinedRecord>& rows);

  // Writes the log back into the file when it has grown: early if nobody waits, late otherwise.
  void CheckpointIfDue(bool nobody_waits);

  // Whether there is a log that a checkpoint would empty: a change was made since the last idle
  // moment.
  bool has_log() const { return has_log_; }
  // Writes the log back and cuts it off, so that an idle agent has none that could be damaged. The
  // log keeps what could not be written back, until the next change.
  void CheckpointWhenIdle();

  // Accepts everything, which ends the recovery, or the records of one volume. Errors: those of a
  // change.
  Status AcceptRecords(const std::optional<std::string>& volume);
  RecordsRecovery recovery() const;

  // While on ballast: takes the ballast back if there is room again.
  void NoticeRoom();
  // The same; ResourceExhausted, not applied and naming the disk, while there is none.
  Status CheckRoom();

  bool on_ballast() const { return ballast_.spent(); }
  uint64_t commits() const { return commits_; }
  uint64_t quarantined() const { return quarantine_.size(); }

 private:
  using RowId = std::pair<std::string, std::string>;  // kind, key
  struct Statements {
    SqliteStatement begin, commit, rollback, put, remove, exists, set_aside, give_up;
  };
  // What became of a transaction.
  struct Attempt {
    int rc = 0;
    std::optional<Error> error;
  };

  RecordDatabase(RecordFile file, Ballast ballast, RecordNumbering numbering,
                 const RecordDatabaseOptions& options);
  Status Prepare();
  Status LoadQuarantine();
  Status CompareTally();
  // What cannot be read may have said that a disk is somebody's: irreversible steps wait.
  void DoubtRecords(const std::vector<QuarantinedRecord>& rows);
  // Rows that are set aside count as never written from the next start on: those of expendable
  // kinds, or those of one volume.
  Status AcceptLosses(const std::optional<std::string>& volume);
  bool IsKept(const QuarantinedRecord& row) const;
  // The quarantine keeps these rows as given up. Errors: those of a change.
  Status GiveUp(const std::vector<QuarantinedRecord>& rows);
  // Makes room for a row of a kind that is renewed; FailedPrecondition, not applied, for another.
  Status Renew(const Record& record);

  Error Full(const std::string& consequence) const;
  void ApplyOne(RecordChange& change);
  Attempt TryCommit(const std::vector<RecordChange*>& changes);
  // A synced transaction of the number alone.
  Attempt CommitNumber();
  Attempt FailedAttempt(int rc, bool in_commit);
  // An error: this change is not even tried.
  Status Admit(const RecordChange& change);
  int Write(const RecordChange& change);
  // Whether it may have the ballast.
  bool IsOfTeardown(const Record& record) const;
  // Nothing if there is no such row.
  std::optional<int64_t> ChecksumOnRecord(const std::string& kind, const std::string& key);
  // The same of a row that is counted.
  std::optional<int64_t> CountedChecksum(const std::string& kind, const std::string& key);
  Status SetSynchronous(Durability durability);
  Status RepairLog();
  int Checkpoint(int mode);

  // The rows that `select` yields; without a kind, those of every kind are only checked.
  Result<LoadedRecords> Scan(sqlite3_stmt* select);
  void SetAside(const std::vector<QuarantinedRecord>& bad);
  // Moves the rows into the quarantine, in one transaction.
  Status MoveAside(const std::vector<QuarantinedRecord>& rows);

  RecordFile file_;
  Ballast ballast_;
  RecordNumbering numbering_;
  RecordTally tally_;
  const std::set<std::string> expendable_kinds_;
  const std::set<std::string> renewed_kinds_;
  const std::set<std::string> teardown_kinds_;
  Statements statements_;
  std::multimap<RowId, std::string> quarantine_;  // reasons
  std::set<RowId> in_place_;                      // those of them that are no damage of the disk
  // Damaged rows that could not be set aside at the start, and that nobody has counted.
  std::set<RowId> uncounted_;
  std::set<std::string> given_up_;         // volumes, since the start
  std::optional<Durability> synchronous_;  // what the connection is set to
  int log_pages_ = 0;
  bool log_uncertain_ = false;
  bool has_log_ = true;  // the agent before this one may have left one
  uint64_t commits_ = 0;
};

}  // namespace volumed
