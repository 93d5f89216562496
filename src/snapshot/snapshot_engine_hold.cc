// SnapshotEngine: what is held while a volume is made of it.
#include <utility>

#include "base/printable_text.h"
#include "snapshot/snapshot_engine.h"
#include "snapshot/snapshot_operations.h"
#include "snapshot/snapshot_refusals.h"

namespace volumed {

Result<SnapshotRecord> SnapshotEngine::Hold(const std::string& id) {
  {
    const MutexLock lock(mu_);
    const auto found = snapshots_.find(id);
    if (found != snapshots_.end() && found->second.for_volume.empty()) {
      RETURN_IF_ERROR(WhyNotHeld(found->second));
      ++held_[id];
      return found->second;
    }
  }
  RETURN_IF_ERROR(WhyUnknown(id));
  return Error::NotApplied(Code::kNotFound,
                           "there is no snapshot " + Quoted(id, kShownSnapshotBytes));
}

Status SnapshotEngine::WhyNotHeld(const SnapshotRecord& record) {
  const std::string what = "snapshot " + record.id + " is ";
  if (record.delete_asked || record.phase == SnapshotPhase::kDeleting) {
    return SnapshotRefusal(what + "being deleted");
  }
  if (record.phase == SnapshotPhase::kReady) return OkStatus();
  if (record.phase == SnapshotPhase::kFailed) {
    return SnapshotRefusal(what + "no content: " + record.error);
  }
  if (record.cancel_asked || record.phase == SnapshotPhase::kCancelled) {
    return SnapshotRefusal(what + "cancelled");
  }
  return Error::NotApplied(Code::kUnavailable, what + "not ready yet");
}

Result<std::optional<SnapshotRecord>> SnapshotEngine::HoldMadeClone(const std::string& volume,
                                                                    const std::string& name) {
  const MutexLock lock(mu_);
  const auto named = names_.find(name);
  if (named == names_.end()) return std::optional<SnapshotRecord>();
  SnapshotRecord& there = snapshots_.at(named->second);
  if (there.volume != volume) {
    return SnapshotRefusal("volume " + there.volume + ", and not " + volume +
                           ", was cut for the volume that is being made");
  }
  if (there.phase == SnapshotPhase::kReady && !there.delete_asked) {
    ++held_[there.id];
    return std::optional(there);
  }
  const std::string what = "the cut of volume " + volume + " for a clone ";
  if (there.phase != SnapshotPhase::kFailed) {
    return Error::NotApplied(Code::kUnavailable, what + "is being copied, or taken away");
  }
  // It is told once, and the next call cuts anew.
  there.delete_asked = true;
  GoOnSoon(there.id);
  return WhyFailed(there).With(what + "failed");
}

Result<SnapshotRecord> SnapshotEngine::HoldForClone(const std::string& volume,
                                                    const std::string& for_volume,
                                                    const CallOptions& call) {
  RETURN_IF_ERROR(CheckStarted());
  const std::string name = "clone/" + for_volume;
  ASSIGN_OR_RETURN(const std::optional<SnapshotRecord> there, HoldMadeClone(volume, name));
  if (there) return *there;
  ASSIGN_OR_RETURN(Cutting cutting, PlanCut({volume}));
  SnapshotRecord& member = cutting.members.front();
  member.name = name;
  member.for_volume = for_volume;
  const std::string id = member.id;
  Announce(cutting);
  std::vector<PoolVolumes::CutRequest> requests{{volume, id, std::nullopt}};
  Status cut =
      FindWhereMounted(parts_.volumes, parts_.paths, parts_.devices, parts_.kernel, requests, call);
  if (cut.ok()) cut = CutOnRecord(requests, call);
  ForgetUncut({id});
  Result<std::optional<SnapshotRecord>> made = std::optional<SnapshotRecord>();
  if (cut.ok()) made = HoldMadeClone(volume, name);
  GiveBack({id});
  if (made.ok() && *made) return **made;
  GoOnSoon(id);  // what is left is copied, or discarded
  RETURN_IF_ERROR(cut);
  RETURN_IF_ERROR(made);
  return Error::NotApplied(Code::kUnavailable, "the cut of volume " + volume + " was taken away");
}

void SnapshotEngine::Release(const std::string& id) {
  {
    const MutexLock lock(mu_);
    const auto held = held_.find(id);
    if (held == held_.end() || --held->second > 0) return;
    held_.erase(held);
    if (!clones_.contains(id)) return;
  }
  GoOnSoon(id);
}

bool SnapshotEngine::IsCopiedForClone(const std::string& volume) const {
  const MutexLock lock(mu_);
  for (const std::string& id : clones_) {
    const SnapshotRecord& clone = snapshots_.at(id);
    if (clone.volume == volume && IsCut(clone.phase) && !IsAtRest(clone.phase)) return true;
  }
  return false;
}

void SnapshotEngine::WhenCopiedForClone(const std::string& volume, Duration at_most,
                                        std::function<void()> done) {
  if (!IsCopiedForClone(volume)) return done();
  const auto waits = std::make_shared<std::function<void()>>(std::move(done));
  await_copies_.emplace(volume, waits);
  parts_.scheduler.PostAfter(at_most, alive_.Guarded([this, waits] {
    std::erase_if(await_copies_, [&waits](const auto& one) { return one.second == waits; });
    if (const auto call = std::exchange(*waits, nullptr)) call();
  }));
}

void SnapshotEngine::TellCopied(const std::string& volume) {
  const auto [begin, end] = await_copies_.equal_range(volume);
  if (begin == end || IsCopiedForClone(volume)) return;
  const std::multimap<std::string, std::shared_ptr<std::function<void()>>> waited(begin, end);
  await_copies_.erase(begin, end);
  for (const auto& [of, waits] : waited) {
    if (const auto call = std::exchange(*waits, nullptr)) call();
  }
}

bool SnapshotEngine::IsCloneNeeded(const SnapshotRecord& record) const {
  {
    const MutexLock lock(mu_);
    if (held_.contains(record.id)) return true;
  }
  const Result<PoolVolumeRecord> volume = parts_.volumes.Find(record.for_volume);
  if (volume.ok()) return volume->state == PoolVolumeState::kMaking;
  return volume.error().code() != Code::kNotFound;
}

bool SnapshotEngine::EndUnneededClone(const SnapshotRecord& record) {
  if (record.for_volume.empty() || IsCloneNeeded(record)) return false;
  return AskDeletion(record.id).ok();
}

void SnapshotEngine::VolumesChanged() {
  std::set<std::string> clones;
  {
    const MutexLock lock(mu_);
    if (!started_) return;
    clones = clones_;
  }
  for (const std::string& id : clones) GoOn(id);
}

}  // namespace volumed
