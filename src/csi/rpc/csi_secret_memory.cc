#include "csi/rpc/csi_secret_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace volumed {
namespace {

// A value with all its encodings takes about 20 times its size; one that JSON escapes in several
// ways takes that of each.
constexpr size_t kMostValues = 256;
constexpr size_t kMostBytes = 64 * 1024;
// What is larger is a keystore, or tokens of many audiences, and would push out all others.
constexpr size_t kMostValueBytes = 16 * 1024;

}  // namespace

void CsiSecretMemory::Remember(const std::vector<std::string>& values) {
  MutexLock lock(mu_);
  std::vector<std::string> added;
  // Of more, the first ones would be forgotten at once.
  const size_t left_out = values.size() - std::min(values.size(), kMostValues);
  for (size_t i = left_out; i < values.size(); ++i) {
    const std::string& value = values[i];
    if (value.size() > kMostValueBytes) continue;
    if (const auto known = places_.find(value); known != places_.end()) {
      values_.splice(values_.end(), values_, known->second);
      continue;
    }
    values_.push_back(value);
    places_.emplace(values_.back(), std::prev(values_.end()));
    bytes_ += value.size();
    added.push_back(value);
  }
  spellings_.AddAll(added);
  while (values_.size() > kMostValues || bytes_ > kMostBytes) ForgetOldest();
}

bool CsiSecretMemory::HasRoomFor(const std::string& value) const {
  return value.size() <= kMostValueBytes && values_.size() < kMostValues &&
         bytes_ + value.size() <= kMostBytes;
}

void CsiSecretMemory::RememberEarlier(const std::vector<std::string>& values) {
  MutexLock lock(mu_);
  std::vector<std::string> added;
  for (const std::string& value : values) {
    if (places_.contains(value) || !HasRoomFor(value)) continue;
    values_.push_front(value);
    places_.emplace(values_.front(), values_.begin());
    bytes_ += value.size();
    added.push_back(value);
  }
  spellings_.AddAll(added);
}

void CsiSecretMemory::Withhold(std::string until) {
  MutexLock lock(mu_);
  withheld_until_ = std::move(until);
}

std::string CsiSecretMemory::withheld_until() const {
  MutexLock lock(mu_);
  return withheld_until_;
}

void CsiSecretMemory::ForgetOldest() {
  const std::string& oldest = values_.front();
  spellings_.Remove(oldest);
  bytes_ -= oldest.size();
  places_.erase(oldest);
  values_.pop_front();
}

bool CsiSecretMemory::Mark(std::string_view text, bool is_cut, std::vector<bool>& places,
                           size_t& steps) const {
  MutexLock lock(mu_);
  return spellings_.Mark(text, is_cut, places, steps);
}

bool CsiSecretMemory::empty() const {
  MutexLock lock(mu_);
  return values_.empty();
}

}  // namespace volumed
