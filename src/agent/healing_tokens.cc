#include "agent/healing_tokens.h"

#include <utility>

namespace volumed {

void HealingTokens::Use(std::unique_ptr<HostTokens> tokens) {
  MutexLock lock(mu_);
  tokens_ = std::move(tokens);
}

void HealingTokens::Refuse(Error why) {
  MutexLock lock(mu_);
  why_ = std::move(why);
}

HostTokens* HealingTokens::Find() const {
  MutexLock lock(mu_);
  return tokens_.get();
}

Result<ServiceAccountToken> HealingTokens::GetServiceAccountToken(const TokenRequest& request) {
  if (HostTokens* const tokens = Find()) return tokens->GetServiceAccountToken(request);
  MutexLock lock(mu_);
  return why_.With("no service account tokens");
}

void HealingTokens::DeleteServiceAccountTokens(const PodUid& pod) {
  if (HostTokens* const tokens = Find()) tokens->DeleteServiceAccountTokens(pod);
}

std::string HealingTokens::Issuer() const {
  const HostTokens* const tokens = Find();
  return tokens == nullptr ? "" : tokens->Issuer();
}

}  // namespace volumed
