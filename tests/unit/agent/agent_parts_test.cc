#include "agent/agent_parts.h"

#include <gtest/gtest.h>

#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Error Taken() { return Error::NotApplied(Code::kUnavailable, "the port is taken"); }

class AgentPartsTest : public testing::Test {
 protected:
  AgentPartsTest() {
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.callback = [this](LogLevel, std::string_view line) { lines_.emplace_back(line); };
    log_ = std::make_unique<Logger>(options, scheduler_.clock());
    parts_ = std::make_unique<AgentParts>(scheduler_, *log_, [this] { ++changes_; });
  }
  void Retry() {
    parts_->Retry(
        "metrics", Taken(),
        [this]() -> Status {
          tries_.push_back(scheduler_.clock().Now());
          if (free_) return OkStatus();
          return Taken();
        },
        [this]() -> Status {
          ++used_;
          return use_;
        });
  }

  SimulatedScheduler scheduler_{1};
  std::vector<std::string> lines_;
  std::unique_ptr<Logger> log_;
  int changes_ = 0;
  std::unique_ptr<AgentParts> parts_;
  std::vector<TimePoint> tries_;
  bool free_ = false;
  int used_ = 0;
  Status use_;
};

TEST_F(AgentPartsTest, APartThatFailsIsTriedWithGrowingDelaysUntilItWorks) {
  Retry();
  EXPECT_EQ(parts_->Problem(), "metrics: the port is taken");
  EXPECT_FALSE(parts_->states().at("metrics"));
  scheduler_.RunFor(minutes(10));
  ASSERT_GE(tries_.size(), 8u);
  EXPECT_EQ(tries_[1] - tries_[0], seconds(2));
  EXPECT_EQ(tries_.back() - tries_[tries_.size() - 2], minutes(1));
  EXPECT_EQ(used_, 0);
  free_ = true;
  scheduler_.RunFor(minutes(1));
  EXPECT_EQ(used_, 1);
  EXPECT_EQ(parts_->Problem(), std::nullopt);
  EXPECT_TRUE(parts_->states().at("metrics"));
  const size_t tries = tries_.size();
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(tries_.size(), tries) << "what works is not tried";
}

TEST_F(AgentPartsTest, WhatCannotBeUsedIsTriedAgainToo) {
  free_ = true;
  use_ = Error::NotApplied(Code::kResourceExhausted, "no descriptors");
  Retry();
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(used_, 1);
  EXPECT_EQ(parts_->Problem(), "metrics: no descriptors");
  use_ = OkStatus();
  scheduler_.RunFor(seconds(2));
  EXPECT_EQ(used_, 2);
  EXPECT_EQ(parts_->Problem(), std::nullopt);
}

TEST_F(AgentPartsTest, AFailureIsLoggedAndToldOnceAndWithTheTimeThatItBegan) {
  const int64_t began = scheduler_.clock().WallUnixMillis();
  Retry();
  scheduler_.RunFor(minutes(5));
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(changes_, 1);
  parts_->Set("metrics", Error::NotApplied(Code::kUnavailable, "no such address"));
  ASSERT_EQ(parts_->failed().size(), 1u);
  EXPECT_EQ(parts_->failed()[0].since_unix_ms, began) << "it has not worked in between";
  EXPECT_EQ(changes_, 2);
  parts_->Set("tokens", OkStatus());
  EXPECT_EQ(changes_, 2) << "a part that works from the start is no news";
}

}  // namespace
}  // namespace volumed
