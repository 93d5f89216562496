#include "volumemanager/claims/deleted_objects.h"

#include <algorithm>

namespace volumed {
namespace {

// How many numbers are reserved on record at once, so that few commands have to wait for a write.
constexpr uint64_t kNumbersAtOnce = 1000;

}  // namespace

DeletedObjects::DeletedObjects(LastingRows::Parts parts, std::function<void(const Id&)> changed)
    : parts_(parts),
      changed_(std::move(changed)),
      rows_(parts, kDeletedObjectRecordKind, kDeletedObjectRecordDurability,
            [this](const std::string& key) { Settled(key); }) {
  rows_.OnFailure([this](const std::string& key, const Error& error) {
    Answer(key, Error::FromParts(error.code(), Outcome::kMaybeApplied, error.sys_errno(),
                                 "the command could not be recorded yet, which is tried again: " +
                                     error.message()));
  });
}

void DeletedObjects::Restore(const std::vector<DeletedObjectRecord>& records,
                             const std::vector<CommandNumberRecord>& numbers,
                             const std::vector<QuarantinedRecord>& unreadable) {
  for (const DeletedObjectRecord& record : records) {
    const Id id{record.object, record.uid};
    deleted_[id] = {record, record, {}, false};
    ids_[RecordKey(record)] = id;
    Saw(record.number);
  }
  for (const CommandNumberRecord& record : numbers) {
    reserved_ = record.reserved;
    Saw(record.reserved);
  }
  const bool lost = std::any_of(
      unreadable.begin(), unreadable.end(),
      [](const QuarantinedRecord& row) { return row.kind == kCommandNumberRecordKind; });
  // The time is more than any count of commands, and more at each start than at the one before.
  if (lost) Saw(static_cast<uint64_t>(parts_.scheduler.clock().WallUnixMillis()));
}

void DeletedObjects::Saw(uint64_t number) { next_ = std::max(next_, number + 1); }

void DeletedObjects::TakeNumber(std::function<void(Result<uint64_t>)> taken) {
  const uint64_t number = next_++;
  if (number <= reserved_) return taken(number);
  const CommandNumberRecord record{number + kNumbersAtOnce};
  parts_.records.Put(
      EncodeRecord(record), kCommandNumberRecordDurability,
      alive_.Guarded([this, taken, number, reserved = record.reserved](const Status& status) {
        if (!status.ok()) {
          return taken(Error::FromParts(
              status.error().code(), Outcome::kNotApplied, status.error().sys_errno(),
              "the command could not be numbered: " + status.error().message()));
        }
        reserved_ = std::max(reserved_, reserved);
        taken(number);
      }));
}

void DeletedObjects::Delete(const Id& object, bool at_once, Done done) {
  const DeletedObjectRecord* known = Find(object);
  // An object with a uid ends once. An object without one may be another object of the same name.
  const bool is_over = known != nullptr && known->ended && !object.second.empty();
  const bool is_known = known != nullptr && !known->ended && !at_once;
  if (is_over || is_known) return done(OkStatus());
  TakeNumber([this, object, at_once, done = std::move(done)](const Result<uint64_t>& number) {
    if (!number.ok()) return done(number.error());
    Row& row = deleted_[object];
    const bool storage_left = row.record.storage_left && !row.record.ended;
    row.record = {
        object.first, object.second, *number, at_once, parts_.scheduler.clock().WallUnixMillis(),
        storage_left};
    row.waiting.push_back(done);
    Write(object, row);
  });
}

void DeletedObjects::LeaveStorage(const Id& volume, Done done) {
  const DeletedObjectRecord* known = Find(volume);
  if (known != nullptr && (known->ended || known->storage_left)) return done(OkStatus());
  TakeNumber([this, volume, done = std::move(done)](const Result<uint64_t>& number) {
    if (!number.ok()) return done(number.error());
    Row& row = deleted_[volume];
    DeletedObjectRecord& record = row.record;
    // It may have been deleted before, and have ended since it was looked at.
    const int64_t since = record.since_unix_ms != 0 ? record.since_unix_ms
                                                    : parts_.scheduler.clock().WallUnixMillis();
    record = {volume.first, volume.second, *number, record.ended, since, /*storage_left=*/true};
    row.waiting.push_back(done);
    Write(volume, row);
  });
}

void DeletedObjects::End(const Id& object) {
  const auto found = deleted_.find(object);
  if (found == deleted_.end() || !found->second.durable || found->second.record.ended) return;
  found->second.record.ended = true;
  Write(object, found->second);
}

void DeletedObjects::Forget(const Id& object) {
  Row& row = deleted_.at(object);
  if (row.removing || !rows_.IsDurable(RecordKey(row.record))) return;
  row.removing = true;
  rows_.Remove(RecordKey(row.record));
}

void DeletedObjects::Write(const Id& object, Row& row) {
  const std::string key = RecordKey(row.record);
  ids_[key] = object;
  row.removing = false;
  rows_.Put(EncodeRecord(row.record));
}

void DeletedObjects::Settled(const std::string& key) {
  const Id object = ids_.at(key);
  Row& row = deleted_.at(object);
  if (row.removing) {
    deleted_.erase(object);
    ids_.erase(key);
    return;
  }
  row.durable = row.record;
  changed_(object);
  Answer(key, OkStatus());
}

void DeletedObjects::Answer(const std::string& key, const Status& status) {
  const auto id = ids_.find(key);
  if (id == ids_.end()) return;
  for (const Done& done : std::exchange(deleted_.at(id->second).waiting, {})) done(status);
}

const DeletedObjectRecord* DeletedObjects::Find(const Id& object) const {
  const auto found = deleted_.find(object);
  return found == deleted_.end() || !found->second.durable ? nullptr : &*found->second.durable;
}

bool DeletedObjects::HasEnded(const Id& object) const {
  const DeletedObjectRecord* record = Find(object);
  return record != nullptr && record->ended;
}

std::optional<uint64_t> DeletedObjects::EndedBy(const ObjectKey& key) const {
  std::optional<uint64_t> last;
  for (auto at = deleted_.lower_bound({key, ""}); at != deleted_.end() && at->first.first == key;
       ++at) {
    const auto& durable = at->second.durable;
    if (durable && durable->ended) last = std::max(last.value_or(0), durable->number);
  }
  return last;
}

std::vector<DeletedObjectRecord> DeletedObjects::All() const {
  std::vector<DeletedObjectRecord> all;
  for (const auto& [object, row] : deleted_) {
    if (row.durable) all.push_back(*row.durable);
  }
  return all;
}

}  // namespace volumed
