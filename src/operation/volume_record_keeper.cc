#include "operation/volume_record_keeper.h"

#include <memory>
#include <utility>

namespace volumed {
namespace {

bool TakesAway(VolumeEvent call) {
  return call == VolumeEvent::kTearDown || call == VolumeEvent::kUnmapVolume ||
         call == VolumeEvent::kUnmountDevice || call == VolumeEvent::kDetach;
}

// What differs between the kinds of records.
template <typename T>
struct Kind;

template <>
struct Kind<PodVolumeRecord> {
  static constexpr const char* kName = kPodVolumeRecordKind;
  static Durability DurabilityOf(const PodVolumeRecord*, const PodVolumeRecord&) {
    return kPodVolumeRecordDurability;
  }
  static bool IsNothing(const PodVolumeRecord& record) {
    return record.state == VolumeState::kNotSetUp && !record.uncertain;
  }
  static VolumeState Begin(const PodVolumeRecord&, VolumeEvent) { return VolumeState::kNotSetUp; }
  // How that was found which this call takes away, if it is one that does.
  static std::optional<VolumeEvent> FoundFor(const PodVolumeRecord& from, VolumeEvent call) {
    if (from.state != VolumeState::kNotSetUp) return std::nullopt;
    if (call == VolumeEvent::kTearDown) return VolumeEvent::kFound;
    if (call == VolumeEvent::kUnmapVolume) return VolumeEvent::kFoundMapped;
    return std::nullopt;
  }
  static bool HoldsMore(const PodVolumeRecord&) { return false; }
  static void CarryOver(const PodVolumeRecord& before, PodVolumeRecord& facts) {
    facts.storage = before.storage;
  }
  // A row without storage is of an older program, and tells no less than before.
  static void TakeContent(const PodVolumeRecord& from, PodVolumeRecord& to) {
    to.published = from.published;
    if (to.storage.empty()) to.storage = from.storage;
  }
  static void TakeStorage(const GivenStorage& storage, PodVolumeRecord& record) {
    if (!storage.empty()) record.storage = storage;
  }
  static void Publish(const PublishedContent& published, PodVolumeRecord& record) {
    if (record.state == VolumeState::kSetUp && !record.uncertain) record.published = published;
  }
  static void Learn(const PodVolumeRecord&, PodVolumeRecord&) {}
  static void NoteDoubt(const PodVolumeRecord&, VolumeEvent, PodVolumeRecord&) {}
  static void ClearGone(VolumeState, PodVolumeRecord&) {}
  static std::vector<std::string> IndexedBy(const PodVolumeRecord& record) {
    if (!record.has_device) return {};
    return {record.unique_name.str()};
  }
  static OperationKey Shown(const PodVolumeKey& key) { return key; }
  static std::string Name(const PodVolumeKey& key) { return key.ToString(); }
};

template <>
struct Kind<DeviceRecord> {
  static constexpr const char* kName = kDeviceRecordKind;
  static Durability DurabilityOf(const DeviceRecord* before, const DeviceRecord& after) {
    return volumed::DurabilityOf(before, after);
  }
  static bool IsNothing(const DeviceRecord& record) { return IsGone(record); }
  // A mount that was found without a record is unmounted as if nobody had attached it.
  static VolumeState Begin(const DeviceRecord& facts, VolumeEvent call) {
    return RestingState(facts.attachable && call != VolumeEvent::kUnmountDevice);
  }
  // Also of a device that was mounted when the node went down, since its mount point may be left,
  // whether or not it could be attached again, and of one that was found mounted without a record,
  // and was attached since.
  static std::optional<VolumeEvent> FoundFor(const DeviceRecord& from, VolumeEvent call) {
    const bool may_be_mounted =
        from.state == VolumeState::kAttached || from.state == VolumeState::kAttaching;
    if (may_be_mounted && call == VolumeEvent::kUnmountDevice) return VolumeEvent::kFound;
    return std::nullopt;
  }
  static bool HoldsMore(const DeviceRecord& record) { return OutlivesDevice(record); }
  static void CarryOver(const DeviceRecord& before, DeviceRecord& facts) {
    facts.format = before.format;
    facts.mapped = before.mapped;
    facts.only_pod = before.only_pod;
    if (facts.size_bytes == 0) facts.size_bytes = before.size_bytes;
    if (facts.target_bytes == 0) facts.target_bytes = before.target_bytes;
    if (IsGone(before)) return;
    facts.limit_key = before.limit_key;
    if (facts.device_path.empty()) facts.device_path = before.device_path;
    facts.publish_context = before.publish_context;
    facts.attach_way = before.attach_way;
    facts.staged = before.staged;
    facts.node_id = before.node_id;
    facts.rest_of_mount = facts.rest_of_mount || before.rest_of_mount;
    facts.before_growth = before.before_growth;
    facts.attach_in_doubt = before.attach_in_doubt;
  }
  // What an unmount has to remember: the kernel forgets it.
  static void Learn(const DeviceRecord& facts, DeviceRecord& record) {
    if (facts.source) record.source = facts.source;
  }
  static void NoteDoubt(const DeviceRecord& before, VolumeEvent call, DeviceRecord& next) {
    if (call != VolumeEvent::kUnmountDevice || !before.attachable) return;
    const bool in_doubt = before.state == VolumeState::kAttaching ||
                          (before.state == VolumeState::kAttached && before.uncertain);
    next.attach_in_doubt = next.attach_in_doubt || in_doubt;
  }
  static void TakeContent(const DeviceRecord&, DeviceRecord&) {}
  static void TakeStorage(const GivenStorage&, DeviceRecord&) {}
  static void Publish(const PublishedContent&, DeviceRecord&) {}
  // A mount that is made anew takes the place of what was left of an older one, and an unmount
  // takes that away. What is left of a row, for its format or for the pod that alone may have the
  // volume, tells of no device.
  static void ClearGone(VolumeState in_call, DeviceRecord& record) {
    const bool was_unmounted =
        in_call == VolumeState::kUnmountingDevice && record.state == VolumeState::kAttached;
    if (record.state == VolumeState::kDeviceMounted || was_unmounted) record.rest_of_mount = false;
    record.uncertain = record.uncertain || (was_unmounted && record.attach_in_doubt);
    if (!IsInCall(record.state)) record.attach_in_doubt = false;
    if (!MayBeAtPlace(record.state)) record.before_growth.clear();
    if (!IsGone(record)) return;
    record.rest_of_mount = false;
    record.device_path.clear();
    record.publish_context.clear();
    record.attach_way = AttachWay::kNotKnown;
    record.staged = StagedState::kNotKnown;
    record.node_id.clear();
  }
  static std::vector<std::string> IndexedBy(const DeviceRecord& record) {
    std::vector<std::string> traits{MountPathTrait(record.device_mount_path)};
    if (record.is_block && record.mapped) {
      const DeviceIdentity& device = record.mapped->device;
      traits.push_back(MappedTrait(device.device_major, device.device_minor));
    }
    return traits;
  }
  static OperationKey Shown(const UniqueVolumeName& key) { return OperationKey(key); }
  static std::string Name(const UniqueVolumeName& key) { return key.str(); }
};

// Whether a row with `a` says the same as one with `b` would. Number and time of a call matter only
// to the call itself.
template <typename T>
bool SaysTheSame(T a, const T& b) {
  a.attempt = b.attempt;
  a.started_at_unix_ms = b.started_at_unix_ms;
  return a == b;
}

// A row that could not be changed so tells of content that the volume has no more. Then a start
// finds other content wanted, and sets it up again, as it does without a row.
template <typename T>
bool DiffersInContentAlone(T a, const T& b) {
  Kind<T>::TakeContent(b, a);
  return SaysTheSame(std::move(a), b);
}

template <typename T>
Error CannotCall(const T& record, VolumeEvent call) {
  const std::optional<std::string_view> why = WhyImpossible(record.state, call);
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + Kind<T>::Name(record.key) + " is " + std::string(VolumeStateName(record.state)) +
          ": " + std::string(VolumeEventName(call)) +
          " is impossible: " + std::string(why.value_or("no entry in the table of states")));
}

}  // namespace

bool CannotBeWritten(const Error& error) {
  return error.code() == Code::kResourceExhausted || IsDiskFault(error.sys_errno());
}

template <typename T>
RecordKeeper<T>::RecordKeeper(RecordStore& store, const Clock& clock, Logger& logger,
                              OperationObserver& observer, BootId boot_id)
    : store_(store),
      clock_(clock),
      logger_(logger),
      observer_(observer),
      boot_id_(std::move(boot_id)) {}

template <typename T>
void RecordKeeper<T>::Restore(T record) {
  record = AfterRestart(std::move(record), boot_id_);
  if (record.attempt > last_attempt_.load()) last_attempt_.store(record.attempt);
  const Key key = record.key;
  const MutexLock lock(mu_);
  PutEntry(key, Entry{.record = std::move(record), .stored = true});
}

template <typename T>
void RecordKeeper<T>::PutEntry(const Key& key, Entry entry) {
  const auto [at, is_new] = entries_.try_emplace(key);
  const std::vector<std::string> traits = Kind<T>::IndexedBy(entry.record);
  if (is_new || Kind<T>::IndexedBy(at->second.record) != traits) {
    if (!is_new) LeaveIndex(at->second.record, key);
    for (const std::string& trait : traits) keys_by_trait_[trait].insert(key);
  }
  at->second = std::move(entry);
}

template <typename T>
void RecordKeeper<T>::EraseEntry(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  LeaveIndex(found->second.record, key);
  entries_.erase(found);
}

template <typename T>
void RecordKeeper<T>::LeaveIndex(const T& record, const Key& key) {
  for (const std::string& trait : Kind<T>::IndexedBy(record)) {
    const auto keys = keys_by_trait_.find(trait);
    keys->second.erase(key);
    if (keys->second.empty()) keys_by_trait_.erase(keys);
  }
}

template <typename T>
const std::set<typename RecordKeeper<T>::Key>& RecordKeeper<T>::KeysOf(
    const std::string& trait) const {
  static const std::set<Key> kNone;
  const auto found = keys_by_trait_.find(trait);
  return found == keys_by_trait_.end() ? kNone : found->second;
}

template <typename T>
std::optional<T> RecordKeeper<T>::Find(const Key& key) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.gone) return std::nullopt;
  return found->second.record;
}

template <typename T>
typename RecordKeeper<T>::Entry RecordKeeper<T>::EntryOf(const Key& key) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  Entry none;  // as IsNothing() has it
  none.record.key = key;
  return none;
}

template <typename T>
RecordKeeper<T>::Turn::Turn(RecordKeeper& keeper, const Key& key, IfTaken if_taken)
    : keeper_(keeper), key_(key) {
  const MutexLock lock(keeper_.mu_);
  is_mine_ = keeper_.turns_.insert(key_).second;
  while (!is_mine_ && if_taken == IfTaken::kWait) {
    keeper_.AwaitTurnEnd();
    is_mine_ = keeper_.turns_.insert(key_).second;
  }
}

template <typename T>
RecordKeeper<T>::Turn::~Turn() {
  if (!is_mine_) return;
  const MutexLock lock(keeper_.mu_);
  keeper_.turns_.erase(key_);
  keeper_.turn_ended_.NotifyAll();
}

template <typename T>
Error RecordKeeper<T>::BeingWritten(const Key& key) {
  return Error::NotApplied(
      Code::kAborted,
      "volume " + Kind<T>::Name(key) + ": its record is being written by another operation");
}

template <typename T>
Result<typename RecordKeeper<T>::Entry> RecordKeeper<T>::PlanCall(const Entry& now, T facts,
                                                                  VolumeEvent call) {
  T from = now.record;
  const bool is_new = Kind<T>::IsNothing(from);
  if (is_new) from.state = Kind<T>::Begin(facts, call);
  const std::optional<VolumeEvent> found_by = Kind<T>::FoundFor(from, call);
  if (found_by) {
    // The record says that nothing is there, and yet somebody found something to take away.
    if (const std::optional<Transition> found = Next(from.state, *found_by)) {
      from.state = found->to;
      from.uncertain = found->uncertain;
    }
  }
  const std::optional<Transition> row = Next(from.state, call);
  if (!row) return CannotCall(from, call);
  // A teardown keeps what is known: its caller may know the name alone.
  const bool keep_facts = TakesAway(call) && !is_new;
  const bool was_uncertain = from.uncertain;
  Kind<T>::CarryOver(now.record, facts);
  Entry next{.record = keep_facts ? std::move(from) : facts, .stored = now.stored};
  if (keep_facts) Kind<T>::Learn(facts, next.record);
  next.record.state = row->to;
  next.record.uncertain = row->uncertain || was_uncertain;
  Kind<T>::NoteDoubt(now.record, call, next.record);
  next.record.boot_id = boot_id_;
  next.record.attempt = ++last_attempt_;
  next.record.started_at_unix_ms = clock_.WallUnixMillis();
  next.in_call = true;
  return next;
}

template <typename T>
Result<uint64_t> RecordKeeper<T>::BeginCall(T facts, VolumeEvent call) {
  std::vector<Call> one;
  one.push_back({std::move(facts), call});
  return BeginCalls(std::move(one)).front();
}

template <typename T>
std::vector<Result<uint64_t>> RecordKeeper<T>::BeginCalls(std::vector<Call> calls) {
  std::vector<Result<uint64_t>> begun;
  std::vector<Assignment> assignments;
  std::vector<size_t> of;  // the call that each assignment is of
  std::vector<T> before;
  std::vector<std::unique_ptr<Turn>> turns;  // until what they wrote is seen
  for (Call& call : calls) {
    turns.push_back(std::make_unique<Turn>(*this, call.facts.key, IfTaken::kDoNothing));
    if (!turns.back()->is_mine()) {
      begun.push_back(BeingWritten(call.facts.key));
      continue;
    }
    const Entry now = EntryOf(call.facts.key);
    Result<Entry> next = PlanCall(now, std::move(call.facts), call.event);
    if (!next.ok()) {
      begun.push_back(next.error());
      continue;
    }
    const bool written = now.stored && !now.gone && SaysTheSame(now.record, next->record);
    of.push_back(begun.size());
    begun.push_back(next->record.attempt);
    before.push_back(now.record);
    assignments.push_back({*std::move(next), written ? RowEffect::kNone : RowEffect::kPut});
  }
  const std::vector<Status> assigned = AssignAll(assignments);
  for (size_t i = 0; i < assigned.size(); ++i) {
    if (assigned[i].ok()) continue;
    const Entry& next = assignments[i].next;
    Status status = assigned[i];
    const bool can_do_without =
        TakesAway(calls[of[i]].event) || DiffersInContentAlone(before[i], next.record);
    if (can_do_without && next.stored && CannotBeWritten(status.error())) {
      LogTolerated(next.record, status.error());
      status = Assign(next, RowEffect::kNone);
    }
    if (!status.ok()) begun[of[i]] = status.error();
  }
  return begun;
}

template <typename T>
Result<typename RecordKeeper<T>::Assignment> RecordKeeper<T>::PlanEnd(const Entry& now,
                                                                      const CallEnd& end) {
  if (now.record.attempt != end.attempt) {
    return Error::NotApplied(Code::kAborted,
                             "volume " + Kind<T>::Name(end.key) + " has moved on since call " +
                                 std::to_string(end.attempt) + ", whose answer is late");
  }
  const VolumeEvent event = AnswerEvent(end.answer, now.record.uncertain);
  const std::optional<Transition> row = Next(now.record.state, event);
  if (!row) return CannotCall(now.record, event);
  Entry next = now;
  next.in_call = false;
  next.record.state = row->to;
  next.record.uncertain = row->uncertain;
  Kind<T>::ClearGone(now.record.state, next.record);
  if (!end.published.mac.empty()) Kind<T>::Publish(end.published, next.record);
  Kind<T>::TakeStorage(end.storage, next.record);
  RowEffect effect = RowEffect::kPut;
  if (Kind<T>::IsNothing(next.record) && !Kind<T>::HoldsMore(next.record)) {
    effect = RowEffect::kRemove;
  } else if (now.stored && SaysTheSame(now.record, next.record)) {
    effect = RowEffect::kNone;
  }
  return Assignment{std::move(next), effect};
}

template <typename T>
Status RecordKeeper<T>::EndUnwritten(const Entry& now, const Assignment& planned, CallAnswer answer,
                                     const Error& error) {
  if (planned.row == RowEffect::kRemove && answer == CallAnswer::kDone && CannotBeWritten(error)) {
    LogTolerated(planned.next.record, error);
    Entry gone = planned.next;
    gone.gone = true;
    return Assign(std::move(gone), RowEffect::kNone);
  }
  if (DiffersInContentAlone(now.record, planned.next.record) && CannotBeWritten(error)) {
    LogTolerated(planned.next.record, error);
    return Assign(planned.next, RowEffect::kNone);
  }
  // The row says that the call is being made. A restart would call that uncertain; so is it now.
  Entry uncertain = now;
  uncertain.in_call = false;
  uncertain.record.uncertain = true;
  RETURN_IF_ERROR(Assign(std::move(uncertain), RowEffect::kNone));
  return error.AsMaybeApplied();
}

template <typename T>
std::vector<Status> RecordKeeper<T>::EndCalls(const std::vector<CallEnd>& ends) {
  std::vector<Status> ended(ends.size());
  std::vector<Assignment> assignments;
  std::vector<size_t> of;  // the end that each assignment is of
  std::vector<Entry> before;
  for (size_t i = 0; i < ends.size(); ++i) {
    Entry now = EntryOf(ends[i].key);
    Result<Assignment> planned = PlanEnd(now, ends[i]);
    if (!planned.ok()) {
      ended[i] = planned.error();
      continue;
    }
    of.push_back(i);
    before.push_back(std::move(now));
    assignments.push_back(*std::move(planned));
  }
  const std::vector<Status> assigned = AssignAll(assignments);
  for (size_t i = 0; i < assigned.size(); ++i) {
    if (assigned[i].ok()) continue;
    ended[of[i]] = EndUnwritten(before[i], assignments[i], ends[of[i]].answer, assigned[i].error());
  }
  return ended;
}

// Nobody knows what a row says that could not be removed.
template <typename T>
bool RecordKeeper<T>::IsToBeSynced(const Entry& now, const T& next) {
  if (now.gone) return true;
  return Kind<T>::DurabilityOf(now.stored ? &now.record : nullptr, next) == Durability::kPowerLoss;
}

template <typename T>
std::vector<Status> RecordKeeper<T>::AssignAll(std::vector<Assignment> assignments) {
  std::vector<RowChange> changes;
  std::vector<size_t> of;  // the assignment that each change is of
  Durability durability = Durability::kProcess;
  for (size_t i = 0; i < assignments.size(); ++i) {
    const T& record = assignments[i].next.record;
    switch (assignments[i].row) {
      case RowEffect::kNone:
        continue;
      case RowEffect::kPut:
        changes.push_back({EncodeRecord(record), /*remove=*/false});
        break;
      case RowEffect::kRemove:
        changes.push_back({{Kind<T>::kName, RecordKey(record.key), 0, {}}, /*remove=*/true});
        break;
    }
    of.push_back(i);
    if (IsToBeSynced(EntryOf(record.key), record)) durability = Durability::kPowerLoss;
  }
  std::vector<Status> assigned(assignments.size());
  if (!changes.empty()) {
    std::vector<Status> written = store_.Write(changes, durability);
    for (size_t i = 0; i < of.size(); ++i) assigned[of[i]] = std::move(written[i]);
  }
  for (size_t i = 0; i < assignments.size(); ++i) {
    if (assigned[i].ok()) Show(std::move(assignments[i]));
  }
  return assigned;
}

template <typename T>
void RecordKeeper<T>::Show(Assignment assignment) {
  Entry& next = assignment.next;
  if (assignment.row == RowEffect::kPut) next.stored = true;
  const Key key = next.record.key;
  const VolumeState state = next.record.state;
  const bool uncertain = next.record.uncertain;
  {
    const MutexLock lock(mu_);
    if (Kind<T>::IsNothing(next.record) && !next.gone && !Kind<T>::HoldsMore(next.record)) {
      EraseEntry(key);
    } else {
      PutEntry(key, std::move(next));
    }
  }
  observer_.StateAssigned(Kind<T>::Shown(key), state, uncertain);
}

template <typename T>
void RecordKeeper<T>::LogTolerated(const T& record, const Error& error) {
  logger_.LogLimited("record-tolerated", LogLevel::kWarning,
                     "an operation goes on although its record could not be written",
                     {{"volume", Kind<T>::Name(record.key)},
                      {"state", VolumeStateName(record.state)},
                      {"error", error}});
}

template class RecordKeeper<PodVolumeRecord>;
template class RecordKeeper<DeviceRecord>;

}  // namespace volumed
