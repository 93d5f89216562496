// print_states > docs/STATES.md
#include <cstdio>
#include <string>

#include "operation/volume_state.h"

int main() {
  const std::string text = volumed::PrintStatesMarkdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
