// Random names from the kernel's generator. Not for simulated runs that must repeat.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace volumed {

// Fills `bytes`. Threads: any. Blocks: only before the kernel's generator is seeded, early in boot.
// Ends the process if the kernel has no getrandom(2).
void RandomBytes(std::span<std::byte> bytes);

// Returns `digits` lowercase hexadecimal digits, each of four random bits. It blocks and ends the
// process as RandomBytes() does.
std::string RandomHex(size_t digits);

// Returns a random UUID of version 4, in 36 lowercase characters. It blocks and ends the process as
// RandomBytes() does. Source: RFC 9562 section 5.4.
std::string NewUuid();

}  // namespace volumed
