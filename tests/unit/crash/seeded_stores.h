// Record stores that make one mistake each.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operation/object_record.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"
#include "unit/crash/seeded_bugs.h"

namespace volumed {

// A store that keeps its promises; a mistake overrides what it breaks.
class PassingStore : public RecordStore {
 public:
  explicit PassingStore(RecordStore& real) : real_(real) {}
  Status Put(const Record& record, Durability durability) override {
    return real_.Put(record, durability);
  }
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    return real_.Remove(kind, key, durability);
  }
  Result<LoadedRecords> Load(const std::string& kind) override { return real_.Load(kind); }
  Status QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) override {
    return real_.QuarantineInPlace(rows);
  }
  RecordStoreStats stats() const override { return real_.stats(); }

 protected:
  RecordStore& real_;
};

inline std::optional<VolumeState> StateIn(const Record& row) {
  if (row.kind != kPodVolumeRecordKind) return std::nullopt;
  const Result<PodVolumeRecord> record = DecodePodVolumeRecord(row);
  return record.ok() ? std::optional<VolumeState>(record->state) : std::nullopt;
}

inline bool SaysTerminating(const Record& row) {
  if (row.kind != kPodRecordKind) return false;
  const Result<PodRecord> record = DecodePodRecord(row);
  return record.ok() && record->terminating;
}

// Puts that `lost` names are answered with success, and never made.
class LosingStore final : public PassingStore {
 public:
  LosingStore(RecordStore& real, std::function<bool(const Record&)> lost)
      : PassingStore(real), lost_(std::move(lost)) {}
  Status Put(const Record& record, Durability durability) override {
    return lost_(record) ? OkStatus() : PassingStore::Put(record, durability);
  }

 private:
  const std::function<bool(const Record&)> lost_;
};

// A put is answered at once, and made when the next write comes.
class LateStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& record, Durability durability) override {
    RETURN_IF_ERROR(Flush());
    late_ = {record, durability};
    return OkStatus();
  }
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    RETURN_IF_ERROR(Flush());
    return PassingStore::Remove(kind, key, durability);
  }

 private:
  Status Flush() {
    if (!late_) return OkStatus();
    const auto [record, durability] = *std::exchange(late_, std::nullopt);
    return PassingStore::Put(record, durability);
  }
  std::optional<std::pair<Record, Durability>> late_;
};

// The outcome is recorded with the intent, before the effect.
class HastyStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (StateIn(row) != VolumeState::kSettingUp) return PassingStore::Put(row, durability);
    PodVolumeRecord record = DecodePodVolumeRecord(row).value();
    record.state = VolumeState::kSetUp;
    record.uncertain = false;
    return PassingStore::Put(EncodeRecord(record), durability);
  }
};

// The row goes with the intent to tear down, before the effect.
class EarlyRemovingStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (StateIn(row) != VolumeState::kTearingDown) return PassingStore::Put(row, durability);
    return PassingStore::Remove(row.kind, row.key, durability);
  }
};

class ForgetfulStore final : public PassingStore {
 public:
  ForgetfulStore(RecordStore& real, std::string kind)
      : PassingStore(real), kind_(std::move(kind)) {}
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override {
    return kind == kind_ ? OkStatus() : PassingStore::Remove(kind, key, durability);
  }

 private:
  const std::string kind_;
};

// What a volume that is no more has left does not stay on record.
class UnretainingStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    const bool is_retained =
        row.kind == kStorageOwnerRecordKind && DecodeStorageOwnerRecord(row).value().retained != 0;
    return is_retained ? PassingStore::Remove(row.kind, row.key, durability)
                       : PassingStore::Put(row, durability);
  }
};

// A new agent does not see the rows of a kind.
class BlindStore final : public PassingStore {
 public:
  BlindStore(RecordStore& real, std::string kind) : PassingStore(real), kind_(std::move(kind)) {}
  Result<LoadedRecords> Load(const std::string& kind) override {
    return kind == kind_ ? Result<LoadedRecords>(LoadedRecords()) : PassingStore::Load(kind);
  }

 private:
  const std::string kind_;
};

// A new agent does not know who its pods are: neither their rows tell, nor those of their volumes.
class NamelessPodStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Result<LoadedRecords> Load(const std::string& kind) override {
    if (kind == kPodRecordKind) return LoadedRecords();
    Result<LoadedRecords> loaded = PassingStore::Load(kind);
    if (kind != kPodVolumeRecordKind || !loaded.ok()) return loaded;
    for (Record& row : loaded->records) {
      PodVolumeRecord record = DecodePodVolumeRecord(row).value();
      record.pod_name.clear();
      row = EncodeRecord(record);
    }
    return loaded;
  }
};

// A restart does not know any more which source has an object.
class HolderlessStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Result<LoadedRecords> Load(const std::string& kind) override {
    Result<LoadedRecords> loaded = PassingStore::Load(kind);
    if (kind != kKnownObjectRecordKind || !loaded.ok()) return loaded;
    for (Record& row : loaded->records) {
      KnownObjectRecord record = DecodeKnownObjectRecord(row).value();
      record.source.clear();
      row = EncodeRecord(record);
    }
    return loaded;
  }
};

// The row of a deletion does not say which command it was.
class NumberlessStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (row.kind != kDeletedObjectRecordKind) return PassingStore::Put(row, durability);
    DeletedObjectRecord record = DecodeDeletedObjectRecord(row).value();
    record.number = 0;
    return PassingStore::Put(EncodeRecord(record), durability);
  }
};

// A restart does not know any more what volumes a pod has.
class VolumelessStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Result<LoadedRecords> Load(const std::string& kind) override {
    Result<LoadedRecords> loaded = PassingStore::Load(kind);
    if (kind != kPodRecordKind || !loaded.ok()) return loaded;
    for (Record& row : loaded->records) {
      PodRecord record = DecodePodRecord(row).value();
      record.pod_json.clear();
      row = EncodeRecord(record);
    }
    return loaded;
  }
};

// The end of a deletion is recorded with the release, before the effect.
class HastyDeletionStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  Status Put(const Record& row, Durability durability) override {
    if (row.kind != kClaimBindingRecordKind) return PassingStore::Put(row, durability);
    ClaimBindingRecord record = DecodeClaimBindingRecord(row).value();
    if (record.binding.state == BindingState::kReleased) record.deleted = true;
    return PassingStore::Put(EncodeRecord(record), durability);
  }
};

}  // namespace volumed
