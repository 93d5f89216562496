#include "base/printable_text.h"

#include <algorithm>
#include <array>

namespace volumed {
namespace {

// Characters without a shape of their own: what turns the direction of the text that follows, joins
// and separators of no width, ends of lines, and tags. A terminal shows other words than there are.
// Source: Unicode's DerivedCoreProperties.txt (Default_Ignorable_Code_Point) and UAX #9.
struct CodeRange {
  uint32_t first;
  uint32_t last;
};
constexpr std::array<CodeRange, 9> kInvisible{{{0xad, 0xad},
                                               {0x61c, 0x61c},
                                               {0x180e, 0x180e},
                                               {0x200b, 0x200f},
                                               {0x2028, 0x202e},
                                               {0x2060, 0x206f},
                                               {0xfeff, 0xfeff},
                                               {0xfff9, 0xfffb},
                                               {0xe0000, 0xe007f}}};

// REQUIRES: one character of UTF-8, which is none of ASCII's.
uint32_t CodeOf(std::string_view character) {
  const uint32_t first = static_cast<unsigned char>(character[0]);
  uint32_t code = first & (0xffU >> (character.size() + 1));
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint32_t>(c) & 0x3f);
  return code;
}

// U+0080 to U+009F are control characters that terminals obey.
bool IsControl(std::string_view character) {
  return character.size() == 2 && CodeOf(character) < 0xa0;
}

bool IsInvisible(std::string_view character) {
  const uint32_t code = CodeOf(character);
  return std::any_of(kInvisible.begin(), kInvisible.end(), [code](const CodeRange& range) {
    return range.first <= code && code <= range.last;
  });
}

void AppendUnit(uint32_t unit, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (const int shift : {12, 8, 4, 0}) out += kDigits[unit >> shift & 0xf];
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  size_t length = 0;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = static_cast<unsigned char>(text[0]) < 0x80 ? 1 : Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view BeginningOf(std::string_view text, size_t most) {
  const std::string_view beginning = text.substr(0, most);
  // A character has four bytes at most, so that one that is cut begins with one of the last three.
  for (size_t at = beginning.size(); at > 0 && at + 3 >= beginning.size(); --at) {
    const std::string_view last = text.substr(at - 1);
    if (const size_t length = Utf8Length(last); length > 0) {
      return at - 1 + length > beginning.size() ? beginning.substr(0, at - 1) : beginning;
    }
  }
  return beginning;
}

size_t PrintableUtf8Length(std::string_view text) {
  const size_t length = Utf8Length(text);
  if (length == 0) return 0;
  const std::string_view character = text.substr(0, length);
  return IsControl(character) || IsInvisible(character) ? 0 : length;
}

bool IsText(std::string_view text) {
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const bool is_plain = byte >= 0x20 && byte < 0x7f;
    const size_t length = is_plain ? 1 : Utf8Length(text);
    if (length == 0 || (!is_plain && IsControl(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string EscapedCharacter(std::string_view character) {
  const uint32_t code = CodeOf(character);
  std::string escaped;
  if (code < 0x10000) {
    AppendUnit(code, escaped);
  } else {
    AppendUnit(0xd800 + ((code - 0x10000) >> 10), escaped);
    AppendUnit(0xdc00 + ((code - 0x10000) & 0x3ff), escaped);
  }
  return escaped;
}

size_t InvisibleUtf8Length(std::string_view text) {
  const size_t length = Utf8Length(text);
  return length > 0 && IsInvisible(text.substr(0, length)) ? length : 0;
}

std::string Quoted(std::string_view text, size_t most) {
  std::string quoted = "\"";
  for (std::string_view rest = BeginningOf(text, most); !rest.empty();) {
    const auto byte = static_cast<unsigned char>(rest[0]);
    const bool is_plain = byte >= 0x20 && byte < 0x7f;
    size_t length = is_plain ? 1 : PrintableUtf8Length(rest);
    if (length > 0) {
      quoted += rest.substr(0, length);
    } else if ((length = InvisibleUtf8Length(rest)) > 0) {
      quoted += EscapedCharacter(rest.substr(0, length));
    } else {
      quoted += '?';
    }
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  return quoted + (text.size() > most ? "...\"" : "\"");
}

std::string PrintableText(std::string_view text, std::string_view keep) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const bool is_ascii = byte < 0x80;
    const bool is_plain = is_ascii && ((byte >= 0x20 && byte != 0x7f) ||
                                       keep.find(text[0]) != std::string_view::npos);
    size_t length = is_ascii ? 0 : PrintableUtf8Length(text);
    if (is_plain || length > 0) {
      out += text.substr(0, std::max<size_t>(length, 1));
    } else if ((length = InvisibleUtf8Length(text)) > 0) {
      out += EscapedCharacter(text.substr(0, length));
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace volumed
