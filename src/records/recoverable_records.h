// RecoverableRecords: what a store of records says when its rows may be older than the world that
// they describe, because their tail was lost or they belong to another machine.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"

namespace volumed {

// A value: how far the rows can be trusted.
struct RecordsRecovery {
  bool active = false;
  std::string reason = {};              // for people; empty unless active
  int64_t since_unix_ms = 0;            // when it was noticed
  std::set<std::string> accepted = {};  // volumes that were accepted one by one
  uint64_t number = 0;                  // of the last synced transaction
  std::string not_compared = {};        // which facts of the machine are not known; "" when all are
  std::string number_problem = {};      // why the number's file cannot be written; "" when it can
  bool has_damage = false;              // there are rows that cannot be read, or that are missing
  // Keys of rows that cannot be read, and that only a word about their volume gives up: the
  // volume's name, or one that ends with "/" and it.
  std::set<std::string> kept_damage = {};
  friend bool operator==(const RecordsRecovery&, const RecordsRecovery&) = default;
};

// Threads: any.
class RecoverableRecords {
 public:
  virtual ~RecoverableRecords() = default;
  // Blocks: never for long.
  virtual RecordsRecovery recovery() const = 0;
  // The administrator's word that the records are right: of everything, which ends the recovery but
  // for rows that are kept, or of one volume, with these. Success when there is no recovery.
  // Blocks: until that is synced. Errors: those of RecordStore.
  virtual Status AcceptRecords(const std::optional<std::string>& volume) = 0;
};

}  // namespace volumed
