#include "base/base64.h"

#include <array>
#include <cstdint>

namespace volumed {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int, 256> MakeValues() {
  std::array<int, 256> values{};
  for (int& value : values) value = -1;
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int>(i);
  }
  return values;
}

constexpr std::array<int, 256> kValues = MakeValues();

}  // namespace

std::optional<std::string> Base64Decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t group = 0;
  int digits = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      // Only the last one or two of a group of four may be padding.
      if (digits + padding < 2 || digits + padding >= 4) return std::nullopt;
      ++padding;
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0) return std::nullopt;
    group = group << 6 | static_cast<uint32_t>(value);
    if (++digits < 4) continue;
    bytes +=
        {static_cast<char>(group >> 16), static_cast<char>(group >> 8), static_cast<char>(group)};
    group = 0;
    digits = 0;
  }
  if (digits == 0 && padding == 0) return bytes;
  if (digits + padding != 4) return std::nullopt;
  group <<= 6 * padding;
  bytes += static_cast<char>(group >> 16);
  if (digits == 3) bytes += static_cast<char>(group >> 8);
  return bytes;
}

std::string Base64Encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace volumed
