#include "integration/csi/random/random_facts.h"

#include <algorithm>

namespace volumed::random_clients {

void CsiFact::Begin(uint64_t serial, CsiState wanted, uint64_t daemon) {
  Call call{.wanted = wanted, .daemon = daemon};
  for (auto& [begun, other] : calls_) {
    if (other.wanted == wanted || other.in_doubt_at != 0) continue;
    other.met_other = true;
    call.met_other = true;
  }
  if (wanted != state_) ++version_;
  calls_.emplace(serial, call);
}

void CsiFact::End(uint64_t begun, CsiEnd end, uint64_t serial, uint64_t daemon) {
  const auto found = calls_.find(begun);
  if (end == CsiEnd::kMaybe) {
    found->second.in_doubt_at = serial;
    found->second.daemon = daemon;
    return;
  }
  const Call call = found->second;
  calls_.erase(found);
  if (end == CsiEnd::kRefused) return;
  EndDoubts(begun, call.daemon);
  Set(call.met_other ? CsiState::kUnknown : call.wanted);
}

void CsiFact::EndDoubts(uint64_t begun, uint64_t daemon) {
  std::erase_if(calls_, [&](const auto& other) {
    const uint64_t at = other.second.in_doubt_at;
    return at != 0 && at < begun && other.second.daemon < daemon;
  });
}

void CsiFact::Set(CsiState state) {
  if (state != state_) ++version_;
  state_ = state;
}

CsiState CsiFact::known() const {
  const bool may_change = std::any_of(calls_.begin(), calls_.end(), [this](const auto& call) {
    return call.second.wanted != state_;
  });
  return may_change ? CsiState::kUnknown : state_;
}

}  // namespace volumed::random_clients
