#include "csidriver/frame_scanner.h"

#include <algorithm>

namespace volumed {

void FrameScanner::Scan(std::string_view bytes,
                        const std::function<void(const FrameHeader&)>& tell) {
  while (!bytes.empty()) {
    const size_t skipped = std::min(skip_, bytes.size());
    skip_ -= skipped;
    bytes.remove_prefix(skipped);
    while (has_ < header_.size() && skip_ == 0 && !bytes.empty()) {
      header_[has_++] = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
    }
    if (has_ < header_.size()) continue;
    has_ = 0;
    skip_ = size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
    // The highest bit of the stream's number is reserved.
    const uint32_t stream = (header_[5] & 0x7fU) << 24 | uint32_t{header_[6]} << 16 |
                            uint32_t{header_[7]} << 8 | header_[8];
    tell({header_[3], header_[4], stream});
  }
}

}  // namespace volumed
