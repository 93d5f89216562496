// CRC-32C (Castagnoli) for finding rows that a disk or a bug has changed. It is no protection
// against somebody who changes a row on purpose: the store's directory belongs to root.
// Source: RFC 3720, appendix B.4.
#pragma once

#include <cstdint>
#include <string_view>

namespace volumed {

// Returns the checksum of what `crc` is the checksum of, followed by `data`. Start with 0. Pure;
// threads: any.
uint32_t ExtendCrc32c(uint32_t crc, std::string_view data);

}  // namespace volumed
