// What the HTTP server counts of itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace volumed {

// A value.
struct HttpServerStats {
  // Why a connection ended.
  enum class Closed {
    kDone,           // by its client, or after its last answer
    kIdle,           // no further request came
    kHeaderTimeout,  // no whole request came in time
    kWriteTimeout,   // its client did not take the answer
    kMadeRoom,       // it was silent, and another one came
    kRefused,        // every place was taken by one that is being answered
  };
  static constexpr size_t kClosedCount = static_cast<size_t>(Closed::kRefused) + 1;
  // "done", "idle", ...
  static std::string_view ClosedName(Closed closed);

  size_t open = 0;
  uint64_t accepted = 0;
  std::array<uint64_t, kClosedCount> closed{};
};

}  // namespace volumed
