// HealingTokens: the host's service account tokens, which may come later than the agent. While the
// token key cannot be read, each caller gets the reason as an error, and its volume waits.
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
  // Answers with the tokens of `tokens` from now on.
  void Use(std::unique_ptr<HostTokens> tokens) EXCLUDES(mu_);
  // Sets the error for callers as long as there are no tokens. REQUIRES: Use was not called.
  void Refuse(Error why) EXCLUDES(mu_);

  // Errors, as long as there are no tokens: the one given to Refuse, or before that Unavailable,
  // not applied; afterwards those of the tokens.
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) override
      EXCLUDES(mu_);
  // Has no effect as long as there are no tokens.
  void DeleteServiceAccountTokens(const PodUid& pod) override EXCLUDES(mu_);
  // "" as long as there are no tokens.
  std::string Issuer() const override EXCLUDES(mu_);

 private:
  HostTokens* Find() const EXCLUDES(mu_);

  mutable Mutex mu_;
  std::unique_ptr<HostTokens> tokens_ GUARDED_BY(mu_);  // never reset once it is set
  Error why_ GUARDED_BY(mu_) = Error::NotApplied(Code::kUnavailable,
                                                 "the token issuer has not started yet");
};

}  // namespace volumed
