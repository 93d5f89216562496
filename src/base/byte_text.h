// Numbers of bytes as people read them. Threads: any. Blocks: never.
#pragma once

#include <cstdint>
#include <string>

namespace volumed {

// "12Mi", "3.4Gi", "517": rounded, with one decimal below ten of a unit if it is not whole.
std::string FormatBytes(int64_t bytes);
// The same and the number itself, for errors: "1.5Gi (1629735322 bytes)", "517 bytes".
std::string BytesForPeople(int64_t bytes);

}  // namespace volumed
