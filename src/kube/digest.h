// A short, stable name for a long text.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

// The first half of its SHA-256: 32 hex digits, the shape of a kubelet's static-pod uid.
// Threads: any. Blocks: no.
std::string HalfSha256Hex(std::string_view text);

}  // namespace volumed
