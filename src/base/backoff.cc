#include "base/backoff.h"

#include <algorithm>

namespace volumed {

Backoff::Backoff(const Clock& clock) : Backoff(clock, Options()) {}

Backoff::Backoff(const Clock& clock, Options options) : clock_(clock), options_(options) {}

const Backoff::Entry* Backoff::Find(std::string_view key, std::string_view operation,
                                    std::string_view error_class) const {
  const auto found = entries_.find(EntryKey(key, operation, error_class));
  return found == entries_.end() ? nullptr : &found->second;
}

Duration Backoff::After(const Entry* entry) const {
  if (entry == nullptr) return std::min(options_.initial, options_.max);
  // Compared before doubling, so that no limit can overflow.
  return entry->delay > options_.max / 2 ? options_.max : entry->delay * 2;
}

Duration Backoff::RecordFailure(std::string_view key, std::string_view operation,
                                std::string_view error_class) {
  EntryKey entry_key(key, operation, error_class);
  auto at = entries_.find(entry_key);
  const Duration delay = After(at == entries_.end() ? nullptr : &at->second);
  if (at == entries_.end()) {
    MakeRoom();
    at = entries_.emplace(entry_key, Entry{}).first;
    at->second.age = oldest_first_.insert(oldest_first_.end(), std::move(entry_key));
  } else {
    oldest_first_.splice(oldest_first_.end(), oldest_first_, at->second.age);
  }
  Entry& entry = at->second;
  entry.delay = delay;
  entry.until = clock_.Now() + delay;
  ++entry.failures;
  return delay;
}

Duration Backoff::NextDelay(std::string_view key, std::string_view operation,
                            std::string_view error_class) const {
  return After(Find(key, operation, error_class));
}

std::optional<TimePoint> Backoff::BlockedUntil(std::string_view key,
                                               std::string_view operation) const {
  const TimePoint now = clock_.Now();
  std::optional<TimePoint> latest;
  for (auto at = entries_.lower_bound(EntryKey(key, operation, "")); at != entries_.end(); ++at) {
    if (std::get<0>(at->first) != key || std::get<1>(at->first) != operation) break;
    if (at->second.until > now && (!latest || at->second.until > *latest)) {
      latest = at->second.until;
    }
  }
  return latest;
}

int Backoff::Failures(std::string_view key, std::string_view operation,
                      std::string_view error_class) const {
  const Entry* entry = Find(key, operation, error_class);
  return entry == nullptr ? 0 : entry->failures;
}

void Backoff::Reset(std::string_view key) {
  auto at = entries_.lower_bound(EntryKey(key, "", ""));
  while (at != entries_.end() && std::get<0>(at->first) == key) at = Erase(at);
}

void Backoff::Reset(std::string_view key, std::string_view operation) {
  auto at = entries_.lower_bound(EntryKey(key, operation, ""));
  while (at != entries_.end() && std::get<0>(at->first) == key &&
         std::get<1>(at->first) == operation) {
    at = Erase(at);
  }
}

void Backoff::MakeRoom() {
  while (!entries_.empty() && entries_.size() >= options_.max_entries) {
    Erase(entries_.find(oldest_first_.front()));
  }
}

Backoff::Entries::iterator Backoff::Erase(Entries::iterator at) {
  oldest_first_.erase(at->second.age);
  return entries_.erase(at);
}

}  // namespace volumed
