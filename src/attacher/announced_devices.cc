#include "attacher/announced_devices.h"

#include "base/strings.h"

namespace volumed {
namespace {

// If more devices than this are announced while one of them is wanted, the others are opened when
// their turn comes, as if nobody had announced them.
constexpr size_t kMostQueued = 256;

bool IsMadeOfOthers(const CatalogDevice& device) {
  return StripPrefix(device.name, "dm-") || StripPrefix(device.name, "md");
}

}  // namespace

void AnnouncedDevices::Announce(const CatalogDevice& device, bool by_program) {
  const auto known = entries_.find(device.number);
  if (by_program) {
    // This number belongs to another disk than before, and nothing was heard of the change, so what
    // was known of it is void. The disk is opened after udevd has finished with it, and only if
    // somebody waits: most disks that are announced anew have long been in use.
    const bool is_other =
        known != entries_.end() && known->second.device.disk_sequence != device.disk_sequence;
    if (is_other) Forget(device.number);
    return;
  }
  if (known != entries_.end() && known->second.state == State::kAsked) {
    known->second.again = true;
    known->second.gone = false;
    known->second.device = device;
    return;
  }
  Forget(device.number);
  if (!device.whole_disk || device.disk_sequence == 0 || IsMadeOfOthers(device) ||
      queue_.size() >= kMostQueued) {
    return;
  }
  entries_[device.number].device = device;
  queue_.push_back(device.number);
}

void AnnouncedDevices::Forget(DeviceNumber number) {
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return;
  if (entry->second.state == State::kAsked) {
    entry->second.gone = true;  // those who joined are to hear of it
    return;
  }
  entries_.erase(entry);
  std::erase(queue_, number);
}

void AnnouncedDevices::Clear() {
  std::vector<DeviceNumber> numbers;
  for (const auto& [number, entry] : entries_) numbers.push_back(number);
  for (const DeviceNumber number : numbers) Forget(number);
}

std::optional<CatalogDevice> AnnouncedDevices::TakeNext() {
  if (queue_.empty()) return std::nullopt;
  Entry& entry = entries_.at(queue_.front());
  queue_.pop_front();
  entry.state = State::kAsked;
  entry.again = false;
  ++asked_;
  return entry.device;
}

std::vector<AnnouncedDevices::Then> AnnouncedDevices::Answered(const CatalogDevice& device,
                                                               const Result<DeviceFacts>& facts) {
  --asked_;
  const auto found = entries_.find(device.number);
  Entry& entry = found->second;
  if (entry.again && !entry.gone) {
    entry.state = State::kQueued;
    queue_.push_front(device.number);
    return {};
  }
  std::vector<Then> joined = std::move(entry.joined);
  if (!entry.gone && facts.ok() && facts->identity.disk_sequence == entry.device.disk_sequence) {
    entry.state = State::kKnown;
    entry.facts = *facts;
    entry.joined.clear();
  } else {
    entries_.erase(found);
  }
  return joined;
}

const DeviceFacts* AnnouncedDevices::Find(const CatalogDevice& device) const {
  const auto found = entries_.find(device.number);
  if (found == entries_.end() || found->second.state != State::kKnown) return nullptr;
  const Entry& entry = found->second;
  return entry.device.disk_sequence == device.disk_sequence ? &entry.facts : nullptr;
}

bool AnnouncedDevices::Join(const CatalogDevice& device, Then then) {
  const auto found = entries_.find(device.number);
  if (found == entries_.end()) return false;
  if (found->second.state != State::kAsked ||
      found->second.device.disk_sequence != device.disk_sequence) {
    if (found->second.state == State::kQueued) Forget(device.number);
    return false;
  }
  found->second.joined.push_back(std::move(then));
  return true;
}

}  // namespace volumed
