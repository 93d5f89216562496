// How programs write a text as a string of JSON. Pure; threads: any. Blocks: never. Errors: none.
// Source: go encoding/json encode.go@go1.25 (appendString); python Lib/json/encoder.py@3.13.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

enum class JsonStyle {
  kPlain,  // nothing is escaped that need not be
  kAscii,  // also what is not ASCII, as Python has it
  kGo,     // also '<', '>', '&', U+2028 and U+2029; a byte that is no UTF-8 becomes "\ufffd"
};

// Appends the text without its quotes. A byte that is no UTF-8 stays as it is, but for kGo.
void AppendJsonText(std::string_view text, JsonStyle style, std::string& out);

}  // namespace volumed
