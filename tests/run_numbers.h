// How long a test runs, and with which seed, as whoever runs it may say by a variable of the
// environment. docs/CI.md has the variables.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace volumed {

// What the variable says; `otherwise` if there is none. A text that is no number ends the program,
// as a run of another length than the one that was asked for would say nothing.
inline uint64_t NumberOfRun(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const std::string_view digits(text);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    std::fprintf(stderr, "%s=%s is no number\n", variable, text);
    std::abort();
  }
  return number;
}

}  // namespace volumed
