#include "kube/digest.h"

#include <openssl/sha.h>

#include <array>

namespace volumed {

namespace {

template <size_t kBytes>
std::string Hex(const std::array<unsigned char, kBytes>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return Hex(digest);
}

std::string HalfSha256Hex(std::string_view text) {
  return Sha256Hex(text).substr(0, SHA256_DIGEST_LENGTH);
}

std::string Sha1Hex(std::string_view text) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return Hex(digest);
}

}  // namespace volumed
