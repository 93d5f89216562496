#include "attacher/device_waiter.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

// Whether nothing but a serial or a WWID leads to the device.
bool LedByOwnName(const DeviceQuery& query) {
  return query.links.empty() && !query.number && query.sysfs_path.empty();
}

std::string Seconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

std::string_view DeviceFoundByName(DeviceFoundBy by) {
  switch (by) {
    case DeviceFoundBy::kFirstLook:
      return "first look";
    case DeviceFoundBy::kEvent:
      return "event";
    case DeviceFoundBy::kSecondLook:
      return "second look";
  }
  return "unknown";
}

DeviceWaiter::DeviceWaiter(Scheduler& scheduler, Kernel& kernel, DeviceCatalog& catalog,
                           DeviceWaiterOptions options)
    : scheduler_(scheduler), kernel_(kernel), catalog_(catalog), options_(options) {
  catalog_.SetListener(this);
}

DeviceWaiter::~DeviceWaiter() {
  catalog_.SetListener(nullptr);
  while (!waits_.empty()) (void)Take(waits_.begin()->first);
  for (const auto& [id, timer] : identifying_) scheduler_.Cancel(timer);
  for (const auto& [number, cancel] : asking_) cancel->Cancel();
}

DeviceWaitId DeviceWaiter::Wait(DeviceQuery query, Deadline deadline, Completion done) {
  const DeviceWaitId id = ++last_id_;
  Waiting& wait = waits_[id];
  wait.query = std::move(query);
  wait.deadline = deadline;
  wait.done = std::move(done);
  wait.since = scheduler_.clock().Now();
  Status valid = ValidateDeviceQuery(wait.query);
  if (valid.ok() && deadline.infinite()) {
    valid = Error::NotApplied(Code::kInvalidArgument, "wait for a device: without a deadline");
  }
  if (!valid.ok()) {
    wait.deadline_timer = scheduler_.PostAfter(
        Duration::zero(), [this, id, error = valid.error()] { Take(id)(error); });
    return id;
  }
  for (std::string& key : DeviceKeys(wait.query)) index_.emplace(std::move(key), id);
  wait.deadline_timer =
      scheduler_.PostAfter(deadline.Remaining(scheduler_.clock()), [this, id] { Expire(id); });
  wait.recheck_after = options_.first_recheck;
  wait.recheck_timer = scheduler_.PostAfter(wait.recheck_after, [this, id] { Recheck(id); });
  if (LedByOwnName(wait.query)) {
    ++by_own_name_;
    RefreshKnown(false);
  }
  Look(id, wait);
  return id;
}

bool DeviceWaiter::Cancel(DeviceWaitId id) {
  if (waits_.count(id) == 0) return false;
  (void)Take(id);
  return true;
}

DeviceWaiterStats DeviceWaiter::stats() const {
  DeviceWaiterStats stats = stats_;
  stats.waiting = waits_.size();
  return stats;
}

DeviceWaiter::Completion DeviceWaiter::Take(DeviceWaitId id) {
  auto node = waits_.extract(id);
  Waiting& wait = node.mapped();
  scheduler_.Cancel(wait.deadline_timer);
  scheduler_.Cancel(wait.recheck_timer);
  if (wait.verification) wait.verification->Cancel();
  for (const std::string& key : DeviceKeys(wait.query)) {
    const auto [first, last] = index_.equal_range(key);
    const auto entry =
        std::find_if(first, last, [id](const auto& item) { return item.second == id; });
    if (entry != last) index_.erase(entry);
  }
  // A query that was refused has no timer for its second look, and was never counted.
  if (wait.recheck_timer != 0 && LedByOwnName(wait.query)) --by_own_name_;
  // Announcements that come while nobody waits are not kept.
  if (waits_.empty()) announced_.Clear();
  return std::move(wait.done);
}

// ---- what leads to a look -----------------------------------------------------------------------

void DeviceWaiter::OnDevice(const DeviceEvent& event) {
  ++stats_.events;
  if (listed_at_) {
    if (event.removed) {
      known_.Remove(event.record.number);
    } else {
      known_.Update(event.record);
    }
  }
  LookAtWaitsFor(DeviceKeys(event.record), scheduler_.clock().Now());
  NameDevices();
  TellOfChange(event);
}

void DeviceWaiter::TellOfChange(const DeviceEvent& event) {
  if (event.removed) {
    CatalogDevice last = event.record;
    if (const auto heard = heard_.find(event.record.number); heard != heard_.end()) {
      // The kernel tells the end of a device without its links, so they are taken from what was
      // known before.
      if (last.links.empty()) last.links = std::move(heard->second.links);
      heard_.erase(heard);
    }
    if (vanished_) vanished_(last);
    return;
  }
  const auto [heard, is_new] = heard_.try_emplace(event.record.number, event.record);
  const bool is_news = is_new || event.resized || heard->second != event.record;
  heard->second = event.record;
  if (appeared_ && is_news) appeared_(event.record);
}

void DeviceWaiter::OnAnnounced(const DeviceEvent& event) {
  if (waits_.empty()) return;
  if (event.removed) {
    announced_.Forget(event.record.number);
  } else {
    announced_.Announce(event.record, event.by_program);
    StartAnnounced();
  }
}

void DeviceWaiter::LookAtWaitsFor(const std::vector<std::string>& keys, TimePoint event_at) {
  std::vector<DeviceWaitId> concerned;
  for (const std::string& key : keys) {
    const auto [first, last] = index_.equal_range(key);
    for (auto entry = first; entry != last; ++entry) concerned.push_back(entry->second);
  }
  std::sort(concerned.begin(), concerned.end());
  concerned.erase(std::unique(concerned.begin(), concerned.end()), concerned.end());
  for (const DeviceWaitId id : concerned) {
    Waiting& wait = waits_.at(id);
    wait.trigger = DeviceFoundBy::kEvent;
    wait.event_at = event_at;
    Look(id, wait);
  }
}

void DeviceWaiter::OnEventsLost(const std::string&) {
  ++stats_.events_lost;
  announced_.Clear();
  if (by_own_name_ > 0) {
    RefreshKnown(true);
  } else {
    listed_at_.reset();
  }
  for (auto& [id, wait] : waits_) {
    wait.trigger = DeviceFoundBy::kSecondLook;
    Look(id, wait);
  }
}

void DeviceWaiter::Recheck(DeviceWaitId id) {
  const TimePoint now = scheduler_.clock().Now();
  if (now - source_checked_at_ >= options_.first_recheck) {
    source_checked_at_ = now;
    catalog_.CheckSource();
  }
  Waiting& wait = waits_.at(id);
  if (LedByOwnName(wait.query)) RefreshKnown(false);
  wait.trigger = DeviceFoundBy::kSecondLook;
  Look(id, wait);
  wait.recheck_after = std::min(2 * wait.recheck_after, options_.longest_recheck);
  wait.recheck_timer = scheduler_.PostAfter(wait.recheck_after, [this, id] { Recheck(id); });
}

// ---- the look -----------------------------------------------------------------------------------

// A look is always at what is there now: an event only says whom to look at, and may be old.
void DeviceWaiter::Look(DeviceWaitId id, Waiting& wait) {
  if (wait.verification) {
    wait.look_again = true;
    return;
  }
  ++stats_.looks;
  std::optional<Candidate> candidate = Choose(wait, FindCandidates(wait));
  if (candidate) Verify(id, wait, std::move(*candidate));
}

std::vector<DeviceWaiter::Candidate> DeviceWaiter::FindCandidates(const Waiting& wait) {
  const DeviceQuery& query = wait.query;
  if (!query.links.empty()) return FindByLinks(query);
  if (LedByOwnName(query)) return FindByOwnName(query);
  Result<std::optional<CatalogDevice>> record =
      query.number ? catalog_.Find(*query.number)
                   : catalog_.FindByName(query.sysfs_path.substr(query.sysfs_path.rfind('/') + 1));
  if (!record.ok() || !*record) return {};
  return {{std::move(**record), ""}};
}

std::vector<DeviceWaiter::Candidate> DeviceWaiter::FindByLinks(const DeviceQuery& query) {
  std::vector<Candidate> candidates;
  for (const std::string& path : query.links) {
    const DeviceLink link = catalog_.ReadLink(path);
    if (!link.number) continue;
    Result<std::optional<CatalogDevice>> record = catalog_.Find(*link.number);
    if (record.ok() && *record) candidates.push_back({std::move(**record), path});
  }
  return candidates;
}

std::vector<DeviceWaiter::Candidate> DeviceWaiter::FindByOwnName(const DeviceQuery& query) {
  const std::string key = DeviceKeys(query).front();
  std::vector<Candidate> candidates;
  for (const DeviceNumber number : known_.Bearers(key)) {
    Result<std::optional<CatalogDevice>> record = catalog_.Find(number);
    if (!record.ok() || !*record) continue;
    // A disk without a sequence cannot be told from the next one of its number, so what it said is
    // not kept.
    if ((*record)->disk_sequence != 0) known_.Update(**record);
    const std::vector<DeviceNumber> bearers = known_.Bearers(key);
    // Another device may have had the name when the event was made.
    if (std::find(bearers.begin(), bearers.end(), number) == bearers.end()) continue;
    candidates.push_back({std::move(**record), ""});
  }
  return candidates;
}

std::optional<DeviceWaiter::Candidate> DeviceWaiter::Choose(
    const Waiting& wait, std::vector<Candidate> candidates) const {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return !RefuseRecord(wait.query, candidate.record, candidate.link, catalog_.source()).empty();
  });
  if (candidates.empty()) return std::nullopt;
  // The caller has put its links in the order of its preference.
  if (candidates.size() == 1 || !wait.query.links.empty()) return std::move(candidates.front());
  // The candidates may be several paths to one disk with the multipath device above them, which is
  // then taken. If there is none, nothing tells which of them is meant.
  std::erase_if(candidates, [](const Candidate& candidate) {
    return !StripPrefix(candidate.record.name, "dm-");
  });
  if (candidates.size() != 1) return std::nullopt;
  return std::move(candidates.front());
}

// ---- the deadline -------------------------------------------------------------------------------

void DeviceWaiter::Expire(DeviceWaitId id) {
  ++stats_.expired;
  const Waiting& wait = waits_.at(id);
  const Duration waited = scheduler_.clock().Now() - wait.since;
  const Error error = Error::NotApplied(
      Code::kDeadlineExceeded, "device not there after " + Seconds(waited) + ": looked for " +
                                   DeviceQueryText(wait.query) + "; " + WhyNot(wait) +
                                   "; events come from " +
                                   std::string(DeviceEventSourceName(catalog_.source())));
  Take(id)(error);
}

std::string DeviceWaiter::WhyNot(const Waiting& wait) {
  std::vector<std::string> lines;
  for (const std::string& path : wait.query.links) {
    const DeviceLink link = catalog_.ReadLink(path);
    if (!link.exists) {
      lines.push_back(path + " does not exist");
    } else if (!link.number) {
      lines.push_back(path + (link.target.empty() ? "" : " points to " + link.target) +
                      ", where no block device is");
    }
  }
  const std::vector<Candidate> candidates = FindCandidates(wait);
  for (const Candidate& candidate : candidates) lines.push_back(WhyNot(wait, candidate));
  if (LedByOwnName(wait.query) && candidates.empty()) {
    lines.push_back("none of " + std::to_string(known_.size()) + " block devices bears that name");
  } else if (LedByOwnName(wait.query) && candidates.size() > 1) {
    lines.push_back("it cannot be told which of several it is");
  } else if (lines.empty()) {
    lines.push_back("there is no such device");
  }
  return Join(lines, "; ");
}

std::string DeviceWaiter::WhyNot(const Waiting& wait, const Candidate& candidate) const {
  const CatalogDevice& record = candidate.record;
  std::string text = record.node + " (" + record.number.ToString() + ")";
  if (!candidate.link.empty() && candidate.link != record.node) {
    text = candidate.link + " points to " + text;
  }
  std::string why = RefuseRecord(wait.query, record, candidate.link, catalog_.source());
  const auto refused = wait.refused.find(record.node);
  if (why.empty() && wait.verification && wait.verified_node == record.node) {
    why = "it does not answer";
  }
  if (why.empty() && refused != wait.refused.end()) why = refused->second;
  return text + ": " + (why.empty() ? "not opened yet" : why);
}

// ---- names of devices ---------------------------------------------------------------------------

void DeviceWaiter::RefreshKnown(bool now) {
  const TimePoint time = scheduler_.clock().Now();
  if (!now && listed_at_ && time - *listed_at_ < options_.first_recheck) return;
  const Result<std::vector<CatalogDevice>> records = catalog_.List();
  if (records.ok()) {
    listed_at_ = time;
    known_.Reset(*records);
  }
  NameDevices();
}

// Without udevd nobody says what a device is called, so each device is opened and asked.
void DeviceWaiter::NameDevices() {
  if (by_own_name_ == 0 || catalog_.source() == DeviceEventSource::kUdev) return;
  while (naming_ < options_.max_naming) {
    const std::optional<CatalogDevice> record = known_.TakeNameless();
    if (!record) return;
    ++naming_;
    const DeviceNumber number = record->number;
    Identify({record->node, Deadline::After(scheduler_.clock(), options_.identify_timeout),
              std::make_shared<CancelToken>(),
              [this, number](const Result<DeviceFacts>& facts) { Named(number, facts); }});
  }
}

void DeviceWaiter::Named(DeviceNumber number, const Result<DeviceFacts>& facts) {
  --naming_;
  if (facts.ok()) {
    known_.SetFacts(number, *facts);
    LookAtWaitsFor(OwnNameKeys(*facts), scheduler_.clock().Now());
  } else if (!facts.error().maybe_applied()) {
    known_.SetSilent(number);
  }
  NameDevices();
}

}  // namespace volumed
