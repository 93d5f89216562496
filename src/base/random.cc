#include "base/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace volumed {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void AppendHex(std::string& text, std::byte value) {
  text += kHexDigits[std::to_integer<unsigned>(value >> 4)];
  text += kHexDigits[std::to_integer<unsigned>(value & std::byte{0x0f})];
}

}  // namespace

void RandomBytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0) {
      if (errno == EINTR) continue;
      // Names that are not random would collide; there is no safe way on.
      std::abort();
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

std::string RandomHex(size_t digits) {
  std::vector<std::byte> bytes((digits + 1) / 2);
  RandomBytes(bytes);
  std::string text;
  for (const std::byte value : bytes) AppendHex(text, value);
  text.resize(digits);
  return text;
}

std::string NewUuid() {
  std::array<std::byte, 16> bytes{};
  RandomBytes(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};  // version 4
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};  // the RFC's variant
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    AppendHex(text, bytes[i]);
  }
  return text;
}

}  // namespace volumed
