#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/printable_text.h"

namespace volumed {
namespace {

constexpr size_t kMaxValueBytes = 8 * 1024;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Source: sd-daemon(3), SD_ERR and its kin.
std::string_view JournalPrefix(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "<7>";
    case LogLevel::kInfo:
      return "<6>";
    case LogLevel::kWarning:
      return "<4>";
    case LogLevel::kError:
      return "<3>";
  }
  return "<3>";
}

LogLevel FromSpdlog(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return LogLevel::kError;
  if (level == spdlog::level::warn) return LogLevel::kWarning;
  return level == spdlog::level::info ? LogLevel::kInfo : LogLevel::kDebug;
}

// Hands each line to a function. spdlog 1.10 has no such sink.
class CallbackSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit CallbackSink(LogOptions::Callback callback) : callback_(std::move(callback)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    callback_(FromSpdlog(message.level),
              std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

  const LogOptions::Callback callback_;
};

spdlog::sink_ptr MakeSink(const LogOptions& options) {
  switch (options.target) {
    case LogOptions::Target::kStderr:
    case LogOptions::Target::kJournal:
      return std::make_shared<spdlog::sinks::stderr_sink_mt>();
    case LogOptions::Target::kCallback:
      return std::make_shared<CallbackSink>(options.callback ? options.callback
                                                             : [](LogLevel, std::string_view) {});
  }
  return nullptr;
}

// Appends one character in its escaped form. Returns how many bytes of `rest` it took.
size_t AppendEscaped(std::string& out, std::string_view rest) {
  const char c = rest[0];
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '"':
      out += "\\\"";
      return 1;
    case '\\':
      out += "\\\\";
      return 1;
    case '\n':
      out += "\\n";
      return 1;
    case '\r':
      out += "\\r";
      return 1;
    case '\t':
      out += "\\t";
      return 1;
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7f) {
    out += c;
    return 1;
  }
  const size_t length = byte < 0x80 ? 1 : std::max<size_t>(Utf8Length(rest), 1);
  out += PrintableText(rest.substr(0, length));
  return length;
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '=') return true;
  }
  return false;
}

}  // namespace

std::string WallTimeText(int64_t unix_ms) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char date[32];
  const size_t size = std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[8];
  std::snprintf(fraction, sizeof(fraction), ".%03dZ", static_cast<int>(unix_ms % 1000));
  return std::string(date, size) + fraction;
}

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "invalid";
}

Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name == LogLevelName(level)) return level;
  }
  return Error::NotApplied(Code::kInvalidArgument, "log level " + QuoteLogValue(name) +
                                                       ": must be debug, info, warning or error");
}

std::string QuoteLogValue(std::string_view value) {
  const bool cut = value.size() > kMaxValueBytes;
  if (!NeedsQuotes(value)) {
    return cut ? std::string(value.substr(0, kMaxValueBytes)) + "..." : std::string(value);
  }
  std::string quoted = "\"";
  while (!value.empty() && quoted.size() <= kMaxValueBytes) {
    value.remove_prefix(AppendEscaped(quoted, value));
  }
  if (!value.empty()) quoted += "...";
  quoted += '"';
  return quoted;
}

LogOptions::Target LogTargetFromEnvironment() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) < 0) return LogOptions::Target::kStderr;
  // A child with its stderr redirected inherits the variable; device and inode tell.
  const std::string own = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  return own == stream ? LogOptions::Target::kJournal : LogOptions::Target::kStderr;
}

Logger::Logger(LogOptions options, const Clock& clock)
    : clock_(clock),
      options_(std::move(options)),
      min_level_(options_.min_level),
      out_(std::make_unique<spdlog::logger>("volumed", MakeSink(options_))) {
  // The level is ours to check, the line ours to format.
  out_->set_level(spdlog::level::trace);
  out_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
}

Logger::~Logger() = default;

void Logger::Log(LogLevel level, std::string_view message, Fields fields) {
  if (Enabled(level)) Write(level, message, fields, 0);
}
void Logger::Debug(std::string_view message, Fields fields) {
  Log(LogLevel::kDebug, message, fields);
}
void Logger::Info(std::string_view message, Fields fields) {
  Log(LogLevel::kInfo, message, fields);
}
void Logger::Warning(std::string_view message, Fields fields) {
  Log(LogLevel::kWarning, message, fields);
}
void Logger::Error(std::string_view message, Fields fields) {
  Log(LogLevel::kError, message, fields);
}

void Logger::LogLimited(std::string_view key, LogLevel level, std::string_view message,
                        Fields fields) {
  if (!Enabled(level)) return;
  uint64_t suppressed = 0;
  if (Admit(key, &suppressed)) Write(level, message, fields, suppressed);
}

bool Logger::Admit(std::string_view key, uint64_t* suppressed) {
  const TimePoint now = clock_.Now();
  MutexLock lock(mu_);
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) {
    LimitEntry& entry = *found->second;
    if (now - entry.written_at < options_.limit_window) {
      ++entry.suppressed;
      return false;
    }
    *suppressed = std::exchange(entry.suppressed, 0);
    entry.written_at = now;
    limits_.splice(limits_.end(), limits_, found->second);
    return true;
  }
  while (!limits_.empty() && limits_.size() >= options_.limit_table_size) {
    by_key_.erase(limits_.front().key);
    limits_.pop_front();
  }
  limits_.push_back(LimitEntry{std::string(key), now, 0});
  by_key_.emplace(limits_.back().key, std::prev(limits_.end()));
  return true;
}

void Logger::Write(LogLevel level, std::string_view message, Fields fields, uint64_t suppressed) {
  std::string line;
  if (options_.target == LogOptions::Target::kJournal) line += JournalPrefix(level);
  if (options_.target == LogOptions::Target::kStderr) {
    line += "time=" + WallTimeText(clock_.WallUnixMillis()) + ' ';
  }
  line += "level=";
  line += LogLevelName(level);
  line += " msg=";
  line += QuoteLogValue(message);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    line += QuoteLogValue(field.value);
  }
  if (suppressed > 0) line += " suppressed=" + std::to_string(suppressed);
  out_->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace volumed
