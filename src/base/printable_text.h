// Texts that others chose (file names, what a tool printed) as texts that can be shown: on a
// terminal, in a log, in a protobuf string. All are pure; threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace volumed {

// The bytes of the UTF-8 character at the front that is none of ASCII's; 0 if there is no valid
// one. Source: RFC 3629. REQUIRES: the text is not empty.
size_t Utf8Length(std::string_view text);

// Whether the text is valid UTF-8 from end to end: no overlong form, no surrogate, nothing beyond
// U+10FFFF. The empty text is.
bool IsUtf8(std::string_view text);

// The longest beginning of the text of at most `most` bytes that does not end amid a character.
std::string_view BeginningOf(std::string_view text, size_t most);

// The text in quotes for a message: cut after `most` bytes at the end of a character, with "?" for
// each byte that is no part of a valid character, or that is of a control character, and "\u202e"
// for a character that cannot be seen.
std::string Quoted(std::string_view text, size_t most);

// As Utf8Length, and 0 also for a character that a terminal obeys (U+0080 to U+009F), or that
// cannot be seen: one that turns the direction of what follows (U+202E), or has no width (U+200B).
size_t PrintableUtf8Length(std::string_view text);
// As Utf8Length, and 0 for all characters but those that cannot be seen.
size_t InvisibleUtf8Length(std::string_view text);

// Whether the text is valid UTF-8 without control characters. Those that cannot be seen may be in
// it, as some languages are written with them.
bool IsText(std::string_view text);

// The character as JSON, Go and Python may have it: "\u202e", with two of them beyond U+FFFF.
// REQUIRES: one character of UTF-8, which is none of ASCII's.
std::string EscapedCharacter(std::string_view character);

// The text with "\xff" for each byte that is no part of a valid character, and for control
// characters, but for those in `keep`; and with "\u202e" for a character that cannot be seen, which
// leaves what is JSON the same JSON. A backslash in the text stays one, so that the original cannot
// be had back.
std::string PrintableText(std::string_view text, std::string_view keep = "");

// PrintableText that keeps its lines: for the answers of the control API, whose strings have to be
// UTF-8, or the peer cannot read the answer at all.
inline std::string AnswerText(std::string_view text) { return PrintableText(text, "\n\t"); }

}  // namespace volumed
