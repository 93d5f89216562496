// The watchers between the agent and its world: a Kernel and a RecordStore that check, at every
// effect and every write, what holds all along. They change nothing.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "records/record_store.h"
#include "unit/crash/crash_world.h"

namespace volumed {

// Ends an agent that makes effects without end.
struct RunawayAgent {};

// What a request does to its path, and whether it did.
enum class EffectKind { kNone, kMakes, kTakesAway, kRemovesEmpty };
EffectKind KindOfEffect(const AnyRequest& request);
bool HadEffect(const AnyRequest& request, const Result<AnyAnswer>& answer);

// Checks before each effect in a pod's directory that the records say that it is coming, and after
// it that whatever a pod has a right to is whole.
class CheckedKernel final : public Kernel {
 public:
  // `switch_point` is called before and after each call: another operation may run there.
  CheckedKernel(CrashWorld& world, std::function<void()> switch_point)
      : world_(world), switch_point_(std::move(switch_point)) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override;

 private:
  // Which rule the effect would break; "" if none.
  std::string BrokenRule(const AnyRequest& request) const;
  std::string BrokenVolumeRule(const AnyRequest& request, EffectKind kind, const std::string& pod,
                               const std::string& spec, bool in_sub_paths) const;
  std::string BrokenHostPathRule(const std::string& path) const;
  Result<AnyAnswer> DoChecked(const AnyRequest& request, const CallOptions& options);

  CrashWorld& world_;
  const std::function<void()> switch_point_;
  uint64_t calls_ = 0;
};

// An agent has ended: what it wrote last, and never heard of, is on record all the same.
void NoteRecords(CrashWorld& world);

// Notes what the records claim, and checks it.
class CheckedStore final : public RecordStore {
 public:
  // `switch_point` is called before and after each write.
  CheckedStore(CrashWorld& world, std::function<void()> switch_point)
      : world_(world), switch_point_(std::move(switch_point)) {}
  Status Put(const Record& record, Durability durability) override;
  Status Remove(const std::string& kind, const std::string& key, Durability durability) override;
  Result<LoadedRecords> Load(const std::string& kind) override { return world_.store->Load(kind); }
  Status QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) override {
    return world_.store->QuarantineInPlace(rows);
  }
  RecordStoreStats stats() const override { return world_.store->stats(); }

 private:
  void CheckRemove(const std::string& kind, const std::string& key);

  CrashWorld& world_;
  const std::function<void()> switch_point_;
};

}  // namespace volumed
