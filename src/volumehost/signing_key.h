// SigningKey: a P-256 private key for ES256, and its public half as JSON. Private to volumehost.
// Source: RFC 7515 (JWS), RFC 7517 (JWK), RFC 7518 section 3.4 (ES256).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY; its headers stay in the .cc

namespace volumed {

// base64url without padding. Source: RFC 7515 section 2.
std::string Base64Url(std::string_view bytes);

// Immutable. Threads: any. Blocks: never. Errors: Internal, not applied, with OpenSSL's reason, but
// never a part of the key.
class SigningKey {
 public:
  // A new key, from OpenSSL's random numbers.
  static Result<SigningKey> Generate();
  // Errors: FailedPrecondition if it is not a P-256 private key.
  static Result<SigningKey> FromPem(const Secret<std::string>& pem);

  // The key in PKCS#8, unencrypted.
  Result<Secret<std::string>> ToPem() const;
  // The signature of `text`: the 64 bytes r || s over its SHA-256.
  Result<std::string> Sign(std::string_view text) const;
  // base64url of the SHA-256 of the public key's DER form.
  const std::string& key_id() const { return key_id_; }
  // The public half as a JSON Web Key Set: {"keys":[{...}]}. The same key gives the same text.
  const std::string& jwks() const { return jwks_; }

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  using Handle = std::unique_ptr<evp_pkey_st, Free>;

  static Result<SigningKey> FromHandle(Handle handle);
  SigningKey() = default;

  Handle handle_;
  std::string key_id_;
  std::string jwks_;
};

}  // namespace volumed
