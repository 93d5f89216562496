#include "volumehost/signing_key.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <array>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/base64.h"

namespace volumed {
namespace {

constexpr size_t kCoordinateBytes = 32;  // P-256

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeSignature {
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};

Error OpenSslError(const std::string& what) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return Error::NotApplied(Code::kInternal, what + ": " + reason.data());
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// ECDSA's DER form as the fixed-width form that JWS wants.
Result<std::string> RawSignature(const std::vector<unsigned char>& der) {
  const unsigned char* cursor = der.data();
  const std::unique_ptr<ECDSA_SIG, FreeSignature> signature(
      d2i_ECDSA_SIG(nullptr, &cursor, static_cast<long>(der.size())));
  std::string raw(2 * kCoordinateBytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  constexpr int kWidth = static_cast<int>(kCoordinateBytes);
  if (!signature || BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, kWidth) != kWidth ||
      BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + kCoordinateBytes, kWidth) != kWidth) {
    return OpenSslError("decode a signature");
  }
  return raw;
}

Result<std::string> KeyId(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return OpenSslError("encode the public key");
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(der, static_cast<size_t>(size), reinterpret_cast<unsigned char*>(digest.data()));
  OPENSSL_free(der);
  return Base64Url(digest);
}

// The public point, uncompressed: 4, x, y. Source: SEC 1 section 2.3.3.
Result<std::string> PublicPoint(EVP_PKEY* key) {
  std::string point(1 + 2 * kCoordinateBytes, '\0');
  size_t size = 0;
  if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY,
                                      reinterpret_cast<unsigned char*>(point.data()), point.size(),
                                      &size) != 1) {
    return OpenSslError("read the public key");
  }
  if (size != point.size() || point[0] != 4) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the public key is not an uncompressed point");
  }
  return point;
}

bool IsP256(EVP_PKEY* key) {
  std::array<char, 64> group{};
  size_t size = 0;
  return EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) == 1 &&
         std::string_view(group.data(), size) == SN_X9_62_prime256v1;
}

}  // namespace

std::string Base64Url(std::string_view bytes) {
  std::string text = Base64Encode(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  return text;
}

void SigningKey::Free::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

Result<SigningKey> SigningKey::FromHandle(Handle handle) {
  ASSIGN_OR_RETURN(std::string key_id, KeyId(handle.get()));
  ASSIGN_OR_RETURN(const std::string point, PublicPoint(handle.get()));
  const nlohmann::json jwk = {{"kty", "EC"},
                              {"crv", "P-256"},
                              {"alg", "ES256"},
                              {"use", "sig"},
                              {"kid", key_id},
                              {"x", Base64Url(point.substr(1, kCoordinateBytes))},
                              {"y", Base64Url(point.substr(1 + kCoordinateBytes))}};
  SigningKey key;
  key.handle_ = std::move(handle);
  key.key_id_ = std::move(key_id);
  key.jwks_ = nlohmann::json{{"keys", nlohmann::json::array({jwk})}}.dump();
  return key;
}

Result<SigningKey> SigningKey::Generate() {
  Handle handle(EVP_EC_gen("P-256"));
  if (!handle) return OpenSslError("make a P-256 key");
  return FromHandle(std::move(handle));
}

Result<SigningKey> SigningKey::FromPem(const Secret<std::string>& pem) {
  const std::string& text = pem.Reveal();
  const std::unique_ptr<BIO, FreeBio> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  // The empty password keeps OpenSSL from asking for one on the terminal.
  char no_password[] = "";
  Handle handle(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_password) : nullptr);
  if (!handle || !IsP256(handle.get())) {
    ERR_clear_error();
    return Error::NotApplied(Code::kFailedPrecondition, "not a P-256 private key in PEM form");
  }
  return FromHandle(std::move(handle));
}

Result<Secret<std::string>> SigningKey::ToPem() const {
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new(BIO_s_secmem()));
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), handle_.get(), nullptr, nullptr, 0, nullptr,
                                            nullptr) != 1) {
    return OpenSslError("encode the key");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return Secret<std::string>(std::string(data, static_cast<size_t>(size)));
}

Result<std::string> SigningKey::Sign(std::string_view text) const {
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  size_t size = 0;
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, handle_.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(text), text.size()) != 1) {
    return OpenSslError("prepare to sign");
  }
  std::vector<unsigned char> der(size);
  if (EVP_DigestSign(context.get(), der.data(), &size, Bytes(text), text.size()) != 1) {
    return OpenSslError("sign");
  }
  der.resize(size);
  return RawSignature(der);
}

}  // namespace volumed
