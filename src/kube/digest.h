// Stable names for texts of any length. They are part of file names and uids, so the same text must
// have the same name in every later version of the program.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

// Threads: any. Blocks: no.
//
// Its SHA-256: 64 hex digits.
std::string Sha256Hex(std::string_view text);
// The first half of that, the shape of a kubelet's static-pod uid.
std::string HalfSha256Hex(std::string_view text);
// Its SHA-1, 40 hex digits: only for names that Kubernetes makes of it. It keeps no two texts apart
// whose author wants them to be one.
std::string Sha1Hex(std::string_view text);

}  // namespace volumed
