// RecordTally: how many rows a record database has and the sum of their checksums, in a row of its
// own that each transaction writes with them.
//
// A row's checksum tells that it was damaged, and nothing tells of one that is not there: a page
// that a disk wrote to the wrong place, or never, takes its rows with it, and the database is read
// without an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "records/record_file.h"

namespace volumed {

// Threads: one at a time. Blocks: on the disk. What answers an int answers SQLite's code.
class RecordTally {
 public:
  Status Prepare(sqlite3* db);

  // At the start, for each row that is there. One that is damaged is no part of the sum.
  void Found(int64_t checksum);
  void FoundDamaged() { ++damaged_; }
  // When all rows were read. What is wrong with them, for people; "" if they are those that were
  // written, or if nobody has counted them yet. From now on what was found is what is counted.
  // Errors: of the disk, not applied.
  Result<std::string> Compare();
  bool compared() const { return compared_; }
  // There are rows, and no count of them is on record.
  bool is_due() const { return compared_ && counted_.rows > 0 && !recorded_; }

  // In a transaction, before the change of a row: what it was, and what it will be (nothing: it
  // goes).
  void Change(std::optional<int64_t> before, std::optional<int64_t> after);
  // Before the commit; writes nothing if nothing has changed, or before Compare.
  int Write();
  // The transaction is in the database, or it failed. Before Compare() no transaction changes the
  // count: what was found stays found.
  void Committed();
  void Unstage() {
    if (compared_) staged_ = counted_;
  }

 private:
  struct Count {
    int64_t rows = 0;
    uint64_t sum = 0;
    friend bool operator==(const Count&, const Count&) = default;
  };

  sqlite3* db_ = nullptr;
  SqliteStatement put_;
  bool compared_ = false;
  int64_t damaged_ = 0;
  Count counted_;                  // of what is there
  Count staged_;                   // with the open transaction
  std::optional<Count> recorded_;  // in the database
};

}  // namespace volumed
