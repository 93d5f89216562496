// ResolvePlainScalar: the scalar rules of sigs.k8s.io/yaml.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "kube/document_reader.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

template <size_t N>
bool IsOneOf(std::string_view text, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                      "True", "TRUE", "on",  "On",  "ON"};
constexpr std::string_view kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                       "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNotInJson[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                           "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

// "0x1f", "0o17", "017", "0b11", "15" without a sign, as Go's ParseUint with base 0.
std::optional<uint64_t> ParseMagnitude(std::string_view digits) {
  int base = 10;
  const auto has_prefix = [&digits](char lower) {
    return digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == lower;
  };
  if (has_prefix('x')) {
    base = 16;
  } else if (has_prefix('o')) {
    base = 8;
  } else if (has_prefix('b')) {
    base = 2;
  }
  if (base != 10) {
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
    digits.remove_prefix(1);
  }
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Only the shapes [digits][.digits][e+-digits], so that "1.2.3" and "1e" stay strings.
bool LooksLikeFloat(std::string_view text) {
  size_t at = 0;
  const auto digits = [&text, &at] {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - begin;
  };
  size_t mantissa = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

Json FloatToJson(double value) {
  // JSON has one kind of number: "1e3" is the integer 1000 to whoever reads the text.
  if (value == std::trunc(value) && std::fabs(value) < 9.0e15) return static_cast<int64_t>(value);
  return value;
}

std::optional<Json> ResolveNumber(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  std::string_view magnitude = text;
  const bool negative = !magnitude.empty() && magnitude.front() == '-';
  if (!magnitude.empty() && (negative || magnitude.front() == '+')) magnitude.remove_prefix(1);
  if (magnitude.empty()) return std::nullopt;
  if (const std::optional<uint64_t> value = ParseMagnitude(magnitude)) {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!negative) return Json(*value);
    if (*value <= kMax) return Json(-static_cast<int64_t>(*value));
    if (*value == kMax + 1) return Json(std::numeric_limits<int64_t>::min());
  }
  if (!LooksLikeFloat(magnitude)) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(magnitude.data(), magnitude.data() + magnitude.size(), value);
  if (error != std::errc() || end != magnitude.data() + magnitude.size()) return std::nullopt;
  return FloatToJson(negative ? -value : value);
}

}  // namespace

std::optional<nlohmann::json> ResolvePlainScalar(const std::string& text) {
  if (IsOneOf(text, kNull)) return Json(nullptr);
  if (IsOneOf(text, kTrue)) return Json(true);
  if (IsOneOf(text, kFalse)) return Json(false);
  if (IsOneOf(text, kNotInJson)) return std::nullopt;
  const char first = text.front();
  if ((first >= '0' && first <= '9') || first == '+' || first == '-' || first == '.') {
    if (std::optional<Json> number = ResolveNumber(text)) return number;
  }
  return Json(text);
}

}  // namespace volumed
