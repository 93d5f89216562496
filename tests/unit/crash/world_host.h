// What the agent of a CrashWorld asks of others on its node: tokens for pods, and processes that
// end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "unit/crash/crash_world.h"
#include "volumehost/volume_host.h"
#include "volumemanager/watch/consumer_watch.h"

namespace volumed {

// Tokens that change at a moment of the world's, so that runs can be compared.
class WorldTokens final : public HostTokens {
 public:
  explicit WorldTokens(const CrashWorld& world) : world_(world) {}
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) override;
  void DeleteServiceAccountTokens(const PodUid&) override {}

 private:
  const CrashWorld& world_;
};

// Watches the world's processes.
class WorldConsumerWatch final : public ConsumerWatch {
 public:
  explicit WorldConsumerWatch(const CrashWorld& world) : world_(world) {}
  Result<WatchedConsumer> Watch(uint64_t id, const ConsumerTarget& target,
                                std::function<void()> gone) override;
  void Unwatch(uint64_t id) override { watches_.erase(id); }
  // Tells whose process is no more; `takes_all_for_gone` is a mistake.
  void LookAgain(bool takes_all_for_gone);

 private:
  struct Watched {
    int64_t pid = 0;
    std::function<void()> gone;
  };
  const CrashWorld& world_;
  std::map<uint64_t, Watched> watches_;
};

}  // namespace volumed
