// LocalTokenIssuer: service account tokens without an API server. The agent signs them with a key
// that it made for itself; anybody who has the JWKS file can verify them.
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

// Where the key lies, and as whom the agent signs.
struct LocalTokenIssuerOptions {
  std::string directory;  // <root>/volumed/tokens; its parent exists
  // "iss", and the audience of a request that names none.
  std::string issuer = "https://volumed.local";
};

// The directory (0700) has signing-key.pem (0600, PKCS#8, P-256; made once and then kept) and
// jwks.json (0644, the public key, written at a start that finds another text in it: a full disk
// must not keep an agent from starting).
//
// Threads: any. Blocks: only Open(), which reads and writes the directory.
class LocalTokenIssuer final : public HostTokens {
 public:
  // `clock` outlives this object. Errors, all not applied: FailedPrecondition if the key file is
  // not a P-256 private key, or if others may read it (it is never replaced, since tokens signed
  // with it would become void); Internal if OpenSSL fails; those of the filesystem.
  static Result<std::unique_ptr<LocalTokenIssuer>> Open(const LocalTokenIssuerOptions& options,
                                                        const Clock& clock);
  ~LocalTokenIssuer() override;

  // Returns the cached token as long as it is younger than 24 h and in the first 80 % of its life;
  // else, or if the wall clock was set back to before it was issued, a new one. The cache is lost
  // with the agent. Errors, not applied: InvalidArgument for less than 600 s or more than 2^32 s;
  // Internal if OpenSSL fails.
  Result<ServiceAccountToken> GetServiceAccountToken(const TokenRequest& request) override
      EXCLUDES(mu_);
  void DeleteServiceAccountTokens(const PodUid& pod) override EXCLUDES(mu_);
  // "<issuer> <key id>".
  std::string Issuer() const override;

  // The public key as a JSON Web Key Set, as in jwks.json.
  const std::string& jwks() const;

 private:
  // Everything in which two requests can differ; the pod comes first, so that its tokens are found.
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
  // Before this time no cached token expires, so none has to be looked at.
  int64_t first_expiry_unix_ms_ GUARDED_BY(mu_) = INT64_MAX;
};

}  // namespace volumed
