// RecoveryGate: holds irreversible steps back while the records may be older than the disks
// (records/recoverable_records.h), and keeps what it has held back, until a person accepts the
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

struct HeldStep {
  IrreversibleStep step = IrreversibleStep::kFormat;
  std::string volume;
  int64_t since_unix_ms = 0;  // it was asked for first
  friend bool operator==(const HeldStep&, const HeldStep&) = default;
};

// Threads: any. Blocks: Accept alone, until it is synced.
class RecoveryGate final : public IrreversibleSteps {
 public:
  // Both outlive this.
  RecoveryGate(RecoverableRecords& records, const Clock& clock)
      : records_(records), clock_(clock) {}

  Status Admit(IrreversibleStep step, const std::string& volume) override EXCLUDES(mu_);
  bool InDoubt() const override { return records_.recovery().active; }

  RecordsRecovery recovery() const { return records_.recovery(); }
  // What was asked for and held back since the start of the agent, in the order of the volumes.
  std::vector<HeldStep> Held() const EXCLUDES(mu_);
  // Of one volume, or of all, which ends the recovery. The answer is what was held back and is now
  // permitted; whoever asked for it may ask again. Errors: NotFound (not applied) if nothing of the
  // volume is held back and no row of it is damaged; those of RecoverableRecords.
  Result<std::vector<HeldStep>> Accept(const std::optional<std::string>& volume) EXCLUDES(mu_);

 private:
  bool IsHeld(const std::string& volume) const EXCLUDES(mu_);
  // A row of the volume cannot be read, and is kept until somebody says otherwise.
  bool IsDamaged(const std::string& volume) const;

  using StepId = std::pair<std::string, IrreversibleStep>;

  RecoverableRecords& records_;
  const Clock& clock_;
  mutable Mutex mu_;
  std::map<StepId, int64_t> held_ GUARDED_BY(mu_);
};

}  // namespace volumed
