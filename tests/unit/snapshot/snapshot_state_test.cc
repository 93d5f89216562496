#include "snapshot/snapshot_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "places.h"

namespace volumed {
namespace {

using Phase = SnapshotPhase;
using Event = SnapshotEvent;

std::vector<Phase> EveryPhase() {
  std::vector<Phase> phases;
  for (int i = 0; i < kSnapshotPhaseCount; ++i) phases.push_back(Phase{i});
  return phases;
}

std::vector<Event> EveryEvent() {
  std::vector<Event> events;
  for (int i = 0; i < kSnapshotEventCount; ++i) events.push_back(Event{i});
  return events;
}

std::string PhaseAndEvent(Phase phase, Event event) {
  return std::string(SnapshotPhaseName(phase)) + " x " + std::string(SnapshotEventName(event));
}

// Where it comes to by these events; kNotKnown if two of them cannot meet.
Phase Walked(Phase phase, const std::vector<Event>& events) {
  for (const Event event : events) {
    const auto row = Next(phase, event);
    if (!row) return Phase::kNotKnown;
    phase = row->to;
  }
  return phase;
}

TEST(SnapshotState, EveryPairHasARowOrAReasonWhyItCannotBe) {
  size_t rows = 0;
  for (const Phase phase : EveryPhase()) {
    for (const Event event : EveryEvent()) {
      const auto row = Next(phase, event);
      const auto why = WhyImpossible(phase, event);
      EXPECT_NE(row.has_value(), why.has_value()) << PhaseAndEvent(phase, event);
      rows += row.has_value();
      EXPECT_FALSE(why && why->empty()) << PhaseAndEvent(phase, event);
    }
  }
  EXPECT_EQ(rows, AllSnapshotTransitions().size());
}

TEST(SnapshotState, ThePointInTimeComesFromAnIntentAlone) {
  for (const SnapshotTransition& row : AllSnapshotTransitions()) {
    const bool is_new_cut = !IsCut(row.from) && IsCut(row.to);
    EXPECT_EQ(is_new_cut, row.event == Event::kCutDone) << PhaseAndEvent(row.from, row.event);
    if (!is_new_cut) continue;
    EXPECT_TRUE(row.from == Phase::kFreezing || row.from == Phase::kCutting);
    EXPECT_EQ(row.to, Phase::kCut);
  }
}

TEST(SnapshotState, WhatAnAgentLeftInAnIntentIsNoPointInTime) {
  for (const Phase phase : {Phase::kFreezing, Phase::kCutting}) {
    EXPECT_EQ(Walked(phase, {Event::kRestart}), Phase::kDeleting) << SnapshotPhaseName(phase);
  }
  // Anything else that is on record goes on as it was.
  for (const Phase phase : {Phase::kCut, Phase::kProcessing, Phase::kReady, Phase::kFailed,
                            Phase::kCancelling, Phase::kCancelled, Phase::kDeleting}) {
    EXPECT_EQ(Walked(phase, {Event::kRestart}), phase) << SnapshotPhaseName(phase);
  }
}

TEST(SnapshotState, TheWaysOfASnapshot) {
  EXPECT_EQ(Walked(Phase::kNew, {Event::kFreeze, Event::kCutDone, Event::kProcessed}),
            Phase::kReady);
  EXPECT_EQ(Walked(Phase::kNew, {Event::kCut, Event::kCutDone, Event::kProcess, Event::kProcessed}),
            Phase::kReady);
  EXPECT_EQ(Walked(Phase::kNew, {Event::kFreeze, Event::kFail}), Phase::kFailed);
  EXPECT_EQ(Walked(Phase::kProcessing, {Event::kCancel, Event::kStopped}), Phase::kCancelled);
  EXPECT_EQ(Walked(Phase::kReady, {Event::kDelete}), Phase::kDeleting);
  EXPECT_EQ(Next(Phase::kDeleting, Event::kStopped)->to, Phase::kNotKnown);
}

TEST(SnapshotState, WhatIsReadyIsNeverTakenAwayByACancellation) {
  EXPECT_EQ(Walked(Phase::kReady, {Event::kCancel}), Phase::kReady);
}

TEST(SnapshotState, AFailureIsForEver) {
  for (const Event event : EveryEvent()) {
    const auto row = Next(Phase::kFailed, event);
    if (!row) continue;
    EXPECT_TRUE(row->to == Phase::kFailed || row->to == Phase::kDeleting);
  }
}

TEST(SnapshotState, NamesAreDistinctAndNumbersAreThoseOfRecords) {
  std::set<std::string_view> phases;
  for (const Phase phase : EveryPhase()) phases.insert(SnapshotPhaseName(phase));
  EXPECT_EQ(phases.size(), static_cast<size_t>(kSnapshotPhaseCount));
  std::set<std::string_view> events;
  for (const Event event : EveryEvent()) events.insert(SnapshotEventName(event));
  EXPECT_EQ(events.size(), static_cast<size_t>(kSnapshotEventCount));
  EXPECT_EQ(static_cast<int>(Phase::kFreezing), 2);
  EXPECT_EQ(static_cast<int>(Phase::kReady), 6);
  EXPECT_EQ(static_cast<int>(Phase::kDeleting), 10);
}

TEST(SnapshotState, TheDocumentIsWhatTheTablePrints) {
  std::ifstream file(SourcePath("docs/SNAPSHOT_STATES.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), PrintSnapshotStatesMarkdown())
      << "make it anew: print_snapshot_states > docs/SNAPSHOT_STATES.md";
}

}  // namespace
}  // namespace volumed
