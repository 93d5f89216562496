// Volumes that are there are tuned: their devices, and what their pods may ask of these.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/pod_cgroups.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
Status PoolVolumes::LimitPods(Held& held, const PoolTuning& tuning,
                              const std::set<std::string>& pods, std::set<std::string>& limited) {
  for (const std::string& pod : pods) {
    ASSIGN_OR_RETURN(const std::vector<std::string> cgroups, PodCgroups(pod));
    const IoLimits limits = LimitsOf(tuning);
    const Result<bool> each_alone = held.backend->Throttle(held.record, limits, cgroups, held.call);
    if (!each_alone.ok()) {
      return each_alone.error().With("throttle pod " + pod + " for volume " + held.record.id);
    }
    SetKept(held.record.id, pod, *each_alone && limits != IoLimits{});
    limited.insert(pod);
  }
  return OkStatus();
}

Status PoolVolumes::ApplyTuning(Held& held, const PoolTuning& before, const PoolTuning& tuning,
                                const std::set<std::string>& pods) {
  std::set<std::string> limited;
  Status applied = LimitPods(held, tuning, pods, limited);
  if (applied.ok()) applied = held.backend->Tune(held.record, tuning, held.call);
  if (applied.ok() || applied.error().maybe_applied()) return applied;
  std::set<std::string> taken_back;
  const Status undone = LimitPods(held, before, limited, taken_back);
  return undone.ok() ? applied : Status(applied.error().AsMaybeApplied());
}

Status PoolVolumes::Modify(const std::string& id, const StringMap& parameters,
                           const CallOptions& call, const std::set<std::string>& pods) {
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  RETURN_IF_ERROR(CheckUsable(held.record));
  const PoolVolumeRecord before = held.record;
  for (const auto& [key, value] : parameters) held.record.mutable_parameters[key] = value;
  ASSIGN_OR_RETURN(const PoolTuning tuning, ParsePoolTuning(held.record.mutable_parameters));
  RETURN_IF_ERROR(CheckTuning(tuning, held.record.backend));
  // What is on record was checked when it came there.
  ASSIGN_OR_RETURN(const PoolTuning tuning_before, ParsePoolTuning(before.mutable_parameters));
  // First the row: whatever comes between, the next device has what was asked for.
  if (held.record != before) RETURN_IF_ERROR(Write(held.record));
  const std::set<std::string> limited = NamesThrottle(parameters) ? pods : std::set<std::string>();
  const Status tuned = ApplyTuning(held, tuning_before, tuning, limited);
  if (tuned.ok()) return tuned;
  const Error error = AboutFilesOf(id, tuned.error());
  if (error.maybe_applied() || held.record == before) return error;
  return Write(before).ok() ? error : error.AsMaybeApplied();
}

bool PoolVolumes::IsThrottled(const std::string& id) const {
  const std::optional<PoolVolumeRecord> record = FindRow(id);
  if (!record) return false;
  const Result<PoolTuning> tuning = ParsePoolTuning(record->mutable_parameters);
  return tuning.ok() && LimitsOf(*tuning) != IoLimits{};
}

Status PoolVolumes::Throttle(const std::string& id, const std::string& pod,
                             const CallOptions& call) {
  if (pod.empty()) return IsThrottled(id) ? Status(WhyPodIsNeeded(id)) : OkStatus();
  const std::optional<PoolVolumeRecord> row = FindRow(id);
  if (!row || !NamesThrottle(row->mutable_parameters)) return OkStatus();
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  RETURN_IF_ERROR(CheckUsable(held.record));
  ASSIGN_OR_RETURN(const PoolTuning tuning, ParsePoolTuning(held.record.mutable_parameters));
  std::set<std::string> done;
  const Status limited = LimitPods(held, tuning, {pod}, done);
  // A cgroup that takes no limits has none.
  const bool is_refused = !limited.ok() && !limited.error().maybe_applied() &&
                          limited.error().code() == Code::kFailedPrecondition;
  if (is_refused && LimitsOf(tuning) == IoLimits{}) return OkStatus();
  return limited.ok() ? limited : Status(AboutFilesOf(id, limited.error()));
}

void PoolVolumes::SetKept(const std::string& id, const std::string& pod, bool is_kept) {
  MutexLock lock(mu_);
  if (is_kept) {
    kept_throttles_.insert({id, pod});
  } else {
    kept_throttles_.erase({id, pod});
  }
}

void PoolVolumes::NoteThrottled(const std::string& id, const std::string& pod) {
  if (!pod.empty()) SetKept(id, pod, true);
}

bool PoolVolumes::HasThrottlesToKeep() const {
  MutexLock lock(mu_);
  return !kept_throttles_.empty();
}

void PoolVolumes::KeepThrottles(const CallOptions& call) {
  std::set<std::pair<std::string, std::string>> kept;
  {
    MutexLock lock(mu_);
    kept = kept_throttles_;
  }
  for (const auto& [id, pod] : kept) {
    const Status limited = Throttle(id, pod, call);
    const bool is_over =
        limited.ok() ? !IsThrottled(id) : limited.error().code() == Code::kFailedPrecondition;
    // What hangs, or is taken by another call, is tried again.
    if (is_over) SetKept(id, pod, false);
  }
}

Error WhyPodIsNeeded(const std::string& id) {
  return PoolRefusal("volume " + id +
                     " has a throttle, which is set in the cgroup of its pod, and nobody has said "
                     "which pod that is: the CSIDriver object has to say \"podInfoOnMount: true\"");
}

}  // namespace volumed
