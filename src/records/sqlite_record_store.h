// SqliteRecordStore: the records of a node in one SQLite file.
//
//   <directory>/            0700, locked while the store is open
//     records.db            0600, write-ahead log beside it while the store is open
//     records.ballast       space that is given up when the disk is full
//   <directory>.number      the number of the last synced transaction (records/number_file.h)
//
// One thread owns the connection. Calls that wait at the same time share a transaction, so that
// many callers pay for one commit, and for one sync.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "records/record_numbering.h"
#include "records/record_store.h"
#include "records/recoverable_records.h"

namespace volumed {

class RecordDatabase;

struct SqliteRecordStoreOptions {
  std::string directory;
  int64_t ballast_bytes = 1 << 20;  // 0: none
  RecordsPlace place;
  // A path that only an agent with records leaves, "" if there is none: a store that is new beside
  // it has lost its records.
  std::string sign_of_use;
  int64_t now_unix_ms = 0;  // of a recovery that the start notices
  // Kinds of which a damaged row counts as never written from the start after the administrator's
  // word on; one of any other kind has to be repaired.
  std::set<std::string> expendable_kinds;
  // Kinds whose rows repeat what somebody says anew: one that cannot be read is written over, and
  // is kept aside.
  std::set<std::string> renewed_kinds;
  // Kinds of which teardown writes new rows: these have the ballast, too. "kind/first" are the rows
  // of a kind whose keys begin with "first/".
  std::set<std::string> teardown_kinds;
  // How long nobody may have written anything until the log is written back.
  Duration idle = std::chrono::seconds(5);
  // For tests: SQL that takes the schema from version i + 3 to i + 4, and the name of a SQLite VFS.
  std::vector<std::string> migrations;
  std::string vfs;
};

// Threads: any, but for the destructor. Blocks: as RecordStore, unless a method says otherwise.
class SqliteRecordStore final : public RecordStore, public RecoverableRecords {
 public:
  // Errors, nothing on disk harmed: FailedPrecondition when another process uses the records, when
  // the file is not ours, or when its schema is newer than this program (both versions are named);
  // DataLoss when it is damaged, empty or no database; Unavailable or ResourceExhausted.
  static Result<std::unique_ptr<SqliteRecordStore>> Open(const SqliteRecordStoreOptions& options);

  // REQUIRES: nobody is in, or about to make, a call.
  ~SqliteRecordStore() override;

  // Beside the errors of RecordStore: FailedPrecondition for a key that is quarantined, but for one
  // of a kind that is renewed;
  // ResourceExhausted for a new row while on ballast, but for those of teardown; Unavailable
  // *maybe applied* in one case:
  // the disk failed in the middle of the commit and of its repair, and what the next start will
  // find is not known. No other change is accepted until the repair succeeds.
  Status Put(const Record& record, Durability durability) override;
  // Works for a quarantined key too, and leaves what is in the quarantine.
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override;
  std::vector<Status> Write(const std::vector<RowChange>& changes, Durability durability) override;
  // `quarantined` holds the rows set aside now and in earlier runs. Never deletes one.
  Result<LoadedRecords> Load(const std::string& kind) override;
  Status QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) override;
  // As of the last call that was answered. Blocks: never; recovery() and on_ballast() neither.
  RecordStoreStats stats() const override EXCLUDES(mu_);

  // The disk is full, or was and has little room: changes of existing rows and removals still work,
  // new rows are refused.
  bool on_ballast() const EXCLUDES(mu_);

  // Whether the disk has room for what is not teardown. Room that has come back is noticed, here
  // and by itself within seconds. Errors, not applied: ResourceExhausted naming the disk, while on
  // ballast; Unavailable when closed. Blocks: for a look at the disk, while on ballast.
  Status CheckRoom() EXCLUDES(mu_);

  RecordsRecovery recovery() const override EXCLUDES(mu_);
  // Beside the errors of RecoverableRecords: InvalidArgument, not applied, for a volume's name with
  // a newline.
  Status AcceptRecords(const std::optional<std::string>& volume) override EXCLUDES(mu_);

  // Finishes what waits, and closes the file; later calls fail with Unavailable, not applied.
  // Blocks: until the thread has ended.
  void Close() EXCLUDES(mu_);

 private:
  struct Request;

  SqliteRecordStore(std::unique_ptr<RecordDatabase> database, Duration idle);
  // Hands the request to the thread and waits for the answer. False: the store is closed.
  bool Submit(Request& request) EXCLUDES(mu_);
  void Run() EXCLUDES(mu_);
  void WaitForWork() REQUIRES(mu_);
  void Serve(const std::vector<Request*>& batch) EXCLUDES(mu_);
  void TakeState() REQUIRES(mu_);
  void ServeChanges(const std::vector<Request*>& requests, Durability durability) EXCLUDES(mu_);
  void Finish(const std::vector<Request*>& requests) EXCLUDES(mu_);

  const Duration idle_;
  std::unique_ptr<RecordDatabase> database_;  // of the thread alone, once it runs

  mutable Mutex mu_;
  CondVar work_;
  std::vector<Request*> queue_ GUARDED_BY(mu_);
  bool closing_ GUARDED_BY(mu_) = false;
  bool on_ballast_ GUARDED_BY(mu_) = false;
  bool has_log_ GUARDED_BY(mu_) = false;
  RecordsRecovery recovery_ GUARDED_BY(mu_);
  RecordStoreStats stats_ GUARDED_BY(mu_);

  Mutex close_mu_;  // one Close() at a time
  std::thread thread_ GUARDED_BY(close_mu_);
};

}  // namespace volumed
