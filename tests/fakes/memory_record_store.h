// MemoryRecordStore: a RecordStore in memory that outlives the agents of a test, so that a new
// agent finds what the one before it wrote, and that fails, ends the agent or loses power on order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "records/record_store.h"
#include "records/recoverable_records.h"

namespace volumed {

// Threads: any. Blocks: never.
// A "write" is a Put or a Remove; writes are counted from 1.
class MemoryRecordStore final : public RecordStore, public RecoverableRecords {
 public:
  enum class CrashPoint {
    kBefore,  // the write is not made
    kAfter,   // the write is made, and its caller never hears of it
  };

  MemoryRecordStore() = default;

  Status Put(const Record& record, Durability durability) override;
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override;
  Result<LoadedRecords> Load(const std::string& kind) override;
  Status QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) override EXCLUDES(mu_);
  RecordStoreStats stats() const override;

  RecordsRecovery recovery() const override EXCLUDES(mu_);
  Status AcceptRecords(const std::optional<std::string>& volume) override EXCLUDES(mu_);

  // The next `count` writes, of rows of this kind if one is named, fail with `error` and change
  // nothing.
  void FailNext(Error error, int count = 1, const std::string& kind = "") EXCLUDES(mu_);
  // The next Load fails with `error`.
  void FailNextLoad(Error error) EXCLUDES(mu_);

  // Write number `n`, counted from the making of the store or the last Revive(), throws
  // SimulatedCrash. From then on the store is inert: every call fails with Unavailable and changes
  // nothing, so that destructors of the dying agent cannot write.
  void CrashAtCall(uint64_t n, CrashPoint point) EXCLUDES(mu_);
  bool crashed() const EXCLUDES(mu_);
  // Inert without a throw: for a crash that another fake ends the agent with.
  void Die() EXCLUDES(mu_);
  // The start of a new agent: no faults, no crash planned, writes counted from 1 again; and if the
  // number of the rows is behind that of the file, they are in recovery from now on.
  void Revive() EXCLUDES(mu_);

  // All rows go back to what they were at the last kPowerLoss write of any, and those are gone that
  // were never written so themselves. SQLite would keep those that were written before it, and
  // often more: whoever can do without a row is to be tried without it.
  void PowerLoss() EXCLUDES(mu_);
  // Sets a row aside, as the real store does with one that it cannot read.
  void Corrupt(const std::string& kind, const std::string& key, std::string reason) EXCLUDES(mu_);
  // A row of this kind that is set aside is written over, as the real store does with a kind that
  // is renewed.
  void RenewKind(std::string kind) EXCLUDES(mu_);
  // The same rows; no faults, no counts.
  std::unique_ptr<MemoryRecordStore> Clone() const EXCLUDES(mu_);

  // From now on each write leaves a copy of what the store then holds. The first copy is of now.
  void KeepHistory() EXCLUDES(mu_);
  size_t history() const EXCLUDES(mu_);
  // The rows, and the number in the database, as copy `state` has them; with `number_too` the file
  // of the number likewise, as an image of the whole disk would bring it back.
  void PutBack(size_t state, bool number_too) EXCLUDES(mu_);

  // Writes since the making of the store or the last Revive().
  uint64_t calls() const EXCLUDES(mu_);
  std::optional<Record> Find(const std::string& kind, const std::string& key) const EXCLUDES(mu_);
  std::vector<Record> All() const EXCLUDES(mu_);

 private:
  using RowId = std::pair<std::string, std::string>;
  struct Crash {
    uint64_t call;
    CrashPoint point;
  };

  // Rows are shared between copies.
  using Rows = std::map<RowId, std::shared_ptr<const Record>>;
  struct State {
    Rows rows;
    Rows synced;  // what a power loss leaves
    std::set<RowId> unsynced;
    RecordsRecovery recovery;
  };

  // Common to both kinds of write. An error: the write is refused. May throw SimulatedCrash.
  Status BeginWrite(const RowId& id) REQUIRES(mu_);
  void EndWrite(const RowId& id, Durability durability) REQUIRES(mu_);

  mutable Mutex mu_;
  State state_ GUARDED_BY(mu_);
  uint64_t file_number_ GUARDED_BY(mu_) = 0;
  bool keeps_history_ GUARDED_BY(mu_) = false;
  std::vector<State> history_ GUARDED_BY(mu_);
  std::map<RowId, std::string> quarantine_ GUARDED_BY(mu_);
  std::string renewed_kind_ GUARDED_BY(mu_);  // "": none
  RecordStoreStats stats_ GUARDED_BY(mu_);
  uint64_t calls_ GUARDED_BY(mu_) = 0;
  bool inert_ GUARDED_BY(mu_) = false;
  std::optional<Crash> crash_ GUARDED_BY(mu_);
  std::optional<Error> write_error_ GUARDED_BY(mu_);
  int write_errors_left_ GUARDED_BY(mu_) = 0;
  std::string failing_kind_ GUARDED_BY(mu_);  // "": all of them
  std::optional<Error> load_error_ GUARDED_BY(mu_);
};

}  // namespace volumed
