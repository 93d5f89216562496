#include "volumehost/local_token_issuer.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/descriptor.h"
#include "base/random.h"
#include "volumehost/private_file.h"
#include "volumehost/signing_key.h"

namespace volumed {
namespace {

constexpr char kKeyFile[] = "signing-key.pem";
constexpr char kJwksFile[] = "jwks.json";
// Source: kubernetes pkg/apis/authentication/validation@v1.36.2 (minimum and maximum).
constexpr int64_t kMinExpirationSeconds = 600;
constexpr int64_t kMaxExpirationSeconds = int64_t{1} << 32;
// Source: token_manager.go@v1.36.2 (maxTTL and the 80 % rule).
constexpr int64_t kMaxAgeMillis = int64_t{24} * 3600 * 1000;
constexpr int64_t kRefreshPercent = 80;

Result<SigningKey> LoadOrMakeKey(int directory, const std::string& path) {
  const Result<Secret<std::string>> pem = ReadPrivateFile(directory, kKeyFile, path);
  if (pem.ok()) return SigningKey::FromPem(*pem).With(path);
  if (pem.error().sys_errno() != ENOENT) return pem.error();
  ASSIGN_OR_RETURN(SigningKey key, SigningKey::Generate());
  ASSIGN_OR_RETURN(const Secret<std::string> made, key.ToPem());
  RETURN_IF_ERROR(WriteFileDurably(directory, kKeyFile, made.Reveal(), 0600, path));
  return key;
}

}  // namespace

Result<std::unique_ptr<LocalTokenIssuer>> LocalTokenIssuer::Open(
    const LocalTokenIssuerOptions& options, const Clock& clock) {
  ASSIGN_OR_RETURN(const Descriptor directory, OpenPrivateDirectory(options.directory));
  const std::string prefix = options.directory + "/";
  ASSIGN_OR_RETURN(SigningKey key, LoadOrMakeKey(directory.get(), prefix + kKeyFile));
  // Written when it is another one only: a full disk must not keep an agent from starting.
  if (!HasText(directory.get(), kJwksFile, key.jwks())) {
    RETURN_IF_ERROR(
        WriteFileDurably(directory.get(), kJwksFile, key.jwks(), 0644, prefix + kJwksFile));
  }
  return std::unique_ptr<LocalTokenIssuer>(
      new LocalTokenIssuer(std::make_unique<SigningKey>(std::move(key)), options.issuer, clock));
}

LocalTokenIssuer::LocalTokenIssuer(std::unique_ptr<SigningKey> key, std::string issuer,
                                   const Clock& clock)
    : key_(std::move(key)), issuer_(std::move(issuer)), clock_(clock) {}

LocalTokenIssuer::~LocalTokenIssuer() = default;

const std::string& LocalTokenIssuer::jwks() const { return key_->jwks(); }

std::string LocalTokenIssuer::Issuer() const { return issuer_ + " " + key_->key_id(); }

Result<ServiceAccountToken> LocalTokenIssuer::GetServiceAccountToken(const TokenRequest& request) {
  if (request.expiration_seconds < kMinExpirationSeconds ||
      request.expiration_seconds > kMaxExpirationSeconds) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "expirationSeconds " + std::to_string(request.expiration_seconds) +
                                 " of a service account token is not between 600 and 2^32");
  }
  const int64_t now = clock_.WallUnixMillis();
  const CacheKey cache_key{request.pod_uid.str(), request.ns,       request.service_account,
                           request.pod_name,      request.audience, request.expiration_seconds};
  {
    MutexLock lock(mu_);
    if (const auto found = cache_.find(cache_key); found != cache_.end()) {
      // Nobody takes a token that is not valid yet ("nbf"): the wall clock was set back.
      const bool from_the_future = found->second.issued_unix_ms > now;
      if (now < found->second.refresh_unix_ms && !from_the_future) return found->second;
    }
  }
  // Signing takes a tenth of a millisecond of a processor: others sign beside it.
  ASSIGN_OR_RETURN(ServiceAccountToken token, Issue(request, now));
  MutexLock lock(mu_);
  DropExpired(now);
  cache_.insert_or_assign(cache_key, token);
  first_expiry_unix_ms_ = std::min(first_expiry_unix_ms_, token.expires_unix_ms);
  return token;
}

Result<ServiceAccountToken> LocalTokenIssuer::Issue(const TokenRequest& request,
                                                    int64_t now_unix_ms) const {
  const int64_t issued = now_unix_ms / 1000;
  const int64_t expires = issued + request.expiration_seconds;
  const nlohmann::json header = {{"alg", "ES256"}, {"kid", key_->key_id()}};
  const nlohmann::json claims = {
      {"iss", issuer_},
      {"sub", "system:serviceaccount:" + request.ns + ":" + request.service_account},
      {"aud", nlohmann::json::array({request.audience.empty() ? issuer_ : request.audience})},
      {"iat", issued},
      {"nbf", issued},
      {"exp", expires},
      {"jti", NewUuid()},
      {"kubernetes.io",
       {{"namespace", request.ns},
        {"pod", {{"name", request.pod_name}, {"uid", request.pod_uid.str()}}},
        {"serviceaccount", {{"name", request.service_account}}}}}};
  // `replace`: a name that is not UTF-8 must not become an exception.
  const auto dump = [](const nlohmann::json& json) {
    return Base64Url(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  const std::string signed_part = dump(header) + "." + dump(claims);
  ASSIGN_OR_RETURN(const std::string signature, key_->Sign(signed_part));
  ServiceAccountToken token;
  token.token = Secret<std::string>(signed_part + "." + Base64Url(signature));
  token.issued_unix_ms = issued * 1000;
  token.expires_unix_ms = expires * 1000;
  token.refresh_unix_ms =
      issued * 1000 +
      std::min(request.expiration_seconds * 1000 / 100 * kRefreshPercent, kMaxAgeMillis);
  return token;
}

void LocalTokenIssuer::DropExpired(int64_t now_unix_ms) {
  if (now_unix_ms < first_expiry_unix_ms_) return;
  first_expiry_unix_ms_ = INT64_MAX;
  for (auto entry = cache_.begin(); entry != cache_.end();) {
    if (entry->second.expires_unix_ms <= now_unix_ms) {
      entry = cache_.erase(entry);
    } else {
      first_expiry_unix_ms_ = std::min(first_expiry_unix_ms_, entry->second.expires_unix_ms);
      ++entry;
    }
  }
}

void LocalTokenIssuer::DeleteServiceAccountTokens(const PodUid& pod) {
  MutexLock lock(mu_);
  auto entry = cache_.lower_bound(CacheKey(pod.str(), "", "", "", "", INT64_MIN));
  while (entry != cache_.end() && std::get<0>(entry->first) == pod.str()) {
    entry = cache_.erase(entry);
  }
}

}  // namespace volumed
