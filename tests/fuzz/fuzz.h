// What the fuzz targets have in common. A property that does not hold ends the program, and
// libFuzzer keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed::fuzz {

[[noreturn]] inline void Broken(const char* file, int line, const char* property) {
  std::fprintf(stderr, "%s:%d: broken property: %s\n", file, line, property);
  std::abort();
}

#define FUZZ_CHECK(property)                                                 \
  do {                                                                       \
    if (!(property)) ::volumed::fuzz::Broken(__FILE__, __LINE__, #property); \
  } while (false)

// The head of a target's function, without its parameters: libFuzzer's, or of a name of its own
// where one program has all targets. Each target's file is a namespace of its own, for their
// helpers are named alike.
#ifdef VOLUMED_FUZZ_REPLAY
#define FUZZ_TARGET(name) extern "C" int volumed_fuzz_##name
#else
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#endif

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The next line without its end, which is taken off `rest`; nothing when nothing is left.
inline std::optional<std::string_view> TakeLine(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

// The line before the first `separator`, and what is behind it ("" if there is none).
struct Halves {
  std::string_view before;
  std::string_view behind;
};
inline Halves Cut(std::string_view line, char separator) {
  const size_t at = line.find(separator);
  if (at == std::string_view::npos) return {line, ""};
  return {line.substr(0, at), line.substr(at + 1)};
}

// A path that leads out of no directory that it is put below.
inline bool StaysInside(std::string_view path) {
  if (path.starts_with('/') || path.find('\0') != std::string_view::npos) return false;
  for (std::string_view rest = path; !rest.empty();) {
    const Halves halves = Cut(rest, '/');
    if (halves.before == "..") return false;
    rest = halves.behind;
  }
  return true;
}

// A name that is one element of a path, and none that leads elsewhere.
inline bool IsPathElement(std::string_view name) {
  return !name.empty() && name != "." && StaysInside(name) &&
         name.find('/') == std::string_view::npos;
}

inline void CheckError(const Error& error) {
  FUZZ_CHECK(!error.message().empty());
  FUZZ_CHECK(!error.ToString().empty());
}

}  // namespace volumed::fuzz
