// Backoff: how long to wait after a failure before the same thing is tried again.
// Source: kubernetes pkg/util/goroutinemap/exponentialbackoff@v1.36 (500 ms doubling to 2 m 2 s).
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/clock.h"

namespace volumed {

// A delay is kept for each (key, operation, error class): a volume whose mount is refused and one
// that times out are two troubles, and each grows its own. The three are words of the caller, which
// are compared and never looked into. An entry goes by Reset() or for want of room; however much
// time passes, it stays, so that the next failure waits longer still.
// Threads: one at a time (the control thread). Blocks: never.
class Backoff {
 public:
  struct Options {
    Duration initial = std::chrono::milliseconds(500);
    Duration max = std::chrono::seconds(122);
    // Beyond it, the entry that failed longest ago is forgotten: its next try is then early.
    size_t max_entries = 16384;
  };

  // `clock` outlives this.
  explicit Backoff(const Clock& clock);
  Backoff(const Clock& clock, Options options);

  // Notes a failure now. Returns the delay before the next try: 0.5, 1, 2 ... 64, 122 s.
  Duration RecordFailure(std::string_view key, std::string_view operation,
                         std::string_view error_class);
  // Returns the delay that RecordFailure() would return, and notes nothing.
  Duration NextDelay(std::string_view key, std::string_view operation,
                     std::string_view error_class) const;

  // When `operation` may be tried again: the latest moment over its error classes. It is nullopt if
  // the operation may be tried now.
  std::optional<TimePoint> BlockedUntil(std::string_view key, std::string_view operation) const;

  // How often `operation` has failed under this class since the last Reset(); zero if it is not
  // known to have failed.
  int Failures(std::string_view key, std::string_view operation,
               std::string_view error_class) const;

  // Forgets every failure of `key`: the cause may be gone.
  void Reset(std::string_view key);
  // Forgets those of one operation: it succeeded.
  void Reset(std::string_view key, std::string_view operation);

  // How many (key, operation, error class) are kept.
  size_t size() const { return entries_.size(); }

 private:
  using EntryKey = std::tuple<std::string, std::string, std::string>;
  struct Entry {
    Duration delay{};
    TimePoint until;
    int failures = 0;
    std::list<EntryKey>::iterator age;  // in oldest_first_
  };
  using Entries = std::map<EntryKey, Entry>;

  const Entry* Find(std::string_view key, std::string_view operation,
                    std::string_view error_class) const;
  Duration After(const Entry* entry) const;
  void MakeRoom();
  Entries::iterator Erase(Entries::iterator at);

  const Clock& clock_;
  const Options options_;
  Entries entries_;
  std::list<EntryKey> oldest_first_;
};

}  // namespace volumed
