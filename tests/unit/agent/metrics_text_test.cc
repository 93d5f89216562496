#include "agent/metrics_text.h"

#include <gtest/gtest.h>

#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

class MetricsTextTest : public testing::Test {
 protected:
  void Ask() {
    text_.Ask([this](const MetricsText::Text& text) { replies_.push_back(text); });
  }

  SimulatedScheduler scheduler_{1};
  int collected_ = 0;
  std::vector<Duration> lags_;
  std::vector<MetricsText::Text> replies_;
  MetricsText text_{scheduler_,
                    MetricsText::Hooks{
                        .collect =
                            [this] {
                              ++parts_;
                              if (parts_ % 2 == 1) return false;  // the first of two
                              ++collected_;
                              return true;
                            },
                        .write =
                            [this] {
                              ++written_;
                              if (during_) during_();
                              wrote_on_control_ = wrote_on_control_ || scheduler_.OnControlThread();
                              return "volumed_pods " + std::to_string(collected_) + "\n";
                            },
                        .lag = [this](Duration lag) { lags_.push_back(lag); }}};
  int parts_ = 0;
  int written_ = 0;
  bool wrote_on_control_ = false;
  std::function<void()> during_;
};

TEST_F(MetricsTextTest, WhoAsksWhileNobodyCollectsSharesOneText) {
  for (int i = 0; i < 10; ++i) Ask();
  EXPECT_TRUE(replies_.empty());
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::seconds(1)));
  ASSERT_EQ(replies_.size(), 10u);
  EXPECT_EQ(collected_, 1);
  EXPECT_EQ(replies_[0], replies_[9]);
  EXPECT_EQ(*replies_[0], "volumed_pods 1\n");
  EXPECT_EQ(lags_.size(), 1u);
}

TEST_F(MetricsTextTest, TheTextIsWrittenBesideTheControlThread) {
  Ask();
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::seconds(1)));
  EXPECT_EQ(written_, 1);
  EXPECT_FALSE(wrote_on_control_);
}

TEST_F(MetricsTextTest, WhoAsksDuringACollectionGetsTheNextText) {
  during_ = [this] {
    during_ = nullptr;
    Ask();
  };
  Ask();
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::seconds(1)));
  ASSERT_EQ(replies_.size(), 2u);
  EXPECT_EQ(*replies_[1], "volumed_pods 2\n");
}

TEST_F(MetricsTextTest, TheLastTextIsThereWhileTheControlThreadHasNoTime) {
  EXPECT_EQ(*text_.last(), "");
  text_.Collect();
  Ask();
  EXPECT_EQ(*text_.last(), "volumed_pods 1\n");
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::seconds(1)));
  EXPECT_EQ(*text_.last(), "volumed_pods 2\n");
}

}  // namespace
}  // namespace volumed
