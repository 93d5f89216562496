#include "volumemanager/record_writer.h"

namespace volumed {

void RecordWriter::Put(Record record, Durability durability, Done done) {
  const RowId row{record.kind, record.key};
  Enqueue(row, {[record = std::move(record), durability](RecordStore& store) {
                  return store.Put(record, durability);
                },
                std::move(done)});
}

void RecordWriter::Remove(const std::string& kind, const std::string& key, Durability durability,
                          Done done) {
  Enqueue({kind, key}, {[kind, key, durability](RecordStore& store) {
                          return store.Remove(kind, key, durability);
                        },
                        std::move(done)});
}

void RecordWriter::Enqueue(const RowId& row, Write write) {
  std::deque<Write>& queue = queues_[row];
  queue.push_back(std::move(write));
  if (queue.size() == 1) StartNext(row);
}

void RecordWriter::StartNext(const RowId& row) {
  scheduler_.RunBlocking([this, row, run = queues_.at(row).front().run,
                          alive = std::weak_ptr<bool>(alive_), &store = store_,
                          &scheduler = scheduler_] {
    Status written = run(store);
    scheduler.Post([this, row, alive, written] {
      if (alive.expired()) return;
      const auto queue = queues_.find(row);
      const Done done = std::move(queue->second.front().done);
      queue->second.pop_front();
      if (queue->second.empty()) {
        queues_.erase(queue);
      } else {
        StartNext(row);
      }
      if (done) done(written);
    });
  });
}

}  // namespace volumed
