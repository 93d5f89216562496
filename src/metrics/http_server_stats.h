// What the HTTP server counts of itself, for the metrics: they know this struct, and not the
// server.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace volumed {

// A value. `open` is of now; `accepted` and `closed` are totals since the server was made. Each
// figure was read by itself, so that they need not add up.
struct HttpServerStats {
  // Why a connection ended.
  enum class Closed {
    kDone,           // by its client, or after its last answer
    kIdle,           // no further request came
    kHeaderTimeout,  // no whole request came in time
    kWriteTimeout,   // its client did not take the answer
    kMadeRoom,       // it was silent or slow, and another one needed its place or memory
    kRefused,        // nobody could make room for it, or there was no memory to watch it
  };
  static constexpr size_t kClosedCount = static_cast<size_t>(Closed::kRefused) + 1;
  // The value of the label "reason": "done", "idle", ...
  static std::string_view ClosedName(Closed closed);

  size_t open = 0;
  uint64_t accepted = 0;
  std::array<uint64_t, kClosedCount> closed{};
};

}  // namespace volumed
