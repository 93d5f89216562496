#include "volumemanager/watch/consumers.h"

#include <utility>

namespace volumed {
namespace {

std::string Display(const HoldRecord& hold) {
  return hold.pid != 0 ? "pid " + std::to_string(hold.pid) : "cgroup " + hold.cgroup;
}

Status CheckRequest(const HoldRequest& request) {
  if ((request.pid != 0) == !request.cgroup.empty()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "a hold names either a process (pid) or a cgroup, and exactly one");
  }
  if (request.pid < 0) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "pid " + std::to_string(request.pid) + " is no process");
  }
  return OkStatus();
}

}  // namespace

Consumers::Consumers(Parts parts, BootId boot_id, std::function<void(const PodUid&)> released)
    : parts_(parts), boot_id_(std::move(boot_id)), released_(std::move(released)) {}

Consumers::~Consumers() {
  for (const auto& [pod, consumers] : pods_) {
    for (const auto& [key, entry] : consumers.by_key) parts_.watch.Unwatch(entry.watch_id);
  }
}

Result<Consumers::Entry> Consumers::StartWatch(const HoldRecord& hold, const std::string& key) {
  Entry entry{hold, Display(hold), next_watch_id_++};
  const ConsumerTarget target{hold.pid, hold.pid_start_time, hold.cgroup};
  ASSIGN_OR_RETURN(
      WatchedConsumer watched,
      parts_.watch.Watch(entry.watch_id, target, [this, pod = hold.pod, key] { Gone(pod, key); }));
  entry.record.pid_start_time = watched.pid_start_time;
  entry.label = std::move(watched.label);
  return entry;
}

void Consumers::Restore(const HoldRecord& hold) {
  const std::string key = RecordKey(hold);
  // There was a consumer, whatever became of it: its end, and not a time, decides when the pod may
  // leave.
  PodConsumers& consumers = pods_[hold.pod];
  consumers.had_one = true;
  if (hold.boot_id != boot_id_) {
    RemoveRecord(key, nullptr);
    return;
  }
  Result<Entry> entry = StartWatch(hold, key);
  if (entry.ok()) {
    consumers.by_key.insert_or_assign(key, std::move(entry).value());
    return;
  }
  if (entry.error().code() == Code::kFailedPrecondition) {
    parts_.log.Info("consumer has gone while no agent ran", {{"pod", hold.pod}, {"hold", key}});
    RemoveRecord(key, nullptr);
    return;
  }
  // The consumer may well live. It is better that a pod waits for a human than that it is unmounted
  // under its process.
  parts_.log.Error("consumer cannot be watched; release the hold by hand",
                   {{"pod", hold.pod}, {"hold", key}, {"error", entry.error()}});
  consumers.by_key.insert_or_assign(
      key, Entry{hold, Display(hold) + " (not watched: " + entry.error().message() + ")", 0});
}

void Consumers::MayBeHeld(const PodUid& pod, const std::string& why) {
  PodConsumers& consumers = pods_[pod];
  consumers.had_one = true;
  consumers.may_have = why;
}

void Consumers::Hold(const HoldRequest& request, std::function<void(Status)> done) {
  if (Status valid = CheckRequest(request); !valid.ok()) {
    parts_.scheduler.Post([done, valid] { done(valid); });
    return;
  }
  HoldRecord hold{request.pod, boot_id_, request.pid, 0, request.cgroup};
  const std::string key = RecordKey(hold);
  if (Entry* held = Find(request.pod, key)) {
    if (held->waiting != nullptr) {
      held->waiting->push_back(std::move(done));
    } else {
      parts_.scheduler.Post([done] { done(OkStatus()); });
    }
    return;
  }
  Result<Entry> entry = StartWatch(hold, key);
  if (!entry.ok()) {
    parts_.scheduler.Post([done, error = entry.error()] { done(error); });
    return;
  }
  hold = entry->record;
  const auto waiting = std::make_shared<Waiting>(1, std::move(done));
  entry->waiting = waiting;
  const uint64_t id = entry->watch_id;
  pods_[request.pod].by_key.emplace(key, std::move(entry).value());
  parts_.records.Put(EncodeRecord(hold), kHoldRecordDurability,
                     [this, pod = request.pod, key, id, waiting](const Status& written) {
                       Written(pod, key, id, written.ok());
                       for (const auto& answer : *waiting) answer(written);
                     });
}

// The hold may have ended meanwhile, and another one may have its key.
void Consumers::Written(const PodUid& pod, const std::string& key, uint64_t watch_id, bool ok) {
  Entry* const held = Find(pod, key);
  if (held == nullptr || held->watch_id != watch_id) return;
  held->waiting = nullptr;
  if (ok) {
    pods_.at(pod).had_one = true;
  } else {
    Drop(pod, key);
  }
}

Consumers::Entry* Consumers::Find(const PodUid& pod, const std::string& key) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return nullptr;
  const auto entry = found->second.by_key.find(key);
  return entry == found->second.by_key.end() ? nullptr : &entry->second;
}

void Consumers::Release(const HoldRequest& request, std::function<void(Status)> done) {
  Status valid = CheckRequest(request);
  const std::string key =
      RecordKey(HoldRecord{request.pod, boot_id_, request.pid, 0, request.cgroup});
  const auto pod = pods_.find(request.pod);
  if (valid.ok() && (pod == pods_.end() || !pod->second.by_key.contains(key))) {
    valid =
        Error::NotApplied(Code::kNotFound, "pod " + request.pod.str() + " is not held by " +
                                               Display({{}, {}, request.pid, 0, request.cgroup}));
  }
  if (!valid.ok()) {
    parts_.scheduler.Post([done, valid] { done(valid); });
    return;
  }
  pod->second.had_one = true;
  Drop(request.pod, key);
  RemoveRecord(key, std::move(done));
}

void Consumers::Gone(const PodUid& pod, const std::string& key) {
  parts_.log.Info("consumer has gone", {{"pod", pod}, {"hold", key}});
  if (const auto found = pods_.find(pod); found != pods_.end()) found->second.had_one = true;
  Drop(pod, key);
  RemoveRecord(key, nullptr);
}

void Consumers::Drop(const PodUid& pod, const std::string& key) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  const auto entry = found->second.by_key.find(key);
  if (entry == found->second.by_key.end()) return;
  parts_.watch.Unwatch(entry->second.watch_id);
  found->second.by_key.erase(entry);
  released_(pod);
}

void Consumers::ForgetPod(const PodUid& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  for (const auto& [key, entry] : found->second.by_key) {
    parts_.watch.Unwatch(entry.watch_id);
    RemoveRecord(key, nullptr);
  }
  pods_.erase(found);
}

bool Consumers::HasConsumers(const PodUid& pod) const {
  const auto found = pods_.find(pod);
  return found != pods_.end() && (!found->second.by_key.empty() || !found->second.may_have.empty());
}

bool Consumers::EverHadConsumers(const PodUid& pod) const {
  const auto found = pods_.find(pod);
  return found != pods_.end() && (found->second.had_one || !found->second.by_key.empty());
}

std::vector<std::string> Consumers::HeldBy(const PodUid& pod) const {
  std::vector<std::string> labels;
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return labels;
  for (const auto& [key, entry] : found->second.by_key) labels.push_back(entry.label);
  if (const std::string& why = found->second.may_have; !why.empty()) {
    labels.push_back("a process or cgroup whose record may be gone: " + why);
  }
  return labels;
}

void Consumers::RemoveRecord(const std::string& key, std::function<void(Status)> done) {
  // If the record cannot be removed, it is dropped at the next start, since its process is gone
  // then too.
  parts_.records.Remove(kHoldRecordKind, key, kHoldRecordDurability, std::move(done));
}

}  // namespace volumed
