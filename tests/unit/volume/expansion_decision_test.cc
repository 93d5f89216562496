// Every question that can be asked, against the rules one by one.
#include "volume/expansion_decision.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace volumed {
namespace {

Quantity Gi(int64_t count) { return Quantity::FromBytes(count << 30); }

using Action = ExpansionAction;

// The rules as kubelet's source has them, written down a second time and in another order.
Action Expected(const ExpansionQuestion& q) {
  if (q.volume_capacity.IsZero() || q.recorded_size.IsZero()) return Action::kUnknownSize;
  if (q.recorded_size >= q.volume_capacity && q.claim_capacity >= q.volume_capacity) {
    return Action::kNothing;
  }
  if (q.read_only) return Action::kRefuseReadOnly;
  const bool legacy = !q.allocated && q.resize_status.empty();
  const Quantity size = q.allocated ? *q.allocated : q.volume_capacity;
  const bool updated = !legacy && q.resize_status.empty() && q.claim_capacity >= size;
  bool allowed =
      legacy || q.resize_status == "NodeResizePending" || q.resize_status == "NodeResizeInProgress";
  if (updated) {
    if (q.recorded_size >= size) return Action::kWait;
    if (!q.read_write_many || q.node_expansion_not_required) return Action::kReportDone;
    allowed = true;
  }
  if (!allowed) return Action::kWait;
  return q.in_use ? Action::kGiveUp : Action::kExpand;
}

std::vector<ExpansionQuestion> AllQuestions() {
  const std::vector<std::string> statuses = {"",
                                             "ControllerResizeInProgress",
                                             "ControllerResizeInfeasible",
                                             "NodeResizePending",
                                             "NodeResizeInProgress",
                                             "NodeResizeInfeasible",
                                             "SomethingOfTheFuture"};
  const std::vector<std::optional<Quantity>> allocations = {std::nullopt, Gi(1), Gi(2), Gi(3)};
  std::vector<ExpansionQuestion> all;
  for (const std::string& status : statuses) {
    for (const auto& allocated : allocations) {
      for (int sizes = 0; sizes < 4 * 4 * 3 * 3; ++sizes) {
        for (int flags = 0; flags < 32; ++flags) {
          ExpansionQuestion q;
          q.volume_capacity = Gi(sizes % 4);
          q.recorded_size = Gi(sizes / 4 % 4);
          q.claim_capacity = Gi(1 + sizes / 16 % 3);
          q.claim_request = Gi(1 + sizes / 48 % 3);
          q.allocated = allocated;
          q.resize_status = status;
          q.read_write_many = (flags & 1) != 0;
          q.node_expansion_not_required = (flags & 2) != 0;
          q.read_only = (flags & 4) != 0;
          q.failed_finally = (flags & 8) != 0;
          q.in_use = (flags & 16) != 0;
          all.push_back(q);
        }
      }
    }
  }
  return all;
}

std::string Text(const ExpansionQuestion& q) {
  return "pv " + q.volume_capacity.String() + " recorded " + q.recorded_size.String() + " claim " +
         q.claim_capacity.String() + " request " + q.claim_request.String() + " allocated " +
         (q.allocated ? q.allocated->String() : "-") + " status " + q.resize_status +
         (q.read_write_many ? " rwx" : "") + (q.node_expansion_not_required ? " annotated" : "") +
         (q.read_only ? " ro" : "") + (q.failed_finally ? " failed" : "") +
         (q.in_use ? " in use" : "");
}

TEST(ExpansionDecision, EveryQuestionHasItsAnswer) {
  std::map<Action, int> seen;
  for (const ExpansionQuestion& q : AllQuestions()) {
    const ExpansionDecision decision = DecideExpansion(q);
    ASSERT_EQ(ExpansionActionName(decision.action), ExpansionActionName(Expected(q))) << Text(q);
    ++seen[decision.action];
    const bool acts = decision.action == Action::kExpand || decision.action == Action::kReportDone;
    if (!acts) continue;
    const bool recovers = q.allocated.has_value() || !q.resize_status.empty();
    ASSERT_EQ(decision.recovers, recovers) << Text(q);
    ASSERT_EQ(decision.new_size,
              recovers ? q.allocated.value_or(q.volume_capacity) : q.volume_capacity)
        << Text(q);
    ASSERT_EQ(decision.infeasible_on_failure,
              recovers && q.failed_finally && q.claim_request != decision.new_size)
        << Text(q);
  }
  EXPECT_EQ(seen.size(), 7u);  // each action is some question's answer
}

TEST(ExpansionDecision, ADoneReportIsNotRepeated) {
  for (ExpansionQuestion q : AllQuestions()) {
    const ExpansionDecision decision = DecideExpansion(q);
    if (decision.action != Action::kReportDone) continue;
    q.recorded_size = decision.new_size;
    ASSERT_NE(DecideExpansion(q).action, Action::kReportDone) << Text(q);
  }
}

Error Failure(Code code) { return Error::NotApplied(code, "x"); }

TEST(ExpansionDecision, WhatAFailureMeans) {
  ExpansionDecision recovers;
  recovers.recovers = true;
  const ExpansionDecision legacy;
  ExpansionDecision updated = recovers;
  updated.claim_already_updated = true;
  ExpansionDecision given_up = recovers;
  given_up.infeasible_on_failure = true;
  using End = ExpansionEnd;
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kUnimplemented), legacy), End::kDone);
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kUnimplemented), updated), End::kDone);
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kUnimplemented), recovers), End::kFailed);
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kFailedPrecondition), recovers), End::kInUse);
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kFailedPrecondition), legacy), End::kInUse);
  for (const Code code : {Code::kInvalidArgument, Code::kOutOfRange, Code::kNotFound}) {
    EXPECT_EQ(ClassifyExpansionFailure(Failure(code), recovers), End::kInfeasible);
    EXPECT_EQ(ClassifyExpansionFailure(Failure(code), legacy), End::kFailed);
  }
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kResourceExhausted), recovers), End::kFailed);
  EXPECT_EQ(ClassifyExpansionFailure(Failure(Code::kResourceExhausted), given_up),
            End::kInfeasible);
  for (const ExpansionDecision& decision : {legacy, recovers, updated, given_up}) {
    EXPECT_EQ(ClassifyExpansionFailure(Error::MaybeApplied(Code::kInvalidArgument, "x"), decision),
              End::kUnknown);
  }
}

}  // namespace
}  // namespace volumed
