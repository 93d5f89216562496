#include "base/quantity.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/printable_text.h"

namespace volumed {
namespace {

__extension__ using Int128 = __int128;

constexpr int kNanoDigits = 9;
constexpr Int128 kNanosPerUnit = 1'000'000'000;
constexpr Int128 kNanosPerMilli = 1'000'000;
constexpr Int128 kMaxNanos = Int128{std::numeric_limits<int64_t>::max()} * kNanosPerUnit;
// No amount in range has more digits than this when counted in billionths.
constexpr size_t kMaxNanoDigits = 28;

constexpr std::string_view kDecimalSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
constexpr int kFirstDecimalExponent = -9;
constexpr std::string_view kBinarySuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Named(std::string_view text) {
  constexpr size_t kShown = 64;
  return "quantity " + Quoted(text, kShown);
}

Error Malformed(std::string_view text, std::string_view why) {
  return Error::NotApplied(Code::kInvalidArgument, Named(text) + ": " + std::string(why));
}

Error TooLarge(std::string_view what) {
  return Error::NotApplied(Code::kOutOfRange,
                           std::string(what) + ": beyond 9223372036854775807 in magnitude");
}

// The text, taken apart: digits * 10^-fraction_digits * 10^exponent10 * 1024^power1024.
struct Parts {
  bool negative = false;
  std::string digits;  // the point left out; leading zeros stripped
  int64_t fraction_digits = 0;
  int64_t exponent10 = 0;
  int power1024 = 0;
  Quantity::Format format = Quantity::Format::kDecimalSi;
};

// Takes [0-9]* from the front of `rest`.
std::string_view TakeDigits(std::string_view& rest) {
  size_t count = 0;
  while (count < rest.size() && IsDigit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

// "e3", "E-2", "e+10": the exponent. Nothing if `suffix` is not of this form. What is far beyond
// any range is clamped; that keeps it beyond.
std::optional<int64_t> DecimalExponent(std::string_view suffix) {
  constexpr int64_t kFarBeyond = 1'000'000'000;
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(1);
  const bool negative = suffix[0] == '-';
  if (suffix[0] == '-' || suffix[0] == '+') suffix.remove_prefix(1);
  if (suffix.empty()) return std::nullopt;
  int64_t exponent = 0;
  for (const char c : suffix) {
    if (!IsDigit(c)) return std::nullopt;
    exponent = std::min(exponent * 10 + (c - '0'), kFarBeyond);
  }
  return negative ? -exponent : exponent;
}

// Sets the factor and the format that `suffix` stands for. False for an unknown one.
bool InterpretSuffix(std::string_view suffix, Parts& parts) {
  for (size_t i = 0; i < std::size(kDecimalSuffixes); ++i) {
    if (suffix == kDecimalSuffixes[i]) {
      parts.exponent10 = kFirstDecimalExponent + 3 * static_cast<int>(i);
      parts.format = Quantity::Format::kDecimalSi;
      return true;
    }
  }
  for (size_t i = 1; i < std::size(kBinarySuffixes); ++i) {
    if (suffix == kBinarySuffixes[i]) {
      parts.power1024 = static_cast<int>(i);
      parts.format = Quantity::Format::kBinarySi;
      return true;
    }
  }
  if (const auto exponent = DecimalExponent(suffix)) {
    parts.exponent10 = *exponent;
    parts.format = Quantity::Format::kDecimalExponent;
    return true;
  }
  return false;
}

Result<Parts> TakeApart(std::string_view text) {
  Parts parts;
  std::string_view rest = text;
  if (rest.empty()) return Malformed(text, "empty");
  if (rest[0] == '+' || rest[0] == '-') {
    parts.negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  const std::string_view whole = TakeDigits(rest);
  std::string_view fraction;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    fraction = TakeDigits(rest);
  }
  if (whole.empty() && fraction.empty()) return Malformed(text, "no number");
  if (!InterpretSuffix(rest, parts)) {
    return Malformed(text,
                     "unknown suffix; one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent");
  }
  parts.digits = whole;
  parts.digits += fraction;
  parts.fraction_digits = static_cast<int64_t>(fraction.size());
  parts.digits.erase(0, parts.digits.find_first_not_of('0'));
  return parts;
}

// `digits`, a decimal number of any length, times 1024.
void MultiplyBy1024(std::string& digits) {
  int carry = 0;
  for (auto it = digits.rbegin(); it != digits.rend(); ++it) {
    const int product = (*it - '0') * 1024 + carry;
    *it = static_cast<char>('0' + product % 10);
    carry = product / 10;
  }
  std::string front;
  for (; carry > 0; carry /= 10) front.insert(front.begin(), static_cast<char>('0' + carry % 10));
  digits.insert(0, front);
}

// The number in billionths, rounded away from zero. Nothing when it is out of range.
std::optional<Int128> ToNanos(Parts parts) {
  if (parts.digits.empty()) return Int128{0};
  for (int i = 0; i < parts.power1024; ++i) MultiplyBy1024(parts.digits);
  const int64_t shift = parts.exponent10 - parts.fraction_digits + kNanoDigits;
  const int64_t length = static_cast<int64_t>(parts.digits.size()) + shift;
  if (length > static_cast<int64_t>(kMaxNanoDigits)) return std::nullopt;
  std::string_view kept = parts.digits;
  bool round_up = false;
  if (shift < 0) {
    const size_t keep = length > 0 ? static_cast<size_t>(length) : 0;
    round_up = kept.find_first_not_of('0', keep) != std::string_view::npos;
    kept = kept.substr(0, keep);
  }
  Int128 nanos = 0;
  for (const char c : kept) nanos = nanos * 10 + (c - '0');
  for (int64_t i = 0; i < shift; ++i) nanos *= 10;
  if (round_up) ++nanos;
  if (nanos > kMaxNanos) return std::nullopt;
  return parts.negative ? -nanos : nanos;
}

// numerator / divisor, away from zero.
Int128 DivideAwayFromZero(Int128 numerator, Int128 divisor) {
  const Int128 quotient = numerator / divisor;
  if (numerator % divisor == 0) return quotient;
  return numerator > 0 ? quotient + 1 : quotient - 1;
}

std::string ToDecimal(Int128 value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string text;
  // Digit by digit from the right; a remainder of a negative number is negative.
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    text += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  if (negative) text += '-';
  std::reverse(text.begin(), text.end());
  return text;
}

std::string BinaryString(Int128 units) {
  size_t power = 0;
  while (power + 1 < std::size(kBinarySuffixes) && units % 1024 == 0) {
    units /= 1024;
    ++power;
  }
  return ToDecimal(units) + std::string(kBinarySuffixes[power]);
}

std::string DecimalString(Int128 nanos, Quantity::Format format) {
  int exponent = kFirstDecimalExponent;
  size_t step = 0;
  while (nanos % 1000 == 0 && step + 1 < std::size(kDecimalSuffixes)) {
    nanos /= 1000;
    exponent += 3;
    ++step;
  }
  std::string number = ToDecimal(nanos);
  if (format == Quantity::Format::kDecimalExponent) {
    return exponent == 0 ? number : number + "e" + std::to_string(exponent);
  }
  return number + std::string(kDecimalSuffixes[step]);
}

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  ASSIGN_OR_RETURN(Parts parts, TakeApart(text));
  const Format format = parts.format;
  const std::optional<Int128> nanos = ToNanos(std::move(parts));
  if (!nanos) return TooLarge(Named(text));
  return Quantity(*nanos, format);
}

Quantity Quantity::FromInteger(int64_t value, Format format) {
  // -2^63 alone lies outside; its neighbour is as good for an amount.
  const Int128 bounded = std::max(value, -std::numeric_limits<int64_t>::max());
  return Quantity(bounded * kNanosPerUnit, format);
}

Quantity Quantity::FromMilli(int64_t thousandths) {
  return Quantity(Int128{thousandths} * kNanosPerMilli, Format::kDecimalSi);
}

int64_t Quantity::Value() const {
  return static_cast<int64_t>(DivideAwayFromZero(nanos_, kNanosPerUnit));
}

Result<int64_t> Quantity::MilliValue() const {
  const Int128 milli = DivideAwayFromZero(nanos_, kNanosPerMilli);
  if (milli > std::numeric_limits<int64_t>::max() || milli < std::numeric_limits<int64_t>::min()) {
    return TooLarge("quantity " + String() + " in thousandths");
  }
  return static_cast<int64_t>(milli);
}

Result<Quantity> Quantity::Checked(Nanos nanos, Format format, std::string_view what) {
  if (nanos > kMaxNanos || nanos < -kMaxNanos) return TooLarge(what);
  return Quantity(nanos, format);
}

Result<Quantity> Quantity::Add(const Quantity& other) const {
  return Checked(nanos_ + other.nanos_, format_, String() + " + " + other.String());
}

Result<Quantity> Quantity::Subtract(const Quantity& other) const {
  return Checked(nanos_ - other.nanos_, format_, String() + " - " + other.String());
}

std::string Quantity::String() const {
  if (nanos_ == 0) return "0";
  switch (format_) {
    case Format::kDecimalSi:
    case Format::kDecimalExponent:
      return DecimalString(nanos_, format_);
    case Format::kBinarySi: {
      const Int128 units = nanos_ / kNanosPerUnit;
      const bool small = units > -1024 && units < 1024;
      if (small || nanos_ % kNanosPerUnit != 0) return DecimalString(nanos_, Format::kDecimalSi);
      return BinaryString(units);
    }
  }
  return {};
}

}  // namespace volumed
