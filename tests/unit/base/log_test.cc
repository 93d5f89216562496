#include "base/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "base/secret.h"

namespace volumed {
namespace {

using Lines = std::vector<std::string>;

static_assert(!std::is_constructible_v<LogField, std::string_view, Secret<std::string>>);
static_assert(!std::is_constructible_v<LogField, std::string_view, const Secret<int>&>);
static_assert(!std::is_constructible_v<LogField, std::string_view, int*>, "no pointer as bool");
static_assert(std::is_constructible_v<LogField, std::string_view, std::string>);

class LogTest : public testing::Test {
 protected:
  LogOptions Options() {
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.callback = [this](LogLevel level, std::string_view line) {
      levels_.push_back(level);
      lines_.emplace_back(line);
    };
    return options;
  }

  ManualClock clock_;
  std::vector<LogLevel> levels_;
  Lines lines_;
};

TEST_F(LogTest, OneLinePerEventWithEveryFieldType) {
  Logger log(Options(), clock_);
  log.Info("volume mounted", {{"pod", PodUid("ab-12")},
                              {"name", std::string("v1")},
                              {"literal", "x"},
                              {"elapsed_ms", 7},
                              {"bytes", uint64_t{18446744073709551615u}},
                              {"delta", int64_t{-3}},
                              {"remounted", true}});
  EXPECT_EQ(lines_, (Lines{"level=info msg=\"volume mounted\" pod=ab-12 name=v1 literal=x "
                           "elapsed_ms=7 bytes=18446744073709551615 delta=-3 remounted=true"}));
}

TEST_F(LogTest, ErrorsAreFieldsWithOutcome) {
  Logger log(Options(), clock_);
  log.Warning("failed", {{"error", Error::MaybeApplied(Code::kAborted, "lost \"it\"")}});
  EXPECT_EQ(lines_, (Lines{"level=warning msg=failed "
                           "error=\"Aborted (maybe applied): lost \\\"it\\\"\""}));
}

TEST_F(LogTest, BelowTheLevelNothingIsWritten) {
  Logger log(Options(), clock_);
  log.Debug("a");
  log.SetLevel(LogLevel::kError);
  log.Warning("b");
  log.Error("c");
  log.SetLevel(LogLevel::kDebug);
  log.Debug("d");
  EXPECT_EQ(lines_, (Lines{"level=error msg=c", "level=debug msg=d"}));
  EXPECT_EQ(levels_, (std::vector<LogLevel>{LogLevel::kError, LogLevel::kDebug}));
}

TEST_F(LogTest, FormatCharactersInTextMeanNothing) {
  Logger log(Options(), clock_);
  log.Info("{} %s {0}", {{"k", "{}%v"}});
  EXPECT_EQ(lines_, (Lines{"level=info msg=\"{} %s {0}\" k={}%v"}));
}

TEST_F(LogTest, LimitedLinesAreCountedAndTheNextSaysHowMany) {
  Logger log(Options(), clock_);
  for (int i = 0; i < 5; ++i) log.LogLimited("k", LogLevel::kInfo, "slow", {{"i", i}});
  clock_.Advance(std::chrono::seconds(29));
  log.LogLimited("k", LogLevel::kInfo, "slow");
  clock_.Advance(std::chrono::seconds(1));
  log.LogLimited("k", LogLevel::kInfo, "slow");
  clock_.Advance(std::chrono::seconds(30));
  log.LogLimited("k", LogLevel::kInfo, "slow");
  EXPECT_EQ(lines_, (Lines{"level=info msg=slow i=0", "level=info msg=slow suppressed=5",
                           "level=info msg=slow"}));
}

TEST_F(LogTest, LimitIsPerKeyAndIgnoresLinesBelowTheLevel) {
  Logger log(Options(), clock_);
  log.LogLimited("a", LogLevel::kDebug, "hidden");
  log.LogLimited("a", LogLevel::kInfo, "1");
  log.LogLimited("b", LogLevel::kInfo, "2");
  EXPECT_EQ(lines_, (Lines{"level=info msg=1", "level=info msg=2"}));
}

TEST_F(LogTest, LimitTableForgetsTheOldestKey) {
  LogOptions options = Options();
  options.limit_table_size = 2;
  Logger log(options, clock_);
  for (const char* key : {"a", "b", "c"}) log.LogLimited(key, LogLevel::kInfo, key);
  log.LogLimited("c", LogLevel::kInfo, "c");  // still known
  log.LogLimited("b", LogLevel::kInfo, "b");  // still known
  log.LogLimited("a", LogLevel::kInfo, "a");  // forgotten: written again
  EXPECT_EQ(lines_, (Lines{"level=info msg=a", "level=info msg=b", "level=info msg=c",
                           "level=info msg=a"}));
}

TEST_F(LogTest, ManyThreadsWriteWholeLines) {
  Logger log(Options(), clock_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 250; ++i) {
        log.Info("x", {{"thread", t}});
        log.LogLimited(std::to_string(i), LogLevel::kInfo, "limited");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_.size(), 4u * 250 + 250);
}

TEST(QuoteLogValueTest, PlainValuesStayAsTheyAre) {
  EXPECT_EQ(QuoteLogValue("kubernetes.io/empty-dir~x_1:[a,b]"),
            "kubernetes.io/empty-dir~x_1:[a,b]");
}

TEST(QuoteLogValueTest, OthersAreQuotedAndEscaped) {
  EXPECT_EQ(QuoteLogValue(""), "\"\"");
  EXPECT_EQ(QuoteLogValue("a b"), "\"a b\"");
  EXPECT_EQ(QuoteLogValue("a=b"), "\"a=b\"");
  EXPECT_EQ(QuoteLogValue("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(QuoteLogValue("a\nlevel=error\r\t"), "\"a\\nlevel=error\\r\\t\"");
  EXPECT_EQ(QuoteLogValue(std::string_view("\0\x1b[31m\x7f", 7)), "\"\\x00\\x1b[31m\\x7f\"");
}

TEST(QuoteLogValueTest, ValidUtf8IsKeptInvalidIsEscaped) {
  EXPECT_EQ(QuoteLogValue("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
  EXPECT_EQ(QuoteLogValue("\xc3"), "\"\\xc3\"") << "cut short";
  EXPECT_EQ(QuoteLogValue("\xc0\xaf"), "\"\\xc0\\xaf\"") << "overlong";
  EXPECT_EQ(QuoteLogValue("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"") << "surrogate";
  EXPECT_EQ(QuoteLogValue("\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"") << "beyond Unicode";
  EXPECT_EQ(QuoteLogValue("\xc2\x9b"), "\"\\xc2\\x9b\"") << "C1 control";
}

TEST(QuoteLogValueTest, ACharacterThatTurnsTheTextIsEscaped) {
  EXPECT_EQ(QuoteLogValue("a\u202eb \xc2\x9b"), "\"a\\u202eb \\xc2\\x9b\"");
}

TEST(QuoteLogValueTest, EndlessValuesAreCut) {
  EXPECT_EQ(QuoteLogValue(std::string(100000, 'x')), std::string(8192, 'x') + "...");
  EXPECT_LT(QuoteLogValue(std::string(100000, ' ')).size(), 8200u);
}

TEST(LogLevelTest, NamesParseBack) {
  for (const char* name : {"debug", "info", "warning", "error"}) {
    ASSERT_TRUE(ParseLogLevel(name).ok());
    EXPECT_EQ(LogLevelName(*ParseLogLevel(name)), name);
  }
  EXPECT_EQ(ParseLogLevel("INFO").error().code(), Code::kInvalidArgument);
}

std::string StderrOf(LogOptions::Target target) {
  const ManualClock clock;
  LogOptions options;
  options.target = target;
  testing::internal::CaptureStderr();
  {
    Logger log(options, clock);
    log.Info("a b");
    log.Error("c");
  }
  return testing::internal::GetCapturedStderr();
}

TEST(LogTargetTest, StderrLinesCarryTime) {
  EXPECT_EQ(StderrOf(LogOptions::Target::kStderr),
            "time=2023-11-14T22:13:20.000Z level=info msg=\"a b\"\n"
            "time=2023-11-14T22:13:20.000Z level=error msg=c\n");
}

TEST(LogTargetTest, JournalLinesCarryPriority) {
  EXPECT_EQ(StderrOf(LogOptions::Target::kJournal),
            "<6>level=info msg=\"a b\"\n<3>level=error msg=c\n");
}

TEST(LogTargetTest, TheJournalMustBeOurOwnStderr) {
  struct stat status {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &status), 0);
  const std::string own = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  ::setenv("JOURNAL_STREAM", own.c_str(), 1);
  EXPECT_EQ(LogTargetFromEnvironment(), LogOptions::Target::kJournal);
  ::setenv("JOURNAL_STREAM", "1:1", 1);
  EXPECT_EQ(LogTargetFromEnvironment(), LogOptions::Target::kStderr) << "inherited, redirected";
  ::unsetenv("JOURNAL_STREAM");
  EXPECT_EQ(LogTargetFromEnvironment(), LogOptions::Target::kStderr);
}

}  // namespace
}  // namespace volumed
