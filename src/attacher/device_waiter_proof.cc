// DeviceWaiter: devices are opened and asked who they are, and what proves to be the wanted one is
// given out.
#include <utility>

#include "attacher/device_waiter.h"

namespace volumed {
namespace {

Result<DeviceFacts> FactsOf(Kernel& kernel, const std::string& node, const CallOptions& call) {
  Result<IdentifiedDevice> device =
      kernel.Call(IdentifyDevice{.path = {node, "", Resolve::kBeneath}}, call);
  if (!device.ok()) return device.error();
  return std::move(device->facts);
}

}  // namespace

void DeviceWaiter::Identify(Identification what) {
  to_identify_.push_back(std::move(what));
  StartIdentifications();
}

void DeviceWaiter::StartIdentifications() {
  while (!to_identify_.empty() &&
         identifying_.size() < static_cast<size_t>(options_.max_identifying)) {
    Identification what = std::move(to_identify_.front());
    to_identify_.pop_front();
    if (what.cancel->cancelled()) continue;
    ++stats_.verifications;
    const uint64_t id = ++last_identification_;
    identifying_[id] = scheduler_.PostAfter(options_.slow_after, [this, id] { Uncount(id); });
    const TimePoint latest = scheduler_.clock().Now() + options_.identify_timeout;
    if (what.deadline.when() > latest) what.deadline = Deadline::At(latest);
    scheduler_.RunBlocking([this, &scheduler = scheduler_, &kernel = kernel_, id,
                            what = std::move(what), watch = alive_.watch()]() mutable {
      CallOptions call;
      call.deadline = what.deadline;
      call.domain = DeviceDomain(what.node);
      call.cancel = what.cancel.get();
      Result<DeviceFacts> facts = FactsOf(kernel, what.node, call);
      scheduler.Post([this, id, facts = std::move(facts), then = std::move(what.then),
                      watch = std::move(watch)] {
        if (!watch.alive()) return;
        Uncount(id);
        then(facts);
      });
    });
  }
}

void DeviceWaiter::Uncount(uint64_t identification) {
  const auto counted = identifying_.find(identification);
  if (counted == identifying_.end()) return;
  scheduler_.Cancel(counted->second);
  identifying_.erase(counted);
  StartIdentifications();
  StartAnnounced();
}

void DeviceWaiter::StartAnnounced() {
  const auto running = [this] {
    return identifying_.size() + static_cast<size_t>(announced_.asked());
  };
  while (running() < static_cast<size_t>(options_.max_identifying)) {
    const std::optional<CatalogDevice> device = announced_.TakeNext();
    if (!device) return;
    ++stats_.verifications;
    CallOptions call;
    call.deadline = Deadline::After(scheduler_.clock(), options_.identify_timeout);
    call.domain = DeviceDomain(device->node);
    const auto cancel = asking_[device->number] = std::make_shared<CancelToken>();
    scheduler_.RunBlocking([this, &scheduler = scheduler_, &kernel = kernel_, device = *device,
                            call, cancel, watch = alive_.watch()]() mutable {
      call.cancel = cancel.get();
      Result<DeviceFacts> facts = FactsOf(kernel, device.node, call);
      scheduler.Post(
          [this, device = std::move(device), facts = std::move(facts), watch = std::move(watch)] {
            if (watch.alive()) Answered(device, facts);
          });
    });
  }
}

void DeviceWaiter::Answered(const CatalogDevice& device, const Result<DeviceFacts>& facts) {
  asking_.erase(device.number);
  for (const AnnouncedDevices::Then& then : announced_.Answered(device, facts)) then(facts);
  StartAnnounced();
}

void DeviceWaiter::Verify(DeviceWaitId id, Waiting& wait, Candidate candidate) {
  wait.verification = std::make_shared<CancelToken>();
  wait.verified_node = candidate.record.node;
  wait.look_again = false;
  const CatalogDevice record = candidate.record;
  const auto then = [this, id, attempt = ++wait.attempt,
                     candidate = std::move(candidate)](const Result<DeviceFacts>& facts) {
    Verified(id, attempt, candidate, facts);
  };
  if (const DeviceFacts* known = announced_.Find(record)) {
    ++stats_.known_early;
    scheduler_.Post(alive_.Guarded([then, facts = Result<DeviceFacts>(*known)] { then(facts); }));
    return;
  }
  Identification what{record.node, wait.deadline, wait.verification, then};
  // A disk may have been opened before it could answer, so only a good answer counts.
  const auto joined = [this, what, then](const Result<DeviceFacts>& facts) {
    if (what.cancel->cancelled()) return;
    if (!facts.ok()) return Identify(what);
    ++stats_.known_early;
    then(facts);
  };
  if (!announced_.Join(record, joined)) Identify(std::move(what));
}

void DeviceWaiter::Verified(DeviceWaitId id, uint64_t attempt, const Candidate& candidate,
                            const Result<DeviceFacts>& facts) {
  const auto found = waits_.find(id);
  if (found == waits_.end() || found->second.attempt != attempt) return;
  Waiting& wait = found->second;
  wait.verification.reset();
  const std::string why =
      facts.ok() ? RefuseFacts(wait.query, candidate.record, *facts) : facts.error().ToString();
  if (why.empty() && (!wait.look_again || IsStillThere(wait, candidate))) {
    Give(id, wait, candidate, *facts);
    return;
  }
  ++stats_.refused;
  wait.refused[candidate.record.node] = why.empty() ? "it changed while it was looked at" : why;
  if (wait.look_again) Look(id, wait);
}

// Whether nothing has happened to the device, or to its links, while it was opened.
bool DeviceWaiter::IsStillThere(const Waiting& wait, const Candidate& candidate) {
  const std::vector<Candidate> candidates = FindCandidates(wait);
  const std::optional<Candidate> now = Choose(wait, candidates);
  return now && now->record.number == candidate.record.number &&
         now->record.disk_sequence == candidate.record.disk_sequence;
}

void DeviceWaiter::Give(DeviceWaitId id, Waiting& wait, const Candidate& candidate,
                        const DeviceFacts& facts) {
  const TimePoint now = scheduler_.clock().Now();
  FoundDevice device;
  device.node = candidate.record.node;
  device.link = candidate.link;
  device.facts = facts;
  device.found_by = wait.trigger;
  device.waited = now - wait.since;
  switch (wait.trigger) {
    case DeviceFoundBy::kFirstLook:
      ++stats_.found_first;
      break;
    case DeviceFoundBy::kEvent:
      ++stats_.found_by_event;
      device.since_event = now - wait.event_at;
      break;
    case DeviceFoundBy::kSecondLook:
      ++stats_.found_by_second_look;
      break;
  }
  Take(id)(std::move(device));
}

}  // namespace volumed
