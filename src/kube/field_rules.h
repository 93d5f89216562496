// Tools for the values of a manifest, and the rules that these must keep (kube/value_rules.h).
// Threads: any. Blocks: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/value_rules.h"

namespace volumed {

// The value in quotes for messages, cut at 80 bytes, with unprintable bytes replaced.
std::string Quoted(std::string_view value);

// The path without "//", "/./" elements and a trailing "/"; ".." stays.
std::string CleanPath(std::string_view path);

// Converts between RFC 3339 ("2026-01-02T03:04:05.678+02:00", printed with "Z") and unix
// milliseconds.
std::optional<int64_t> ParseTimestamp(std::string_view text);
std::string FormatTimestamp(int64_t unix_millis);

}  // namespace volumed
