#include "volumehost/recovery_gate.h"

#include <algorithm>

namespace volumed {

Status RecoveryGate::Admit(IrreversibleStep step, const std::string& volume) {
  const RecordsRecovery recovery = records_.recovery();
  const std::string mounts = MountsText();
  MutexLock lock(mu_);
  if (!recovery.active || recovery.accepted.contains(volume)) {
    pending_.erase({volume, step});
    return OkStatus();
  }
  pending_.try_emplace({volume, step}, clock_.WallUnixMillis());
  return Error::NotApplied(Code::kFailedPrecondition,
                           std::string(IrreversibleStepName(step)) + " of volume \"" + volume +
                               "\" is held back, for the records may be older than the disks: " +
                               recovery.reason + (mounts.empty() ? "" : "; " + mounts) +
                               "; see `volumectl records`, and permit it with `volumectl records "
                               "accept --only " +
                               volume + "` or all with `volumectl records accept`");
}

std::vector<PendingStep> RecoveryGate::Pending() const {
  MutexLock lock(mu_);
  std::vector<PendingStep> pending;
  for (const auto& [id, since] : pending_) pending.push_back({id.second, id.first, since});
  return pending;
}

void RecoveryGate::FoundMounts(size_t count) {
  MutexLock lock(mu_);
  mounts_ = count;
}

std::string RecoveryGate::MountsText() const {
  MutexLock lock(mu_);
  if (mounts_ == 0) return "";
  return std::to_string(mounts_) +
         " mounts that were here at the start are on no record, and may be in use: look at "
         "`unrecorded_mounts` of `volumectl status -o json`";
}

bool RecoveryGate::IsPending(const std::string& volume) const {
  MutexLock lock(mu_);
  return std::any_of(pending_.begin(), pending_.end(),
                     [&](const auto& step) { return step.first.first == volume; });
}

bool RecoveryGate::IsDamaged(const std::string& volume) const {
  const std::set<std::string> kept = records_.recovery().kept_damage;
  return std::any_of(kept.begin(), kept.end(), [&volume](const std::string& key) {
    return key == volume || key.ends_with("/" + volume);
  });
}

Result<std::vector<PendingStep>> RecoveryGate::Accept(const std::optional<std::string>& volume) {
  if (volume && !IsPending(*volume) && !IsDamaged(*volume) &&
      !records_.recovery().accepted.contains(*volume)) {
    return Error::NotApplied(Code::kNotFound, "nothing of volume \"" + *volume +
                                                  "\" is held back; `volumectl records` lists what "
                                                  "is");
  }
  RETURN_IF_ERROR(records_.AcceptRecords(volume));
  MutexLock lock(mu_);
  std::vector<PendingStep> permitted;
  for (auto at = pending_.begin(); at != pending_.end();) {
    if (volume && at->first.first != *volume) {
      ++at;
      continue;
    }
    permitted.push_back({at->first.second, at->first.first, at->second});
    at = pending_.erase(at);
  }
  return permitted;
}

}  // namespace volumed
