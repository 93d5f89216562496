#include "operation/volume_record_keeper.h"

#include <algorithm>
#include <utility>

namespace volumed {
namespace {

bool TakesAway(VolumeEvent call) {
  return call == VolumeEvent::kTearDown || call == VolumeEvent::kUnmapVolume;
}

// It is the disk that takes no writes; a store that is closed or refuses is another matter.
bool CannotBeWritten(const Error& error) {
  return error.code() == Code::kResourceExhausted || IsDiskFault(error.sys_errno());
}

// Whether a row with `a` says the same as one with `b` would. Number and time of a call matter only
// to the call itself.
bool SaysTheSame(PodVolumeRecord a, const PodVolumeRecord& b) {
  a.attempt = b.attempt;
  a.started_at_unix_ms = b.started_at_unix_ms;
  return a == b;
}

Error CannotCall(const PodVolumeRecord& record, VolumeEvent call) {
  const std::optional<std::string_view> why = WhyImpossible(record.state, call);
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + record.key.ToString() + " is " + std::string(VolumeStateName(record.state)) +
          ": " + std::string(VolumeEventName(call)) +
          " is impossible: " + std::string(why.value_or("no entry in the table of states")));
}

}  // namespace

VolumeRecordKeeper::VolumeRecordKeeper(RecordStore& store, const Clock& clock, Logger& logger,
                                       OperationObserver& observer, BootId boot_id)
    : store_(store),
      clock_(clock),
      logger_(logger),
      observer_(observer),
      boot_id_(std::move(boot_id)) {}

void VolumeRecordKeeper::Restore(PodVolumeRecord record) {
  record = AfterRestart(std::move(record), boot_id_);
  if (record.attempt > last_attempt_.load()) last_attempt_.store(record.attempt);
  const PodVolumeKey key = record.key;
  const MutexLock lock(mu_);
  entries_[key] = Entry{.record = std::move(record), .stored = true};
}

std::optional<PodVolumeRecord> VolumeRecordKeeper::Find(const PodVolumeKey& key) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.gone) return std::nullopt;
  return found->second.record;
}

std::vector<PodVolumeRecord> VolumeRecordKeeper::FindOfPod(const PodUid& pod) const {
  std::vector<PodVolumeRecord> found;
  const MutexLock lock(mu_);
  for (auto it = entries_.lower_bound({pod, SpecName()});
       it != entries_.end() && it->first.pod == pod; ++it) {
    if (!it->second.gone) found.push_back(it->second.record);
  }
  return found;
}

VolumeRecordKeeper::Entry VolumeRecordKeeper::EntryOf(const PodVolumeKey& key) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  Entry none;
  none.record.key = key;
  return none;
}

Result<VolumeRecordKeeper::Entry> VolumeRecordKeeper::PlanCall(const Entry& now,
                                                               PodVolumeRecord facts,
                                                               VolumeEvent call) {
  PodVolumeRecord from = now.record;
  if (from.state == VolumeState::kNotSetUp && call == VolumeEvent::kTearDown) {
    // No record, and yet somebody found something to take away.
    if (const std::optional<Transition> found = Next(from.state, VolumeEvent::kFound)) {
      from.state = found->to;
      from.uncertain = found->uncertain;
    }
  }
  const std::optional<Transition> row = Next(from.state, call);
  if (!row) return CannotCall(from, call);
  // A teardown keeps what is known: its caller may know the name alone.
  const bool keep_facts = TakesAway(call) && now.record.state != VolumeState::kNotSetUp;
  Entry next{.record = keep_facts ? from : std::move(facts), .stored = now.stored};
  next.record.state = row->to;
  next.record.uncertain = row->uncertain || from.uncertain;
  next.record.boot_id = boot_id_;
  next.record.attempt = ++last_attempt_;
  next.record.started_at_unix_ms = clock_.WallUnixMillis();
  return next;
}

Result<uint64_t> VolumeRecordKeeper::BeginCall(PodVolumeRecord facts, VolumeEvent call) {
  const Entry now = EntryOf(facts.key);
  ASSIGN_OR_RETURN(Entry next, PlanCall(now, std::move(facts), call));
  const uint64_t attempt = next.record.attempt;
  const bool written = now.stored && !now.gone && SaysTheSame(now.record, next.record);
  Status assigned = Assign(next, written ? RowChange::kNone : RowChange::kPut);
  if (!assigned.ok() && TakesAway(call) && now.stored && CannotBeWritten(assigned.error())) {
    LogTolerated(next.record, assigned.error());
    assigned = Assign(next, RowChange::kNone);
  }
  if (!assigned.ok()) return assigned.error();
  return attempt;
}

Status VolumeRecordKeeper::EndCall(const PodVolumeKey& key, uint64_t attempt, CallAnswer answer) {
  const Entry now = EntryOf(key);
  if (now.record.attempt != attempt) {
    return Error::NotApplied(Code::kAborted,
                             "volume " + key.ToString() + " has moved on since call " +
                                 std::to_string(attempt) + ", whose answer is late");
  }
  const VolumeEvent event = AnswerEvent(answer, now.record.uncertain);
  const std::optional<Transition> row = Next(now.record.state, event);
  if (!row) return CannotCall(now.record, event);
  Entry next = now;
  next.record.state = row->to;
  next.record.uncertain = row->uncertain;
  RowChange change = RowChange::kPut;
  if (row->to == VolumeState::kNotSetUp) {
    change = RowChange::kRemove;
  } else if (now.stored && SaysTheSame(now.record, next.record)) {
    change = RowChange::kNone;
  }
  const Status assigned = Assign(next, change);
  if (assigned.ok()) return assigned;

  if (change == RowChange::kRemove && answer == CallAnswer::kDone &&
      CannotBeWritten(assigned.error())) {
    LogTolerated(next.record, assigned.error());
    next.gone = true;
    return Assign(next, RowChange::kNone);
  }
  // The row says that the call is being made. A restart would call that uncertain; so is it now.
  Entry uncertain = now;
  uncertain.record.uncertain = true;
  RETURN_IF_ERROR(Assign(uncertain, RowChange::kNone));
  return assigned.error().AsMaybeApplied();
}

Status VolumeRecordKeeper::ForgetPod(const PodUid& pod) {
  std::vector<PodVolumeKey> leftover;
  {
    const MutexLock lock(mu_);
    for (auto it = entries_.lower_bound({pod, SpecName()});
         it != entries_.end() && it->first.pod == pod; ++it) {
      if (!it->second.gone) {
        return Error::NotApplied(Code::kFailedPrecondition,
                                 "volume \"" + it->first.spec.str() + "\" is still " +
                                     std::string(VolumeStateName(it->second.record.state)));
      }
      leftover.push_back(it->first);
    }
  }
  for (const PodVolumeKey& key : leftover) {
    RETURN_IF_ERROR(
        store_.Remove(kPodVolumeRecordKind, RecordKey(key), kPodVolumeRecordDurability));
    const MutexLock lock(mu_);
    entries_.erase(key);
  }
  return OkStatus();
}

Status VolumeRecordKeeper::Assign(Entry next, RowChange change) {
  const PodVolumeKey key = next.record.key;
  switch (change) {
    case RowChange::kNone:
      break;
    case RowChange::kPut:
      RETURN_IF_ERROR(store_.Put(EncodeRecord(next.record), kPodVolumeRecordDurability));
      next.stored = true;
      break;
    case RowChange::kRemove:
      RETURN_IF_ERROR(
          store_.Remove(kPodVolumeRecordKind, RecordKey(key), kPodVolumeRecordDurability));
      break;
  }
  const VolumeState state = next.record.state;
  const bool uncertain = next.record.uncertain;
  {
    const MutexLock lock(mu_);
    if (state == VolumeState::kNotSetUp && !next.gone) {
      entries_.erase(key);
    } else {
      entries_[key] = std::move(next);
    }
  }
  observer_.StateAssigned(key, state, uncertain);
  return OkStatus();
}

void VolumeRecordKeeper::LogTolerated(const PodVolumeRecord& record, const Error& error) {
  logger_.LogLimited("record-tolerated", LogLevel::kWarning,
                     "teardown goes on although its record could not be written",
                     {{"pod", record.key.pod},
                      {"volume", record.key.spec},
                      {"state", VolumeStateName(record.state)},
                      {"error", error}});
}

}  // namespace volumed
