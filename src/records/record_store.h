// RecordStore: what the agent must not forget, as versioned rows. It knows no meaning: each owner
// encodes its own message.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

// What a record has to survive.
enum class Durability {
  kProcess,    // the end of the agent: a reboot voids it anyway (mounts)
  kPowerLoss,  // a power cut: synced before the call returns, with each write that has returned
};

// Identified by (kind, key). `version` is of the owner's message. Never holds a secret.
struct Record {
  std::string kind;
  std::string key;
  uint32_t version = 1;
  std::string bytes;
  friend bool operator==(const Record&, const Record&) = default;
};

// A row whose checksum or shape is wrong, or which its owner cannot decode: counted, and its key
// left alone by everyone.
struct QuarantinedRecord {
  std::string kind;
  std::string key;
  std::string reason;
  // The row's checksum, which the key is a part of, is right. Otherwise a bit of the key may have
  // turned, and the row be that of another key.
  bool key_is_right = false;
};

// Of this kind no row is ever written. One that is set aside says that rows of unknown kinds and
// keys are gone.
inline constexpr const char* kLostRowsRecordKind = "lost-rows";
inline constexpr const char* kLostRowsKey = "unknown";

// A row that is written, or removed: then the bytes mean nothing.
struct RowChange {
  Record record;
  bool remove = false;
};

// What there is of one kind.
struct LoadedRecords {
  std::vector<Record> records;  // in the order of their keys
  std::vector<QuarantinedRecord> quarantined;
};

// Totals since the store was opened, but for `quarantined`, which is of now. A write of several
// rows counts each.
struct RecordStoreStats {
  uint64_t puts = 0;
  uint64_t removes = 0;
  uint64_t commits = 0;
  uint64_t failures = 0;
  uint64_t quarantined = 0;
};

// Threads: any. Blocks: until the row is as durable as asked; never call it on the control thread.
// Errors: InvalidArgument without a kind or a key; Unavailable or ResourceExhausted (full disk).
// They are not applied, so that the row is as it was before, unless a store says otherwise of one.
class RecordStore {
 public:
  virtual ~RecordStore() = default;
  virtual Status Put(const Record& record, Durability durability) = 0;
  // A missing row is success.
  virtual Status Remove(const std::string& kind, const std::string& key, Durability durability) = 0;
  // Several rows at once, at the price of one: an answer for each, in this order. One that is
  // refused stops no other. The end of the agent, or a power cut, may come between any two.
  virtual std::vector<Status> Write(const std::vector<RowChange>& changes, Durability durability) {
    std::vector<Status> answers;
    answers.reserve(changes.size());
    for (const RowChange& change : changes) {
      const Record& record = change.record;
      answers.push_back(change.remove ? Remove(record.kind, record.key, durability)
                                      : Put(record, durability));
    }
    return answers;
  }
  // Every row of the kind: those that can be read, and those that are quarantined.
  virtual Result<LoadedRecords> Load(const std::string& kind) = 0;
  // Rows that are whole, and that their owner cannot decode: they may be of a newer program. Until
  // the store is opened anew they count as those that the store cannot read, and no write changes
  // them; they stay where they are, for that program, until a person gives them up. Whoever decodes
  // rows calls this (operation/load_rows.h).
  virtual Status QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) = 0;
  virtual RecordStoreStats stats() const = 0;
};

}  // namespace volumed
