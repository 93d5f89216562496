#include "volumehost/content_key.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/random.h"
#include "volumehost/private_file.h"

namespace volumed {
namespace {

constexpr char kKeyFile[] = "content-key";
constexpr size_t kKeyBytes = 32;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

void ContentKey::Mac::Free::operator()(evp_mac_ctx_st* context) const { EVP_MAC_CTX_free(context); }

Result<std::shared_ptr<const ContentKey>> ContentKey::Open(const std::string& directory) {
  ASSIGN_OR_RETURN(const Descriptor place, OpenPrivateDirectory(directory));
  const std::string path = directory + "/" + kKeyFile;
  Result<Secret<std::string>> key = ReadPrivateFile(place.get(), kKeyFile, path);
  const bool is_there = key.ok() || key.error().sys_errno() == ENOENT ||
                        key.error().code() == Code::kFailedPrecondition;
  if (!is_there) return key.error();
  if (!key.ok() || key->Reveal().size() != kKeyBytes) {
    std::string made(kKeyBytes, '\0');
    RandomBytes(std::as_writable_bytes(std::span<char>(made)));
    RETURN_IF_ERROR(WriteFileDurably(place.get(), kKeyFile, made, 0600, path));
    key = Secret<std::string>(std::move(made));
  }
  return std::shared_ptr<const ContentKey>(std::make_shared<ContentKey>(*key));
}

ContentKey::ContentKey(const Secret<std::string>& key) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free);
  keyed_.reset(mac ? EVP_MAC_CTX_new(mac.get()) : nullptr);
  std::array<char, 7> digest{"SHA256"};
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  const std::string& bytes = key.Reveal();
  if (keyed_ && EVP_MAC_init(keyed_.get(), Bytes(bytes), bytes.size(), params) != 1) keyed_.reset();
}

ContentKey::~ContentKey() = default;

ContentKey::Mac ContentKey::Begin() const {
  Mac mac;
  mac.context_.reset(keyed_ ? EVP_MAC_CTX_dup(keyed_.get()) : nullptr);
  mac.failed_ = mac.context_ == nullptr;
  return mac;
}

void ContentKey::Mac::Add(std::string_view text) {
  Add(uint64_t{text.size()});
  failed_ = failed_ || EVP_MAC_update(context_.get(), Bytes(text), text.size()) != 1;
}

void ContentKey::Mac::Add(uint64_t number) {
  std::array<unsigned char, sizeof(number)> bytes{};
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(number & 0xff);
    number >>= 8;
  }
  failed_ = failed_ || EVP_MAC_update(context_.get(), bytes.data(), bytes.size()) != 1;
}

std::string ContentKey::Mac::End() {
  std::string mac(EVP_MAX_MD_SIZE, '\0');
  size_t size = 0;
  auto* out = reinterpret_cast<unsigned char*>(mac.data());
  failed_ = failed_ || EVP_MAC_final(context_.get(), out, &size, mac.size()) != 1;
  if (failed_) return "";
  mac.resize(size);
  return mac;
}

}  // namespace volumed
