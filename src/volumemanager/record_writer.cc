#include "volumemanager/record_writer.h"

namespace volumed {
namespace {

// Writes that run beside each other have a thread each, and share the sync of one commit.
constexpr size_t kMostAtOnce = 32;

}  // namespace

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
  if (queue.size() > 1) return;
  waiting_.push_back(row);
  StartWrites();
}

void RecordWriter::StartWrites() {
  while (running_ < kMostAtOnce && !waiting_.empty()) {
    const RowId row = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    Start(row);
  }
}

void RecordWriter::Start(const RowId& row) {
  scheduler_.RunBlocking([this, row, run = queues_.at(row).front().run,
                          alive = std::weak_ptr<bool>(alive_), &store = store_,
                          &scheduler = scheduler_] {
    Status written = run(store);
    scheduler.Post([this, row, alive, written] {
      if (!alive.expired()) Written(row, written);
    });
  });
}

void RecordWriter::Written(const RowId& row, const Status& written) {
  --running_;
  const auto queue = queues_.find(row);
  const Done done = std::move(queue->second.front().done);
  queue->second.pop_front();
  if (queue->second.empty()) {
    queues_.erase(queue);
  } else {
    waiting_.push_back(row);
  }
  StartWrites();
  if (done) done(written);  // last: it may write again
}

}  // namespace volumed
