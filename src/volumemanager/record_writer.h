// RecordWriter: writes the volume manager's own rows (pods, holds) off the control thread, in the
// order in which they were asked for: two writes of one row never overtake each other. The rows of
// a thousand pods that come at once are written together, at the price of a few syncs: rows that
// come while others are being written wait, and are then written together.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "records/record_store.h"

namespace volumed {

// Threads: the control thread; `done` (which may be empty) is called there, once, and never from
// within Put or Remove. Blocks: never. Errors: those of RecordStore, through `done`; a write that
// has failed is not tried again. Rows that are not written yet when this object is destroyed are
// never written.
class RecordWriter {
 public:
  using Done = std::function<void(Status)>;

  // Scheduler and store outlive this object and the tasks that it has started.
  RecordWriter(Scheduler& scheduler, RecordStore& store) : scheduler_(scheduler), store_(store) {}
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // The record is taken as it is now; a later Put of the same row is written after it.
  void Put(Record record, Durability durability, Done done);
  // A missing row is success.
  void Remove(const std::string& kind, const std::string& key, Durability durability, Done done);

  // Whether a write of this row is under way. That holds until the `done` of its last write is
  // about to be called.
  bool Busy(const std::string& kind, const std::string& key) const {
    return queues_.contains({kind, key});
  }

 private:
  using RowId = std::pair<std::string, std::string>;
  struct Write {
    RowChange change;
    Durability durability;
    Done done;
  };

  void Enqueue(const RowId& row, Write write);
  // Starts the first writes of rows that wait, as long as threads are left for them.
  void StartWrites();
  // Starts the first write of each of these rows, all together.
  void Start(std::vector<RowId> rows);
  void Written(const RowId& row, const Status& written);

  Scheduler& scheduler_;
  RecordStore& store_;
  std::map<RowId, std::deque<Write>> queues_;
  std::deque<RowId> waiting_;  // rows of queues_ without a write under way
  size_t running_ = 0;         // batches
  AliveGuard alive_;
};

}  // namespace volumed
