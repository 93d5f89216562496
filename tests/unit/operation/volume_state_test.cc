#include "operation/volume_state.h"
#include "places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace volumed {
namespace {

std::vector<VolumeState> AllStates() {
  std::vector<VolumeState> states;
  for (int i = 0; i < kVolumeStateCount; ++i) states.push_back(VolumeState{i});
  return states;
}

std::vector<VolumeEvent> AllEvents() {
  std::vector<VolumeEvent> events;
  for (int i = 0; i < kVolumeEventCount; ++i) events.push_back(VolumeEvent{i});
  return events;
}

bool IsAnswer(VolumeEvent event) {
  return event == VolumeEvent::kDone || event == VolumeEvent::kNotApplied ||
         event == VolumeEvent::kMaybeApplied;
}

bool IsCall(VolumeEvent event) {
  return !IsAnswer(event) && event != VolumeEvent::kFound && event != VolumeEvent::kFoundMapped &&
         event != VolumeEvent::kReboot;
}

std::string Pair(VolumeState state, VolumeEvent event) {
  return std::string(VolumeStateName(state)) + " x " + std::string(VolumeEventName(event));
}

TEST(VolumeState, EveryPairHasAnEntryOrAReasonWhyItCannotBe) {
  int entries = 0;
  int impossible = 0;
  for (VolumeState state : AllStates()) {
    for (VolumeEvent event : AllEvents()) {
      const auto row = Next(state, event);
      const auto why = WhyImpossible(state, event);
      EXPECT_NE(row.has_value(), why.has_value()) << Pair(state, event);
      entries += row.has_value();
      if (why) {
        ++impossible;
        EXPECT_FALSE(why->empty()) << Pair(state, event);
      }
    }
  }
  EXPECT_EQ(entries + impossible, kVolumeStateCount * kVolumeEventCount);
  EXPECT_EQ(static_cast<size_t>(entries), AllTransitions().size());
  EXPECT_EQ(static_cast<size_t>(impossible), AllImpossibleTransitions().size());
}

TEST(VolumeState, ACallAlwaysLeadsToAnInCallStateUnlessItIsARemount) {
  for (const Transition& row : AllTransitions()) {
    if (!IsCall(row.event)) continue;
    if (row.event == VolumeEvent::kRemount) {
      EXPECT_EQ(row.to, row.from);
    } else {
      EXPECT_TRUE(IsInCall(row.to)) << Pair(row.from, row.event);
    }
  }
}

TEST(VolumeState, EveryInCallStateHasAllThreeAnswers) {
  for (VolumeState state : AllStates()) {
    if (!IsInCall(state)) continue;
    const auto done = Next(state, VolumeEvent::kDone);
    const auto not_applied = Next(state, VolumeEvent::kNotApplied);
    const auto maybe = Next(state, VolumeEvent::kMaybeApplied);
    ASSERT_TRUE(done && not_applied && maybe) << VolumeStateName(state);
    EXPECT_FALSE(IsInCall(done->to)) << VolumeStateName(state);
    EXPECT_FALSE(done->uncertain);
    EXPECT_FALSE(IsInCall(not_applied->to)) << VolumeStateName(state);
    EXPECT_EQ(maybe->to, state);
    EXPECT_TRUE(maybe->uncertain);
  }
}

TEST(VolumeState, AfterMaybeAppliedOnlyTheSameCallOrItsInverseMayFollow) {
  for (VolumeState state : AllStates()) {
    if (!IsInCall(state)) continue;
    int same = 0;
    int inverse = 0;
    for (VolumeEvent event : AllEvents()) {
      const auto row = Next(state, event);
      if (!row || !IsCall(event)) continue;
      if (row->to == state) {
        ++same;
      } else {
        ++inverse;
        // Growing has no inverse, and leaves the device mounted: that may be looked at, or ended.
        // All others lead there and back again.
        if (state == VolumeState::kExpanding) continue;
        bool back = false;
        for (VolumeEvent other : AllEvents()) {
          const auto returned = Next(row->to, other);
          back = back || (returned && IsCall(other) && returned->to == state);
        }
        EXPECT_TRUE(back) << Pair(state, event);
      }
    }
    EXPECT_EQ(same, 1) << VolumeStateName(state);
    EXPECT_EQ(inverse, state == VolumeState::kExpanding ? 2 : 1) << VolumeStateName(state);
  }
}

TEST(VolumeState, NotAppliedLeadsBackToARestingStateFromWhichTheCallStarts) {
  for (VolumeState state : AllStates()) {
    if (!IsInCall(state)) continue;
    const VolumeState back = Next(state, VolumeEvent::kNotApplied)->to;
    bool starts = false;
    for (VolumeEvent event : AllEvents()) {
      const auto row = Next(back, event);
      starts = starts || (row && IsCall(event) && row->to == state);
    }
    EXPECT_TRUE(starts) << VolumeStateName(state);
  }
}

TEST(VolumeState, EveryStateSurvivesARebootWithoutKernelState) {
  const std::set<VolumeState> kept = {
      VolumeState::kNotSetUp,  VolumeState::kSettingUp, VolumeState::kTearingDown,
      VolumeState::kDetached,  VolumeState::kAttaching, VolumeState::kAttached,
      VolumeState::kDetaching, VolumeState::kMapping,   VolumeState::kUnmapping};
  for (VolumeState state : AllStates()) {
    const auto row = Next(state, VolumeEvent::kReboot);
    ASSERT_TRUE(row) << VolumeStateName(state);
    EXPECT_EQ(kept.count(row->to), 1u) << VolumeStateName(state);
    const bool nothing_there =
        row->to == VolumeState::kNotSetUp || row->to == VolumeState::kDetached;
    EXPECT_NE(row->uncertain, nothing_there) << VolumeStateName(state);
  }
}

TEST(VolumeState, ARemountNeverLosesTheVolume) {
  EXPECT_EQ(Next(VolumeState::kSetUp, VolumeEvent::kRemount)->to, VolumeState::kSetUp);
  EXPECT_EQ(Next(VolumeState::kSetUp, VolumeEvent::kNotApplied)->to, VolumeState::kSetUp);
  EXPECT_EQ(Next(VolumeState::kSetUp, VolumeEvent::kMaybeApplied)->to, VolumeState::kSetUp);
}

TEST(VolumeState, NotAppliedProvesNothingAboutAnEarlierCall) {
  EXPECT_EQ(AnswerEvent(CallAnswer::kNotApplied, false), VolumeEvent::kNotApplied);
  EXPECT_EQ(AnswerEvent(CallAnswer::kNotApplied, true), VolumeEvent::kMaybeApplied);
  EXPECT_EQ(AnswerEvent(CallAnswer::kDone, true), VolumeEvent::kDone);
  EXPECT_EQ(AnswerEvent(CallAnswer::kMaybeApplied, false), VolumeEvent::kMaybeApplied);
}

TEST(VolumeState, NamesAreUniqueAndNumbersAreStable) {
  std::set<std::string_view> names;
  for (VolumeState state : AllStates()) names.insert(VolumeStateName(state));
  EXPECT_EQ(names.size(), static_cast<size_t>(kVolumeStateCount));
  std::set<std::string_view> events;
  for (VolumeEvent event : AllEvents()) events.insert(VolumeEventName(event));
  EXPECT_EQ(events.size(), static_cast<size_t>(kVolumeEventCount));

  EXPECT_EQ(static_cast<int>(VolumeState::kTearingDown), 3);
  EXPECT_EQ(static_cast<int>(VolumeState::kDeviceMounted), 8);
  EXPECT_EQ(static_cast<int>(VolumeState::kUnmapping), 14);
  EXPECT_EQ(VolumeStateFromNumber(2), VolumeState::kSetUp);
  EXPECT_EQ(VolumeStateFromNumber(15), std::nullopt);
  EXPECT_EQ(VolumeStateFromNumber(-1), std::nullopt);
}

TEST(VolumeState, TheDocumentIsWhatTheTablePrints) {
  std::ifstream file(SourcePath("docs/STATES.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), PrintStatesMarkdown()) << "make it anew: print_states > docs/STATES.md";
}

}  // namespace
}  // namespace volumed
