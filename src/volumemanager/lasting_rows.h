// LastingRows: writes rows of one kind, each again until that succeeds, always with the content
// that was asked for last.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "volumemanager/record_writer.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Errors: logged, and tried again with back-off. What
// is not written when this object is destroyed is never written.
class LastingRows {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    RecordWriter& records;
    Logger& log;
  };

  // `durable` is called with a row's key once the last content that was asked for is on record. It
  // is also called once a row is removed; always on the control thread, and never from within Put
  // or Remove.
  LastingRows(Parts parts, const char* kind, Durability durability,
              std::function<void(const std::string& key)> durable);

  // `failed` is called each time that a row could not be written; the row is then tried again. It
  // is set once, before the first row.
  void OnFailure(std::function<void(const std::string& key, const Error&)> failed) {
    failed_ = std::move(failed);
  }

  // Both replace what was asked for this key before, even if that is being written or waits for its
  // next try. REQUIRES: the row is of this object's kind.
  void Put(Record row);
  void Remove(const std::string& key);

  // Whether the store has, or no longer has, what was asked for last; true also for a key of which
  // nothing was asked.
  bool IsDurable(const std::string& key) const { return !pending_.contains(key); }
  bool AllDurable() const { return pending_.empty(); }

 private:
  struct Pending {
    std::optional<Record> row;  // nullopt: the row is to be removed
    uint64_t version = 0;
    bool writing = false;
  };

  void Change(const std::string& key, std::optional<Record> row);
  void Write(const std::string& key);
  void Written(const std::string& key, uint64_t version, const Status& status);

  const Parts parts_;
  const char* const kind_;
  const Durability durability_;
  const std::function<void(const std::string&)> durable_;
  std::function<void(const std::string&, const Error&)> failed_;
  Backoff backoff_;
  std::map<std::string, Pending> pending_;
  uint64_t next_version_ = 1;
  AliveGuard alive_;
};

}  // namespace volumed
