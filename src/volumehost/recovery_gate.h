// RecoveryGate: holds back irreversible steps as long as the records may be older than the disks
// (records/recoverable_records.h), and remembers what it has held back, until a person accepts the
// records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "records/recoverable_records.h"
#include "volumehost/irreversible_steps.h"

namespace volumed {

// A step that was asked for and held back. It is not on record: after a restart it is pending once
// it is asked for again.
struct PendingStep {
  IrreversibleStep step = IrreversibleStep::kFormat;
  std::string volume;
  int64_t since_unix_ms = 0;  // of the first request
  friend bool operator==(const PendingStep&, const PendingStep&) = default;
};

// Threads: any. Blocks: only Accept, until the records are synced.
class RecoveryGate final : public IrreversibleSteps {
 public:
  // `records` and `clock` outlive this object.
  RecoveryGate(RecoverableRecords& records, const Clock& clock)
      : records_(records), clock_(clock) {}

  Status Admit(IrreversibleStep step, const std::string& volume) override EXCLUDES(mu_);
  bool InDoubt() const override { return records_.recovery().active; }

  RecordsRecovery recovery() const { return records_.recovery(); }
  // The steps that were requested and held back since the start of the agent, sorted by volume.
  std::vector<PendingStep> Pending() const EXCLUDES(mu_);
  // So many mounts were on no record when the agent started: what is held back says so, for they
  // show what of the records is missing, and may be in use.
  void FoundMounts(size_t count) EXCLUDES(mu_);
  // That, for people; "" if there were none.
  std::string MountsText() const EXCLUDES(mu_);
  // Accepts the records of one volume, or of all (nullopt), which ends the recovery. Returns the
  // steps that were held back and are permitted now; they may be requested again. A volume that was
  // accepted before may be accepted again. Errors: NotFound (not applied) if nothing of the volume
  // is held back and no row of it is damaged; those of RecoverableRecords.
  Result<std::vector<PendingStep>> Accept(const std::optional<std::string>& volume) EXCLUDES(mu_);

 private:
  bool IsPending(const std::string& volume) const EXCLUDES(mu_);
  // Whether a row of the volume cannot be read, and is kept until a person accepts that.
  bool IsDamaged(const std::string& volume) const;

  using StepId = std::pair<std::string, IrreversibleStep>;

  RecoverableRecords& records_;
  const Clock& clock_;
  mutable Mutex mu_;
  std::map<StepId, int64_t> pending_ GUARDED_BY(mu_);
  size_t mounts_ GUARDED_BY(mu_) = 0;
};

}  // namespace volumed
