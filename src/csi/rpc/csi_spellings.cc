#include "csi/rpc/csi_spellings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/base64.h"

namespace volumed {
namespace {

// Escaped three times over, a quote has seven backslashes before it.
constexpr size_t kMostBackslashes = 8;
constexpr size_t kMostEntityBytes = 10;
constexpr int kMostUrls = 3;  // one within the other

// What may stand for something else than itself.
bool IsSpecial(char c) { return std::string_view("\\%+&'").find(c) != std::string_view::npos; }

bool IsLetterOrDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::optional<uint32_t> NumberIn(std::string_view digits, int base) {
  uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<uint32_t> HexAt(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return std::nullopt;
  return NumberIn(text.substr(at, digits), 16);
}

// Empty for a number that is no character.
std::string Utf8Of(uint32_t code) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  if (code < 0x110000) return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
  return "";
}

// The functions that follow call take(length, bytes) for each reading of what begins at `at`:
// that many bytes of the text may stand for these bytes.

template <typename Take>
void ReadCode(size_t length, std::optional<uint32_t> code, const Take& take) {
  if (code) take(length, std::string_view(Utf8Of(*code)));
}

template <typename Take>
void ReadByte(size_t length, std::optional<uint32_t> byte, const Take& take) {
  if (!byte || *byte > 0xff) return;
  const char c = static_cast<char>(*byte);
  take(length, std::string_view(&c, 1));
}

// "\u" with four digits, of which two make one character beyond U+FFFF, or with any in braces.
// `marks` is how many bytes there are before the digits.
template <typename Take>
void ReadShortCode(std::string_view text, size_t at, size_t marks, const Take& take) {
  const size_t digits = at + marks;
  if (text.substr(digits, 1) == "{") {
    const size_t close = text.substr(0, digits + kMostEntityBytes).find('}', digits);
    if (close == std::string_view::npos) return;
    return ReadCode(close + 1 - at, NumberIn(text.substr(digits + 1, close - digits - 1), 16),
                    take);
  }
  const std::optional<uint32_t> code = HexAt(text, digits, 4);
  if (!code || *code < 0xd800 || *code > 0xdfff) return ReadCode(marks + 4, code, take);
  const size_t second = digits + 4;
  const std::optional<uint32_t> low = HexAt(text, second + marks, 4);
  const bool is_pair = low && *low >= 0xdc00 && *low <= 0xdfff && *code < 0xdc00 &&
                       text.substr(second, marks) == text.substr(at, marks);
  if (is_pair) {
    ReadCode(2 * (marks + 4), 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00), take);
  }
}

template <typename Take>
void ReadBackslashes(std::string_view text, size_t at, const Take& take) {
  size_t run = 1;
  while (run < kMostBackslashes && text.substr(at + run, 1) == "\\") ++run;
  for (const size_t escaped : {2U, 4U, 8U}) {
    if (escaped <= run) take(escaped, std::string_view("\\"));
  }
  if (at + run >= text.size()) return;
  const char mark = text[at + run];
  const size_t marks = run + 1;
  constexpr std::string_view kLetters = "abefnrtv0";
  constexpr std::string_view kControls("\a\b\x1b\f\n\r\t\v\0", 9);
  if (const size_t letter = kLetters.find(mark); letter != std::string_view::npos) {
    take(marks, kControls.substr(letter, 1));
  }
  if (!IsLetterOrDigit(mark) && mark != '\\') take(marks, std::string_view(&mark, 1));
  if (mark == 'x') {
    // Of a byte, and in Python also of a character.
    const std::optional<uint32_t> number = HexAt(text, at + marks, 2);
    ReadByte(marks + 2, number, take);
    ReadCode(marks + 2, number, take);
  } else if (mark == 'u') {
    ReadShortCode(text, at, marks, take);
  } else if (mark == 'U') {
    ReadCode(marks + 8, HexAt(text, at + marks, 8), take);
  } else if (mark >= '0' && mark <= '3' && at + run + 3 <= text.size()) {
    ReadByte(run + 3, NumberIn(text.substr(at + run, 3), 8), take);
  }
}

// "%26", and "%2526" of a URL within a URL.
template <typename Take>
void ReadPercent(std::string_view text, size_t at, const Take& take) {
  size_t digits = at + 1;
  ReadByte(3, HexAt(text, digits, 2), take);
  for (int url = 1; url < kMostUrls && text.substr(digits, 2) == "25"; ++url) {
    digits += 2;
    ReadByte(digits + 2 - at, HexAt(text, digits, 2), take);
  }
}

template <typename Take>
void ReadEntity(std::string_view text, size_t at, const Take& take) {
  const size_t end = text.substr(0, at + kMostEntityBytes).find(';', at);
  if (end == std::string_view::npos) return;
  const std::string_view name = text.substr(at + 1, end - at - 1);
  const size_t length = end + 1 - at;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames{
      {{"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}}};
  for (const auto& [known, meant] : kNames) {
    if (name == known) take(length, meant);
  }
  if (name.starts_with("#x") || name.starts_with("#X")) {
    ReadCode(length, NumberIn(name.substr(2), 16), take);
  } else if (name.starts_with("#")) {
    ReadCode(length, NumberIn(name.substr(1), 10), take);
  }
}

// A quote within the quotes of a shell, of SQL or of YAML.
template <typename Take>
void ReadQuote(std::string_view text, size_t at, const Take& take) {
  for (const std::string_view quote : {"''", "'\\''", "'\\\\''", "'\"'\"'", "'\\\"'\\\"'"}) {
    if (text.substr(at, quote.size()) == quote) take(quote.size(), std::string_view("'"));
  }
}

template <typename Take>
void ReadAt(std::string_view text, size_t at, const Take& take) {
  take(size_t{1}, text.substr(at, 1));
  switch (text[at]) {
    case '\\':
      return ReadBackslashes(text, at, take);
    case '%':
      return ReadPercent(text, at, take);
    case '+':
      return take(size_t{1}, std::string_view(" "));
    case '&':
      return ReadEntity(text, at, take);
    case '\'':
      return ReadQuote(text, at, take);
  }
}

// So many bytes of what is wanted are read, and the next place of the text.
using Read = std::pair<size_t, size_t>;

// Goes on as long as all stands for itself. False: it is not what is wanted.
bool ReadPlain(std::string_view text, std::string_view wanted, Read& read) {
  auto& [done, at] = read;
  for (; done < wanted.size() && at < text.size() && !IsSpecial(text[at]); ++done, ++at) {
    if (text[at] != wanted[done]) return false;
  }
  return done == wanted.size() || at < text.size();
}

// Puts a reading of the base64 alphabet for files and URLs beside that of the standard one.
void AddBase64(std::string encoded, std::set<std::string>& all) {
  all.insert(encoded);
  std::replace(encoded.begin(), encoded.end(), '+', '-');
  std::replace(encoded.begin(), encoded.end(), '/', '_');
  all.insert(std::move(encoded));
}

std::string HexOf(std::string_view text, std::string_view digits) {
  std::string hex;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {digits[byte >> 4], digits[byte & 0xf]};
  }
  return hex;
}

}  // namespace

std::vector<std::string> CsiEncodingsOf(std::string_view text) {
  std::set<std::string> all{std::string(text), HexOf(text, "0123456789abcdef"),
                            HexOf(text, "0123456789ABCDEF")};
  // What is in base64 is three bytes at a time, and so looks otherwise after one or two bytes.
  for (size_t before = 0; before < 3; ++before) {
    const size_t bytes = before + text.size();
    // Characters with bits of what stands before.
    const size_t left_out = before == 0 ? 0 : before + 1;
    const std::string encoded = Base64Encode(std::string(before, '\0') + std::string(text));
    const size_t padding = (3 - bytes % 3) % 3;
    const size_t without_last = bytes * 4 / 3;
    for (const size_t end : {encoded.size(), encoded.size() - padding, without_last}) {
      if (end > left_out) AddBase64(encoded.substr(left_out, end - left_out), all);
    }
  }
  return {all.begin(), all.end()};
}

size_t CsiSpellingEnd(std::string_view text, size_t at, std::string_view wanted) {
  Read first{0, at};
  if (!ReadPlain(text, wanted, first)) return at;
  if (first.first == wanted.size()) return first.second;
  size_t end = at;
  std::vector<Read> open{first};
  std::set<Read> seen;
  while (!open.empty()) {
    const Read now = open.back();
    open.pop_back();
    if (now.first == wanted.size()) {
      end = std::max(end, now.second);
      continue;
    }
    ReadAt(text, now.second, [&](size_t length, std::string_view bytes) {
      if (bytes.empty() || wanted.substr(now.first, bytes.size()) != bytes) return;
      Read next{now.first + bytes.size(), now.second + length};
      if (ReadPlain(text, wanted, next) && seen.insert(next).second) open.push_back(next);
    });
  }
  return end;
}

void CsiSpellings::Add(std::string_view text) {
  ++count_;
  for (std::string& encoding : CsiEncodingsOf(text)) {
    if (encoding.empty()) continue;
    wanted_[static_cast<unsigned char>(encoding[0])].push_back(std::move(encoding));
  }
}

void CsiSpellings::Remove(std::string_view text) {
  --count_;
  for (const std::string& encoding : CsiEncodingsOf(text)) {
    if (encoding.empty()) continue;
    std::vector<std::string>& wanted = wanted_[static_cast<unsigned char>(encoding[0])];
    const auto found = std::find(wanted.begin(), wanted.end(), encoding);
    if (found != wanted.end()) wanted.erase(found);
  }
}

size_t CsiSpellings::EndAt(std::string_view text, size_t at) const {
  size_t end = at;
  std::string looked;  // for what begins so; a run of backslashes has many readings that do
  const auto look = [&](size_t, std::string_view bytes) {
    if (bytes.empty() || looked.find(bytes[0]) != std::string::npos) return;
    looked += bytes[0];
    for (const std::string& wanted : wanted_[static_cast<unsigned char>(bytes[0])]) {
      end = std::max(end, CsiSpellingEnd(text, at, wanted));
    }
  };
  ReadAt(text, at, look);
  return end;
}

void CsiSpellings::Mark(std::string_view text, std::vector<bool>& places) const {
  if (empty()) return;
  size_t done = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = EndAt(text, at);
    if (end <= done) continue;
    std::fill(places.begin() + static_cast<ptrdiff_t>(std::max(at, done)),
              places.begin() + static_cast<ptrdiff_t>(end), true);
    done = end;
  }
}

}  // namespace volumed
