// RecordWriter: the volume manager's own rows (pods, holds), written off the control thread, and in
// the order asked for: two writes of one row never overtake each other.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/scheduler.h"
#include "records/record_store.h"

namespace volumed {

// Threads: the control thread; `done` (which may be empty) is called there. Blocks: never.
// Errors: those of RecordStore, through `done`. What is not yet written when this is destroyed is
// not written any more.
class RecordWriter {
 public:
  using Done = std::function<void(Status)>;

  // Both outlive this, and the tasks that it has started.
  RecordWriter(Scheduler& scheduler, RecordStore& store) : scheduler_(scheduler), store_(store) {}
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void Put(Record record, Durability durability, Done done);
  void Remove(const std::string& kind, const std::string& key, Durability durability, Done done);

  // A write of this row is under way.
  bool Busy(const std::string& kind, const std::string& key) const {
    return queues_.contains({kind, key});
  }

 private:
  using RowId = std::pair<std::string, std::string>;
  struct Write {
    std::function<Status(RecordStore&)> run;
    Done done;
  };

  void Enqueue(const RowId& row, Write write);
  void StartNext(const RowId& row);

  Scheduler& scheduler_;
  RecordStore& store_;
  std::map<RowId, std::deque<Write>> queues_;  // the first of each runs
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace volumed
