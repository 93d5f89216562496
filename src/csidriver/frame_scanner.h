// FrameScanner: the headers of HTTP/2 frames in what one end of a connection sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace volumed {

// Source: RFC 9113, 4.1 and 6.
struct FrameHeader {
  static constexpr uint8_t kData = 0;
  static constexpr uint8_t kHeaders = 1;
  static constexpr uint8_t kReset = 3;
  static constexpr uint8_t kSettings = 4;
  static constexpr uint8_t kPing = 6;
  static constexpr uint8_t kEndOfStream = 1;   // a flag of data and headers
  static constexpr uint8_t kAcknowledges = 1;  // a flag of settings and pings

  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;

  bool acknowledges() const {
    return (type == kSettings || type == kPing) && (flags & kAcknowledges) != 0;
  }
  bool ends_stream() const {
    return (type == kData || type == kHeaders) && (flags & kEndOfStream) != 0;
  }
};

// Threads: one at a time. Blocks: never.
class FrameScanner {
 public:
  // So many bytes come before the first frame: those of the preface of a client.
  explicit FrameScanner(size_t before_frames) : skip_(before_frames) {}

  // Tells the header of each frame that begins in these bytes, which follow those before. What is
  // no HTTP/2 is told as some frames or others.
  void Scan(std::string_view bytes, const std::function<void(const FrameHeader&)>& tell);

 private:
  std::array<uint8_t, 9> header_{};
  size_t has_ = 0;  // bytes of the header
  size_t skip_;     // bytes that belong to no header
};

}  // namespace volumed
