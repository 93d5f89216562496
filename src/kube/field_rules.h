// Tools for the values of a manifest, and the rules that these must keep (kube/value_rules.h).
// Threads: any. Blocks: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/value_rules.h"

namespace volumed {

// The value in quotes for messages, cut after 80 bytes (see base/printable_text.h).
std::string Quoted(std::string_view value);

// The path without "//", "/./" elements and a trailing "/"; ".." stays, and so does what is
// absolute or relative. The result is "" if no element is left of a relative path ("./").
std::string CleanPath(std::string_view path);

// Reads an RFC 3339 time ("2026-01-02T03:04:05.678+02:00") as unix milliseconds; digits beyond
// these are dropped. The result is nullopt for any other text, and for a leap second (":60").
std::optional<int64_t> ParseTimestamp(std::string_view text);
// Writes unix milliseconds as an RFC 3339 time with "Z"; milliseconds that are zero are left out.
std::string FormatTimestamp(int64_t unix_millis);

}  // namespace volumed
