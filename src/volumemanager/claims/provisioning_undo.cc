// How what was begun for a claim that is gone is taken back, or left behind by command.
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {
namespace {

constexpr const char* kUndoGivenUp = "UndoGivenUp";

}  // namespace

void Provisioning::Undo(Entry& entry) {
  const std::string name = entry.record.volume_name;
  // What waits for its driver might make the volume days later.
  if (entry.running && !entry.undoing) parts_.operations.GiveUpWaiting(ProvisionKey(name));
  if (entry.running || entry.removing || !rows_.IsDurable(name)) return;
  if (!entry.maybe_made) return Remove(name);
  ProvisionRequest request;
  request.plugin_name = entry.record.plugin_name;
  request.options.pv_name = name;
  AddRecorded(entry, request);
  Started(entry, parts_.operations.Start(
                     UndoProvision(std::move(request)),
                     alive_.Guarded([this, name](const OperationOutcome<Unit>& outcome) {
                       Undone(name, outcome);
                     })));
  entry.undoing = entry.running;
}

void Provisioning::Undone(const std::string& volume_name, const OperationOutcome<Unit>& outcome) {
  Entry& entry = entries_.at(volume_name);
  entry.running = entry.undoing = false;
  if (!outcome.failure) return Remove(volume_name);
  if (!NeverReachedItsDriver(*outcome.failure)) {
    NoteFailure(entry.failure, *outcome.failure, parts_.rows.scheduler.clock());
  }
  if (!entry.given_up.empty()) return LeaveBehind(entry);
  hooks_.changed();
}

// It is not tried again. Who names what its DeleteVolume may have been called for, or wants to
// delete that by hand, has waited for this.
void Provisioning::EndUndo(const std::string& volume_name,
                           std::vector<std::function<void(Status)>> given_up) {
  const auto ended = [this, given_up = std::move(given_up)] {
    hooks_.changed();
    for (const auto& done : given_up) done(OkStatus());
  };
  const StartResult started = parts_.operations.Start(
      EndReclaim(volume_name), alive_.Guarded([ended](const OperationOutcome<Unit>&) { ended(); }));
  if (started != StartResult::kStarted) ended();
}

std::vector<Provisioning::Undoing> Provisioning::Undoings() const {
  std::vector<Undoing> undoings;
  for (const auto& [name, entry] : entries_) {
    if (!entry.over || !entry.maybe_made || entry.removing) continue;
    undoings.push_back({entry.volume, entry.record.claim, entry.record.plugin_name, entry.failure});
  }
  return undoings;
}

std::vector<Provisioning::Begun> Provisioning::BegunBy(const std::string& provisioner) const {
  std::vector<Begun> begun;
  for (const auto& [name, entry] : entries_) {
    const bool is_intent = entry.record.state == ProvisionState::kProvisioning;
    if (entry.record.plugin_name != provisioner || !is_intent) continue;
    if (!entry.maybe_made || entry.removing) continue;
    begun.push_back({name, entry.record.claim, entry.over});
  }
  return begun;
}

void Provisioning::GiveUp(const std::string& volume_name, const std::function<void(Status)>& done) {
  const auto found = entries_.find(volume_name);
  if (found == entries_.end() || !found->second.over) {
    return done(
        Error::NotApplied(Code::kNotFound, "no volume " + volume_name + " is being undone"));
  }
  Entry& entry = found->second;
  if (entry.running && !entry.undoing) {
    return done(Error::NotApplied(Code::kUnavailable,
                                  "volume " + volume_name + " is being made at this moment"));
  }
  entry.given_up.push_back(done);
  if (entry.removing) return;
  if (!entry.running) return LeaveBehind(entry);
  parts_.operations.GiveUpWaiting(ProvisionKey(volume_name));
}

void Provisioning::LeaveBehind(const Entry& entry) {
  const std::string& name = entry.record.volume_name;
  parts_.events.RecordVolumeEvent(name, EventType::kWarning, kUndoGivenUp,
                                  "by command it is not undone: what " + entry.record.plugin_name +
                                      " may have made as " + name + " for claim " +
                                      ToString(entry.record.claim) + " is left there");
  Remove(name);
}

}  // namespace volumed
