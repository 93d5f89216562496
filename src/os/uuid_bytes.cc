#include "os/uuid_bytes.h"

#include <algorithm>

namespace volumed {

std::optional<std::string> UuidBytes(const std::string& text) {
  std::string digits = text;
  digits.erase(std::remove(digits.begin(), digits.end(), '-'), digits.end());
  if (digits.size() != 2 * kUuidSize ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return std::nullopt;
  }
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoul(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace volumed
