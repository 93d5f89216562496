#include "volumemanager/record_writer.h"

namespace volumed {
namespace {

// Limits of the batches of rows; each batch has a thread.
constexpr size_t kMostAtOnce = 4;
constexpr size_t kMostRows = 256;

}  // namespace

void RecordWriter::Put(Record record, Durability durability, Done done) {
  const RowId row{record.kind, record.key};
  Enqueue(row, {{std::move(record), false}, durability, std::move(done)});
}

void RecordWriter::Remove(const std::string& kind, const std::string& key, Durability durability,
                          Done done) {
  RowChange removal;
  removal.record.kind = kind;
  removal.record.key = key;
  removal.remove = true;
  Enqueue({kind, key}, {std::move(removal), durability, std::move(done)});
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
    const Durability durability = queues_.at(waiting_.front()).front().durability;
    std::vector<RowId> rows;
    while (rows.size() < kMostRows && !waiting_.empty() &&
           queues_.at(waiting_.front()).front().durability == durability) {
      rows.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    ++running_;
    Start(std::move(rows));
  }
}

void RecordWriter::Start(std::vector<RowId> rows) {
  std::vector<RowChange> changes;
  changes.reserve(rows.size());
  const Durability durability = queues_.at(rows.front()).front().durability;
  for (const RowId& row : rows) changes.push_back(std::move(queues_.at(row).front().change));
  scheduler_.RunBlocking([this, rows = std::move(rows), changes = std::move(changes), durability,
                          owner = alive_.watch(), &store = store_, &scheduler = scheduler_] {
    scheduler.Post([this, rows, owner, written = store.Write(changes, durability)] {
      if (!owner.alive()) return;
      --running_;
      for (size_t i = 0; i < rows.size() && owner.alive(); ++i) Written(rows[i], written[i]);
      if (owner.alive()) StartWrites();
    });
  });
}

void RecordWriter::Written(const RowId& row, const Status& written) {
  const auto queue = queues_.find(row);
  const Done done = std::move(queue->second.front().done);
  queue->second.pop_front();
  if (queue->second.empty()) {
    queues_.erase(queue);
  } else {
    waiting_.push_back(row);
  }
  if (done) done(written);  // called last, since it may write again
}

}  // namespace volumed
