#include "volumehost/recovery_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Records that say what the test wants.
class FakeRecords final : public RecoverableRecords {
 public:
  RecordsRecovery recovery() const override { return state; }
  Status AcceptRecords(const std::optional<std::string>& volume) override {
    RETURN_IF_ERROR(accept_error);
    if (volume) {
      state.accepted.insert(*volume);
    } else {
      state = {};
    }
    return OkStatus();
  }

  RecordsRecovery state;
  Status accept_error = OkStatus();
};

class RecoveryGateTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  FakeRecords records_;
  RecoveryGate gate_{records_, clock_};
};

TEST_F(RecoveryGateTest, NothingIsHeldBackWithoutARecovery) {
  EXPECT_TRUE(gate_.Admit(IrreversibleStep::kFormat, "pv").ok());
  EXPECT_THAT(gate_.Pending(), IsEmpty());
}

TEST_F(RecoveryGateTest, EachStepIsHeldBackAndListedOnceWithTheTimeOfItsFirstAttempt) {
  records_.state = {.active = true, .reason = "3 transactions are missing"};
  const int64_t first = clock_.WallUnixMillis();
  for (int i = 0; i < 2; ++i) {
    const Status held = gate_.Admit(IrreversibleStep::kDelete, "pv");
    ASSERT_FALSE(held.ok());
    EXPECT_EQ(held.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(held.error().maybe_applied());
    EXPECT_THAT(held.error().message(), HasSubstr("delete of volume \"pv\" is held back"));
    EXPECT_THAT(held.error().message(), HasSubstr("3 transactions are missing"));
    EXPECT_THAT(held.error().message(), HasSubstr("volumectl records accept --only pv"));
    clock_.Advance(std::chrono::seconds(7));
  }
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kFormat, "a").ok());
  EXPECT_THAT(gate_.Pending(),
              ElementsAre(PendingStep{IrreversibleStep::kFormat, "a", clock_.WallUnixMillis()},
                          PendingStep{IrreversibleStep::kDelete, "pv", first}));
}

TEST_F(RecoveryGateTest, MountsOnNoRecordWereNotNamedByWhatIsHeldBack) {
  records_.state = {.active = true, .reason = "r"};
  EXPECT_EQ(gate_.MountsText(), "");
  EXPECT_THAT(gate_.Admit(IrreversibleStep::kProvision, "pv").error().message(),
              testing::Not(HasSubstr("mounts")));
  gate_.FoundMounts(3);
  const std::string text = gate_.Admit(IrreversibleStep::kProvision, "pv").error().message();
  EXPECT_THAT(text,
              HasSubstr("r; 3 mounts that were here at the start are on no record, and may "
                        "be in use: look at `unrecorded_mounts` of `volumectl status -o json`;"
                        " see `volumectl records`"));
}

TEST_F(RecoveryGateTest, OneVolumeIsAcceptedAlone) {
  records_.state = {.active = true, .reason = "r"};
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv").ok());
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv-2").ok());
  const auto permitted = gate_.Accept("pv");
  ASSERT_TRUE(permitted.ok());
  ASSERT_EQ(permitted->size(), 1u);
  EXPECT_EQ(permitted->front().volume, "pv");
  EXPECT_TRUE(gate_.Admit(IrreversibleStep::kDelete, "pv").ok());
  EXPECT_TRUE(gate_.Admit(IrreversibleStep::kFormat, "pv").ok());
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv-2").ok());
  EXPECT_EQ(gate_.Pending().size(), 1u);
}

// A name with a slip in it was accepted, and nothing happened.
TEST_F(RecoveryGateTest, AVolumeOfWhichNothingIsHeldBackIsNotAccepted) {
  records_.state = {.active = true, .reason = "r"};
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv").ok());
  EXPECT_EQ(gate_.Accept("pw").error().code(), Code::kNotFound);
  EXPECT_TRUE(gate_.Accept("pv").ok());
  EXPECT_TRUE(gate_.Accept("pv").ok()) << "once more";
}

TEST_F(RecoveryGateTest, EverythingIsAccepted) {
  records_.state = {.active = true, .reason = "r"};
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv").ok());
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kRecycle, "pv-2").ok());
  EXPECT_EQ(gate_.Accept(std::nullopt)->size(), 2u);
  EXPECT_THAT(gate_.Pending(), IsEmpty());
  EXPECT_TRUE(gate_.Admit(IrreversibleStep::kRecycle, "pv-2").ok());
}

TEST_F(RecoveryGateTest, WhatCannotBeRecordedIsNotAccepted) {
  records_.state = {.active = true, .reason = "r"};
  records_.accept_error = Error::NotApplied(Code::kResourceExhausted, "full");
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv").ok());
  EXPECT_FALSE(gate_.Accept(std::nullopt).ok());
  EXPECT_FALSE(gate_.Admit(IrreversibleStep::kDelete, "pv").ok());
  EXPECT_EQ(gate_.Pending().size(), 1u);
}

}  // namespace
}  // namespace volumed
