// NumberFile: the number of the last synced transaction, beside the database and not in it, so that
// a database that lost its tail is noticed.
//
//   slot 0 at byte 0, slot 1 at byte 4096: "volumed-records 1 <records' id> <number> <crc32c>\n"
//
// The slots are written in turn, so that one that is torn leaves the other. The file is made whole
// at once and only overwritten after that, which takes no space. A write goes to the page cache,
// which outlives the process; it is synced with the database's checkpoints alone. After a power cut
// it may therefore be older than the database, which means nothing; it is never newer, for it is
// written after the database was synced.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// How many synced transactions a database has had.
struct RecordsNumber {
  std::string records_id;  // of the database that it counts
  uint64_t number = 0;
  friend bool operator==(const RecordsNumber&, const RecordsNumber&) = default;
};

// Threads: one at a time. Blocks: on the disk.
class NumberFile {
 public:
  enum class State {
    kMissing,
    kDamaged,  // it is there, and no slot of it is whole
    kWhole,
  };

  explicit NumberFile(std::string path) : path_(std::move(path)) {}

  // Looks at what is there. Errors: of the disk; not applied.
  Status Open();
  State state() const { return state_; }
  const RecordsNumber& found() const { return found_; }  // of Open or Make, if whole

  // Makes the file, in place of one that is there, and syncs it. Errors: of the disk. After an
  // error the file that was there stays, unless only the directory could not be synced.
  Status Make(const RecordsNumber& number);
  // Overwrites the slot whose turn it is. REQUIRES: Open found the file whole, or Make succeeded.
  // Errors: of the disk; maybe applied, which the other slot makes good.
  Status Write(const RecordsNumber& number);
  // Syncs the file; without one it does nothing. Errors: of the disk; not applied.
  Status Sync();

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  Descriptor fd_;
  State state_ = State::kMissing;
  RecordsNumber found_;
};

}  // namespace volumed
