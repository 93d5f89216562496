// Random names from the kernel's generator. Not for simulated runs that must repeat.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace volumed {

// Fills `bytes`. Threads: any. Blocks: only before the kernel's generator is seeded, early in boot.
// Ends the process if the kernel has no getrandom(2).
void RandomBytes(std::span<std::byte> bytes);

// `digits` lowercase hexadecimal digits.
std::string RandomHex(size_t digits);

// A random UUID of version 4, lowercase. Source: RFC 9562 section 5.4.
std::string NewUuid();

}  // namespace volumed
