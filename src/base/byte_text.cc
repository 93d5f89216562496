#include "base/byte_text.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace volumed {

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(kUnits)) {
    amount /= 1024;
    ++unit;
  }
  char text[32];
  const bool whole = unit == 0 || amount >= 10 || amount == std::floor(amount);
  std::snprintf(text, sizeof(text), whole ? "%.0f%s" : "%.1f%s", amount, kUnits[unit]);
  return text;
}

std::string BytesForPeople(int64_t bytes) {
  const std::string exact = std::to_string(bytes) + " bytes";
  return bytes < 1024 ? exact : FormatBytes(bytes) + " (" + exact + ")";
}

}  // namespace volumed
