// HealingTokens: the host's service account tokens, which may not be there yet: while the token key
// cannot be read, whoever asks is told why, and waits.
#pragma once

#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: any. Blocks: never.
class HealingTokens final : public HostTokens {
 public:
  // From now on those of `tokens`.
  void Use(std::unique_ptr<HostTokens> tokens) EXCLUDES(mu_);
  // Why there are none. REQUIRES: Use was not called.
  void Refuse(Error why) EXCLUDES(mu_);

  // Without tokens: the error given to Refuse, not applied.
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) override
      EXCLUDES(mu_);
  void DeleteServiceAccountTokens(const PodUid& pod) override EXCLUDES(mu_);
  std::string Issuer() const override EXCLUDES(mu_);

 private:
  HostTokens* Find() const EXCLUDES(mu_);

  mutable Mutex mu_;
  std::unique_ptr<HostTokens> tokens_ GUARDED_BY(mu_);  // once there, it stays
  Error why_ GUARDED_BY(mu_) = Error::NotApplied(Code::kUnavailable,
                                                 "the token issuer has not started yet");
};

}  // namespace volumed
