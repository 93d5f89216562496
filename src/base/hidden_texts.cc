#include "base/hidden_texts.h"

#include <algorithm>
#include <cstddef>

namespace volumed {
namespace {

// The places of a value may overlap one another, as those of "abab" in "ababab".
void Mark(std::string_view text, std::string_view value, std::vector<bool>& hidden) {
  size_t done = 0;
  for (size_t at = text.find(value); at != std::string_view::npos; at = text.find(value, at + 1)) {
    const size_t end = at + value.size();
    std::fill(hidden.begin() + static_cast<ptrdiff_t>(std::max(at, done)),
              hidden.begin() + static_cast<ptrdiff_t>(end), true);
    done = end;
  }
}

}  // namespace

std::string WithoutValues(std::string_view text, const std::vector<std::string>& values,
                          std::string_view in_its_place) {
  std::vector<bool> hidden(text.size());
  for (const std::string& value : values) {
    if (!value.empty()) Mark(text, value, hidden);
  }
  std::string shown;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!hidden[at]) {
      shown += text[at];
    } else if (at == 0 || !hidden[at - 1]) {
      shown += in_its_place;
    }
  }
  return shown;
}

}  // namespace volumed
