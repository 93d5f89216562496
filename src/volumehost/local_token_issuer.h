// LocalTokenIssuer: service account tokens without an API server: signed by a key that the agent
// made for itself, verified by whoever is given the JWKS file.
// Source: RFC 7515, RFC 7517, RFC 7518 section 3.4 (ES256), RFC 7519; claims as kubernetes
// pkg/serviceaccount/claims.go@v1.36.2; refresh as pkg/kubelet/token/token_manager.go@v1.36.2.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "volumehost/volume_host.h"

namespace volumed {

class SigningKey;

struct LocalTokenIssuerOptions {
  std::string directory;                         // <root>/volumed/tokens; its parent exists
  std::string issuer = "https://volumed.local";  // "iss", and the audience where none is asked for
};

// The directory (0700) holds signing-key.pem (0600, PKCS#8, P-256; made once and then kept) and
// jwks.json (0644, the public key, written anew at each start).
//
// Threads: any. Blocks: Open() reads and writes the directory; nothing else does.
class LocalTokenIssuer final : public HostTokens {
 public:
  // Errors, all not applied: FailedPrecondition for a key file that is not a P-256 private key or
  // that others may read (it is never replaced: tokens signed with it would become void); those of
  // the file system.
  static Result<std::unique_ptr<LocalTokenIssuer>> Open(const LocalTokenIssuerOptions& options,
                                                        const Clock& clock);
  ~LocalTokenIssuer() override;

  // The cached token while it is younger than 24 h and in the first 80 % of its life; else a new
  // one. InvalidArgument, not applied, for less than 600 s or more than 2^32 s.
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) override
      EXCLUDES(mu_);
  void DeleteServiceAccountTokens(const PodUid& pod) override EXCLUDES(mu_);
  std::string Issuer() const override;

  // The public key as a JSON Web Key Set, as in jwks.json.
  const std::string& jwks() const;

 private:
  // Everything that makes two requests different; the pod comes first, to be found by it.
  using CacheKey =
      std::tuple<std::string, std::string, std::string, std::string, std::string, int64_t>;

  LocalTokenIssuer(std::unique_ptr<SigningKey> key, std::string issuer, const Clock& clock);
  Result<ServiceAccountToken> Issue(const TokenRequest& request, int64_t now_unix_ms) const;
  void DropExpired(int64_t now_unix_ms) REQUIRES(mu_);

  const std::unique_ptr<SigningKey> key_;
  const std::string issuer_;
  const Clock& clock_;
  Mutex mu_;
  std::map<CacheKey, ServiceAccountToken> cache_ GUARDED_BY(mu_);
  // Before then none of these has expired: none is looked at.
  int64_t first_expiry_unix_ms_ GUARDED_BY(mu_) = INT64_MAX;
};

}  // namespace volumed
