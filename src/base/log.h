// Structured log lines, one event each: level=info msg="volume mounted" pod=ab-12 elapsed_ms=7
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/result.h"

namespace spdlog {
class logger;
}

namespace volumed {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error".
std::string_view LogLevelName(LogLevel level);
// InvalidArgument (NotApplied) names the four that exist.
Result<LogLevel> ParseLogLevel(std::string_view name);

// "2024-05-01T09:30:00.123Z": how times are written for people, in UTC. REQUIRES: not before 1970.
// Pure; threads: any.
std::string WallTimeText(int64_t unix_ms);

// One key and its value. Built from the types that may be logged; a Secret<T> is deliberately not
// among them, so that writing one is a compile error. `key` must outlive the call: a literal. An
// Error is written with its code and outcome (Error::ToString()).
struct LogField {
  std::string_view key;
  std::string value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const Error& e) : key(k), value(e.ToString()) {}
  template <typename Tag>
  LogField(std::string_view k, const StrongId<Tag>& id) : key(k), value(id.str()) {}
  // Templates, because a plain bool would take every pointer, a char literal included.
  template <std::same_as<bool> T>
  LogField(std::string_view k, T v) : key(k), value(v ? "true" : "false") {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) LogField(std::string_view k, T v)
      : key(k), value(std::to_string(v)) {}
};

struct LogOptions {
  // Where a finished line goes; the line has no newline.
  using Callback = std::function<void(LogLevel, std::string_view line)>;

  enum class Target {
    kStderr,    // time=... level=... msg=...
    kJournal,   // to stderr, with sd-daemon(3)'s "<N>" priority in front and no time of its own
    kCallback,  // level=... msg=... to `callback` (tests); calls never overlap
  };

  LogLevel min_level = LogLevel::kInfo;
  Target target = Target::kStderr;
  Callback callback;  // of kCallback; empty: lines are dropped
  // LogLimited writes one line per key in this time.
  Duration limit_window = std::chrono::seconds(30);
  // Keys that LogLimited remembers; beyond it the one written longest ago is forgotten.
  size_t limit_table_size = 1024;
};

// kJournal when stderr is the journal's stream, else kStderr. Reads the environment: call it before
// there are threads. Source: systemd.exec(5), JOURNAL_STREAM.
LogOptions::Target LogTargetFromEnvironment();

// A line has the level, the message and the fields in the order given, as key=value pairs with a
// space between; keys are written as they are, values by QuoteLogValue(). A line below the level
// costs no more than its arguments.
//
// Threads: any. Blocks: only as long as a write to stderr does. Errors: none; a line that cannot be
// written is lost.
class Logger {
 public:
  using Fields = std::initializer_list<LogField>;

  // `clock` outlives the logger.
  Logger(LogOptions options, const Clock& clock);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, std::string_view message, Fields fields = {});
  void Debug(std::string_view message, Fields fields = {});
  void Info(std::string_view message, Fields fields = {});
  void Warning(std::string_view message, Fields fields = {});
  void Error(std::string_view message, Fields fields = {});

  // As Log, but at most one line per `key` in the limit window. The next line that is written says
  // suppressed=N for the N that were not. If other keys have pushed this one out of the table, its
  // N is lost and its next line is written. `key` is no part of the line.
  void LogLimited(std::string_view key, LogLevel level, std::string_view message,
                  Fields fields = {});

  // Lines that are written from now on are held against this level.
  void SetLevel(LogLevel level) { min_level_.store(level, std::memory_order_relaxed); }
  LogLevel level() const { return min_level_.load(std::memory_order_relaxed); }
  // Whether a line of this level would be written; for callers whose fields cost something.
  bool Enabled(LogLevel level) const { return level >= this->level(); }

 private:
  struct LimitEntry {
    std::string key;
    TimePoint written_at;
    uint64_t suppressed = 0;
  };
  using LimitList = std::list<LimitEntry>;

  // Returns false when the line must be dropped; else sets how many were dropped before it.
  bool Admit(std::string_view key, uint64_t* suppressed) EXCLUDES(mu_);
  void Write(LogLevel level, std::string_view message, Fields fields, uint64_t suppressed);

  const Clock& clock_;
  const LogOptions options_;
  std::atomic<LogLevel> min_level_;
  std::unique_ptr<spdlog::logger> out_;

  Mutex mu_;
  // Oldest write first; the map's keys are views into the list's entries.
  LimitList limits_ GUARDED_BY(mu_);
  std::map<std::string_view, LimitList::iterator> by_key_ GUARDED_BY(mu_);
};

// Returns a value as it stands in a line: as it is, or in quotes. It is quoted if it is empty or
// holds anything but printable ASCII characters, or a space, a quote, a backslash or '='. Between
// quotes, a quote, a backslash, control characters and bytes that are no UTF-8 are escaped; other
// characters stay. What is longer than 8 KiB, escapes counted, is cut there and ends in "...".
// Pure; threads: any.
std::string QuoteLogValue(std::string_view value);

}  // namespace volumed
