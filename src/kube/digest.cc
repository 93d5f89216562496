#include "kube/digest.h"

#include <openssl/sha.h>

#include <array>

namespace volumed {

std::string Sha256Hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string HalfSha256Hex(std::string_view text) {
  return Sha256Hex(text).substr(0, SHA256_DIGEST_LENGTH);
}

}  // namespace volumed
