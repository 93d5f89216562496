#include "unit/crash/world_host.h"

#include <string>
#include <utility>
#include <vector>

namespace volumed {

Result<ServiceAccountToken> WorldTokens::GetServiceAccountToken(const TokenRequest&) {
  const bool rotated = world_.clock.WallUnixMillis() >= world_.token_rotation_unix_ms;
  ServiceAccountToken token;
  token.token = Secret<std::string>(rotated ? "token-2" : "token-1");
  token.refresh_unix_ms = world_.token_rotation_unix_ms + (rotated ? 1'000'000'000 : 0);
  token.expires_unix_ms = token.refresh_unix_ms + 600'000;
  return token;
}

Result<WatchedConsumer> WorldConsumerWatch::Watch(uint64_t id, const ConsumerTarget& target,
                                                  std::function<void()> gone) {
  const auto process = world_.processes.find(target.pid);
  if (process == world_.processes.end() ||
      (target.pid_start_time != 0 && target.pid_start_time != process->second)) {
    return Error::NotApplied(Code::kFailedPrecondition, "no such process");
  }
  watches_[id] = {target.pid, std::move(gone)};
  return WatchedConsumer{process->second, "pid " + std::to_string(target.pid)};
}

void WorldConsumerWatch::LookAgain(bool takes_all_for_gone) {
  std::vector<std::function<void()>> gone;
  for (auto at = watches_.begin(); at != watches_.end();) {
    if (world_.processes.contains(at->second.pid) && !takes_all_for_gone) {
      ++at;
    } else {
      gone.push_back(at->second.gone);
      at = watches_.erase(at);
    }
  }
  for (const auto& call : gone) call();
}

}  // namespace volumed
