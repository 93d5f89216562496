// Properties of DecideExpansion over random claims and sizes.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "volume/expansion_decision.h"

namespace volumed {
namespace {

class RandomQuestions {
 public:
  explicit RandomQuestions(uint64_t seed) : random_(seed) {}

  ExpansionQuestion Next() {
    ExpansionQuestion question;
    question.volume_capacity = Size();
    question.recorded_size = Size();
    question.claim_request = Size();
    question.claim_capacity = Size();
    if (Flag()) question.allocated = Size();
    static constexpr const char* kStatuses[] = {"",
                                                "",
                                                "NodeResizePending",
                                                "NodeResizeInProgress",
                                                "NodeResizeFailed",
                                                "ControllerResizeInProgress",
                                                "NodeResizeInfeasible",
                                                "unheard of"};
    question.resize_status = kStatuses[random_() % std::size(kStatuses)];
    question.read_write_many = Flag();
    question.node_expansion_not_required = Flag();
    question.read_only = Flag();
    question.failed_finally = Flag();
    question.in_use = Flag();
    return question;
  }

 private:
  bool Flag() { return random_() % 3 == 0; }
  Quantity Size() { return Quantity::Parse(std::to_string(random_() % 4) + "Gi").value(); }

  std::mt19937_64 random_;
};

bool IsCall(const ExpansionDecision& decision) {
  return decision.action == ExpansionAction::kExpand;
}

TEST(DecideExpansionRandom, AVolumeIsMadeLargerOnlyAndOnlyBySomebodyWhoMayWrite) {
  RandomQuestions questions(1);
  for (int i = 0; i < 100'000; ++i) {
    const ExpansionQuestion question = questions.Next();
    const ExpansionDecision decision = DecideExpansion(question);
    // While a failed growth recovers, the controller has said how far it has come.
    const Quantity size = question.allocated.value_or(question.volume_capacity);
    ASSERT_EQ(decision.new_size, decision.recovers ? size : question.volume_capacity) << i;
    if (!IsCall(decision)) continue;
    ASSERT_FALSE(question.read_only) << i;
    ASSERT_FALSE(question.volume_capacity.IsZero() || question.recorded_size.IsZero()) << i;
    ASSERT_TRUE(question.recorded_size < question.volume_capacity ||
                question.claim_capacity < question.volume_capacity)
        << i;
  }
}

// When the node has grown it and the claim says so, the next look at it does nothing.
TEST(DecideExpansionRandom, WhatIsDoneIsNotDoneAgain) {
  RandomQuestions questions(2);
  for (int i = 0; i < 100'000; ++i) {
    ExpansionQuestion question = questions.Next();
    if (!IsCall(DecideExpansion(question))) continue;
    question.recorded_size = question.claim_capacity = question.volume_capacity;
    question.resize_status.clear();
    ASSERT_EQ(DecideExpansion(question).action, ExpansionAction::kNothing) << i;
  }
}

TEST(DecideExpansionRandom, WhatMayHaveBeenDoneIsTriedAgain) {
  RandomQuestions questions(3);
  for (int code = 1; code <= 16; ++code) {
    const Error error = Error::MaybeApplied(static_cast<Code>(code), "lost");
    const ExpansionDecision decision = DecideExpansion(questions.Next());
    EXPECT_EQ(ClassifyExpansionFailure(error, decision), ExpansionEnd::kUnknown) << code;
  }
}

}  // namespace
}  // namespace volumed
