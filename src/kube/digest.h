// A short, stable name for a long text. It is part of file names and uids, so the same text must
// have the same name in every later version of the program.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

// The first half of its SHA-256: 32 hex digits, the shape of a kubelet's static-pod uid.
// Threads: any. Blocks: no.
std::string HalfSha256Hex(std::string_view text);

}  // namespace volumed
