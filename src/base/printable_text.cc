#include "base/printable_text.h"

#include <algorithm>

namespace volumed {

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
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  // U+0080..U+009F are control characters that terminals obey.
  const bool control = length == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
  return control ? 0 : length;
}

std::string Quoted(std::string_view text, size_t most) {
  std::string quoted = "\"";
  for (std::string_view rest = BeginningOf(text, most); !rest.empty();) {
    const auto byte = static_cast<unsigned char>(rest[0]);
    const bool is_plain = byte >= 0x20 && byte < 0x7f;
    const size_t length = is_plain ? 1 : PrintableUtf8Length(rest);
    quoted += length > 0 ? rest.substr(0, length) : "?";
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
    const size_t length = is_ascii ? 0 : PrintableUtf8Length(text);
    if (is_plain || length > 0) {
      out += text.substr(0, std::max<size_t>(length, 1));
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xf]};
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace volumed
