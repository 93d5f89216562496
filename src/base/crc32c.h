// CRC-32C (Castagnoli) for finding what a disk or a bug has changed. It is no protection against
// somebody who changes it on purpose.
// Source: RFC 3720, appendix B.4.
#pragma once

#include <cstdint>
#include <string_view>

namespace volumed {

// Returns the checksum of what `crc` is the checksum of, followed by `data`. Start with 0. Pure;
// threads: any.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);

}  // namespace volumed
