#include "csi/rpc/csi_spellings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/base64.h"
#include "base/json_text.h"

namespace volumed {
namespace {

// Escaped three times over, a quote has seven backslashes before it.
constexpr size_t kMostBackslashes = 8;
constexpr size_t kMostEntityBytes = 10;
constexpr int kMostUrls = 3;  // one within the other
// Of what is longer within JSON, as of a keystore of nothing but '<', the encodings would take too
// much: each is as long again.
constexpr size_t kMostJsonBytes = 16 * 1024;

// As a time of day or a number with a group of digits is not to be taken for a secret in pairs.
constexpr size_t kFewestPairs = 4;

bool IsHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

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

// Between the bytes of a list there may be a comma, and a blank behind that.
template <typename Take>
void ReadComma(std::string_view text, size_t at, const Take& take) {
  take(size_t{1}, std::string_view(" "));
  if (text.substr(at + 1, 1) == " ") take(size_t{2}, std::string_view(" "));
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
    case '\n':  // in place of the blank at which a line was broken
      return take(size_t{1}, std::string_view(" "));
    case ',':
      return ReadComma(text, at, take);
    case '&':
      return ReadEntity(text, at, take);
    case '\'':
      return ReadQuote(text, at, take);
  }
}

using Wanted = std::vector<std::string>;

// A beginning of what is wanted that stands in the text from `start` to the place where this is
// kept: of the list, those from `first` to `last` begin so, and no others.
struct Begun {
  size_t start;
  const Wanted* wanted;
  size_t first;
  size_t last;
  size_t read;         // bytes of the beginning
  bool is_hex;         // it is all hexadecimal digits
  bool in_pairs;       // there was something between two pairs of them, which is not part of it
  bool at_line_start;  // a line has just ended, which is not part of it either
};

// What does not belong to the text that is wanted, and may stand within it for all that: line ends
// with the next line's indentation, and what separates pairs of hexadecimal digits.
enum class Filling { kNone, kLine, kPair };

Filling FillingOf(std::string_view bytes, const Begun& begun) {
  if (bytes == "\n" || bytes == "\r") return Filling::kLine;
  if (begun.at_line_start && (bytes == " " || bytes == "\t")) return Filling::kLine;
  const bool is_between = begun.is_hex && begun.read % 2 == 0;
  const bool separates = bytes == " " || bytes == ":" || bytes == "-";
  return is_between && separates ? Filling::kPair : Filling::kNone;
}

// Goes on with these bytes. False: nothing that is wanted does.
bool GoOnWith(std::string_view bytes, Begun& begun) {
  for (const char c : bytes) {
    begun.is_hex = begun.is_hex && IsHexDigit(c);
    if (begun.in_pairs && !begun.is_hex) return false;
    begun.at_line_start = false;
    const size_t place = begun.read;
    // What ends there is sorted before all that goes on.
    const auto at = [place](const std::string& text) {
      return place < text.size() ? static_cast<unsigned char>(text[place]) : -1;
    };
    const int byte = static_cast<unsigned char>(c);
    const Wanted& wanted = *begun.wanted;
    if (begun.last - begun.first == 1) {
      if (at(wanted[begun.first]) != byte) return false;
    } else {
      const auto all = wanted.begin() + static_cast<ptrdiff_t>(begun.first);
      const auto end = wanted.begin() + static_cast<ptrdiff_t>(begun.last);
      const auto low =
          std::partition_point(all, end, [&](const std::string& text) { return at(text) < byte; });
      const auto high =
          std::partition_point(low, end, [&](const std::string& text) { return at(text) == byte; });
      if (low == high) return false;
      begun.first = static_cast<size_t>(low - wanted.begin());
      begun.last = static_cast<size_t>(high - wanted.begin());
    }
    ++begun.read;
  }
  return true;
}

// Of those that have come to the same beginning by several readings, or from several places, one is
// enough: that which began first, as it has the bytes of all.
void KeepTheFirstOfEach(std::vector<Begun>& begun) {
  if (begun.size() < 2) return;
  const auto same = [](const Begun& a) {
    return std::tie(a.wanted, a.first, a.read, a.in_pairs, a.at_line_start);
  };
  std::sort(begun.begin(), begun.end(), [&same](const Begun& a, const Begun& b) {
    return same(a) != same(b) ? same(a) < same(b) : a.start < b.start;
  });
  const auto is_same = [&same](const Begun& a, const Begun& b) { return same(a) == same(b); };
  begun.erase(std::unique(begun.begin(), begun.end(), is_same), begun.end());
}

// One way through a text, with all that has begun so far.
class Search {
 public:
  // `lists` by their first byte, each sorted.
  Search(std::string_view text, const std::array<Wanted, 256>& lists, size_t& steps)
      : text_(text), lists_(lists), steps_(steps), ends_(text.size()), open_(text.size()) {}

  // False: the steps were not enough.
  bool Run() {
    for (size_t at = 0; at < text_.size(); ++at) {
      std::vector<Begun>& here = begun_[at % kPlaces];
      KeepTheFirstOfEach(here);
      // The last reading may be one that is cut.
      if (at + kPlaces >= text_.size()) {
        for (const Begun& begun : here) open_ = std::min(open_, begun.start);
      }
      ReadAt(text_, at, [&](size_t length, std::string_view bytes) {
        if (!bytes.empty()) Read(at, at + length, bytes);
      });
      if (text_.substr(at, 2) == "0x" || text_.substr(at, 2) == "0X") SkipMarkOfHex(at);
      here.clear();
      if (steps_ == 0) return false;
    }
    return true;
  }

  // Where the longest ends that begins there; 0: none does.
  const std::vector<size_t>& ends() const { return ends_; }
  // Where the first begins that may end behind the text; the text's end if none does.
  size_t open() const { return open_; }

 private:
  // More than any reading has bytes: two codes of four digits have 26 with their backslashes.
  static constexpr size_t kPlaces = 32;

  void Read(size_t at, size_t next, std::string_view bytes) {
    const Wanted& wanted = lists_[static_cast<unsigned char>(bytes[0])];
    if (!wanted.empty()) {
      const bool is_hex = IsHexDigit(bytes[0]);
      Take({at, &wanted, 0, wanted.size(), 1, is_hex, false, false}, next, bytes.substr(1));
    }
    for (const Begun& begun : begun_[at % kPlaces]) {
      Take(begun, next, bytes);
      Skip(begun, next, FillingOf(bytes, begun));
    }
  }

  // Each pair of digits may have it before itself.
  void SkipMarkOfHex(size_t at) {
    for (const Begun& begun : begun_[at % kPlaces]) {
      if (begun.is_hex && begun.read % 2 == 0) Skip(begun, at + 2, Filling::kPair);
    }
  }

  // Goes on behind something that is not part of what is wanted.
  void Skip(Begun begun, size_t next, Filling filling) {
    if (filling == Filling::kNone || steps_ == 0) return;
    --steps_;
    begun.in_pairs = begun.in_pairs || filling == Filling::kPair;
    begun.at_line_start = filling == Filling::kLine;
    if (next < text_.size()) begun_[next % kPlaces].push_back(begun);
  }

  // Whether all that is wanted has been read; of pairs with something between them there are to be
  // several.
  static bool IsWhole(const Begun& begun) {
    const size_t size = (*begun.wanted)[begun.first].size();
    if (size != begun.read) return false;
    return !begun.in_pairs || (size % 2 == 0 && size >= 2 * kFewestPairs);
  }

  void Take(Begun begun, size_t next, std::string_view bytes) {
    if (steps_ == 0) return;
    --steps_;
    if (!GoOnWith(bytes, begun)) return;
    const Wanted& wanted = *begun.wanted;
    if (IsWhole(begun)) {
      ends_[begun.start] = std::max(ends_[begun.start], next);
    }
    const bool is_open = wanted[begun.last - 1].size() > begun.read;
    if (is_open && next < text_.size()) begun_[next % kPlaces].push_back(begun);
  }

  const std::string_view text_;
  const std::array<Wanted, 256>& lists_;
  size_t& steps_;
  std::vector<size_t> ends_;
  size_t open_;
  std::array<std::vector<Begun>, kPlaces> begun_;
};

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

// "84 114 48", as Go writes a []byte.
std::string NumbersOf(std::string_view text) {
  std::string numbers;
  for (const char c : text) {
    if (!numbers.empty()) numbers += ' ';
    numbers += std::to_string(static_cast<unsigned char>(c));
  }
  return numbers;
}

void AddEncodings(std::string_view text, std::set<std::string>& all) {
  all.insert(HexOf(text, "0123456789abcdef"));
  all.insert(HexOf(text, "0123456789ABCDEF"));
  all.insert(NumbersOf(text));
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
}

}  // namespace

std::vector<std::string> CsiEncodingsOf(std::string_view text) {
  std::set<std::string> all{std::string(text)};
  AddEncodings(text, all);
  for (const JsonStyle style : {JsonStyle::kPlain, JsonStyle::kAscii, JsonStyle::kGo}) {
    std::string json;
    AppendJsonText(text, style, json);
    if (json != text && json.size() <= kMostJsonBytes) AddEncodings(json, all);
  }
  return {all.begin(), all.end()};
}

void CsiSpellings::Add(std::string_view text) { AddAll({std::string(text)}); }

void CsiSpellings::AddAll(const std::vector<std::string>& texts) {
  std::array<size_t, 256> before{};
  for (size_t i = 0; i < wanted_.size(); ++i) before[i] = wanted_[i].size();
  count_ += texts.size();
  for (const std::string& text : texts) {
    for (std::string& encoding : CsiEncodingsOf(text)) {
      if (encoding.empty()) continue;
      wanted_[static_cast<unsigned char>(encoding[0])].push_back(std::move(encoding));
    }
  }
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].size() == before[i]) continue;
    const auto added = wanted_[i].begin() + static_cast<ptrdiff_t>(before[i]);
    std::sort(added, wanted_[i].end());
    std::inplace_merge(wanted_[i].begin(), added, wanted_[i].end());
  }
}

void CsiSpellings::Remove(std::string_view text) {
  --count_;
  for (const std::string& encoding : CsiEncodingsOf(text)) {
    if (encoding.empty()) continue;
    std::vector<std::string>& wanted = wanted_[static_cast<unsigned char>(encoding[0])];
    const auto found = std::lower_bound(wanted.begin(), wanted.end(), encoding);
    if (found != wanted.end() && *found == encoding) wanted.erase(found);
  }
}

bool CsiSpellings::Mark(std::string_view text, bool is_cut, std::vector<bool>& places,
                        size_t& steps) const {
  if (empty()) return true;
  Search search(text, wanted_, steps);
  if (!search.Run()) return false;
  size_t done = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = search.ends()[at];
    if (end <= done) continue;
    std::fill(places.begin() + static_cast<ptrdiff_t>(std::max(at, done)),
              places.begin() + static_cast<ptrdiff_t>(end), true);
    done = end;
  }
  if (is_cut) {
    std::fill(places.begin() + static_cast<ptrdiff_t>(search.open()), places.end(), true);
  }
  return true;
}

}  // namespace volumed
