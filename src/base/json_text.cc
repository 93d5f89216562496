#include "base/json_text.h"

#include <cstddef>

#include "base/printable_text.h"

namespace volumed {
namespace {

// Of one byte; '\0' if it has none.
char ShortEscape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

void AppendByte(char c, JsonStyle style, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  const bool is_of_html = c == '<' || c == '>' || c == '&';
  if (const char escape = ShortEscape(c); escape != '\0') {
    out += '\\';
    out += escape;
  } else if (byte >= 0x20 && !(is_of_html && style == JsonStyle::kGo)) {
    out += c;
  } else {
    out += "\\u00";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

bool IsEscaped(std::string_view character, JsonStyle style) {
  switch (style) {
    case JsonStyle::kPlain:
      return false;
    case JsonStyle::kAscii:
      return true;
    case JsonStyle::kGo:
      return character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9";
  }
  return false;
}

}  // namespace

void AppendJsonText(std::string_view text, JsonStyle style, std::string& out) {
  while (!text.empty()) {
    const bool is_ascii = static_cast<unsigned char>(text[0]) < 0x80;
    const size_t length = is_ascii ? 1 : Utf8Length(text);
    const std::string_view character = text.substr(0, length);
    if (is_ascii) {
      AppendByte(text[0], style, out);
    } else if (length == 0) {
      out += style == JsonStyle::kGo ? std::string_view("\\ufffd") : text.substr(0, 1);
    } else {
      out += IsEscaped(character, style) ? EscapedCharacter(character) : std::string(character);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

}  // namespace volumed
