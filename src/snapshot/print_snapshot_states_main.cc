// print_snapshot_states > docs/SNAPSHOT_STATES.md
#include <cstdio>
#include <string>

#include "snapshot/snapshot_state.h"

int main() {
  const std::string text = volumed::PrintSnapshotStatesMarkdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
