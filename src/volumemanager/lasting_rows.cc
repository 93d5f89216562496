#include "volumemanager/lasting_rows.h"

#include <utility>

namespace volumed {

LastingRows::LastingRows(Parts parts, const char* kind, Durability durability,
                         std::function<void(const std::string&)> durable)
    : parts_(parts),
      kind_(kind),
      durability_(durability),
      durable_(std::move(durable)),
      backoff_(parts.scheduler.clock()) {}

void LastingRows::Put(Record row) {
  const std::string key = row.key;
  Change(key, std::move(row));
}

void LastingRows::Remove(const std::string& key) { Change(key, std::nullopt); }

void LastingRows::Change(const std::string& key, std::optional<Record> row) {
  Pending& pending = pending_[key];
  pending.row = std::move(row);
  pending.version = next_version_++;
  Write(key);
}

void LastingRows::Write(const std::string& key) {
  Pending& pending = pending_.at(key);
  if (pending.writing) return;  // its end looks again
  pending.writing = true;
  const auto done = alive_.Guarded([this, key, version = pending.version](const Status& status) {
    Written(key, version, status);
  });
  if (pending.row) {
    parts_.records.Put(*pending.row, durability_, done);
  } else {
    parts_.records.Remove(kind_, key, durability_, done);
  }
}

void LastingRows::Written(const std::string& key, uint64_t version, const Status& status) {
  if (!status.ok()) {
    parts_.log.LogLimited(std::string(kind_) + " " + key, LogLevel::kWarning,
                          "a record could not be written; it is tried again",
                          {{"kind", kind_}, {"key", key}, {"error", status.error()}});
    const Duration delay = backoff_.RecordFailure(key, kind_, CodeName(status.error().code()));
    parts_.scheduler.PostAfter(delay, alive_.Guarded([this, key] {
      pending_.at(key).writing = false;
      Write(key);
    }));
    if (failed_) failed_(key, status.error());
    return;
  }
  backoff_.Reset(key, kind_);
  Pending& pending = pending_.at(key);
  pending.writing = false;
  if (pending.version != version) return Write(key);
  pending_.erase(key);
  durable_(key);
}

}  // namespace volumed
