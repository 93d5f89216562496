#include "snapshot/snapshot_state.h"

#include <array>
#include <cstdint>

namespace volumed {
namespace {

using P = SnapshotPhase;
using V = SnapshotEvent;

constexpr auto kSnapshotTransitions = std::to_array<SnapshotTransition>({
    {P::kNew, V::kFreeze, P::kFreezing, "freeze, clone, thaw"},
    {P::kNew, V::kCut, P::kCutting, "clone, or decide on a copy"},
    {P::kNew, V::kFail, P::kFailed, ""},
    {P::kNew, V::kCancel, P::kNew, "note it; it is cancelled once it is cut"},
    {P::kNew, V::kDelete, P::kNew, "note it; it is cancelled once it is cut"},

    {P::kFreezing, V::kCutDone, P::kCut, ""},
    {P::kFreezing, V::kFail, P::kFailed, "thaw, discard the part"},
    {P::kFreezing, V::kCancel, P::kFreezing, "note it; it is cancelled once it is cut"},
    {P::kFreezing, V::kDelete, P::kFreezing, "note it; it is cancelled once it is cut"},
    {P::kFreezing, V::kRestart, P::kDeleting, "thaw, discard the part, remove the row"},

    {P::kCutting, V::kCutDone, P::kCut, ""},
    {P::kCutting, V::kFail, P::kFailed, "discard the part"},
    {P::kCutting, V::kCancel, P::kCutting, "note it; it is cancelled once it is cut"},
    {P::kCutting, V::kDelete, P::kCutting, "note it; it is cancelled once it is cut"},
    {P::kCutting, V::kRestart, P::kDeleting, "discard the part, remove the row"},

    {P::kCut, V::kProcess, P::kProcessing, "copy"},
    {P::kCut, V::kProcessed, P::kReady, ""},
    {P::kCut, V::kFail, P::kFailed, "discard the cut"},
    {P::kCut, V::kCancel, P::kCancelling, "discard the cut"},
    {P::kCut, V::kDelete, P::kCancelling, "discard the cut; the deletion is noted"},
    {P::kCut, V::kRestart, P::kCut, "go on"},

    {P::kProcessing, V::kProcessed, P::kReady, ""},
    {P::kProcessing, V::kFail, P::kFailed, "discard the cut"},
    {P::kProcessing, V::kCancel, P::kCancelling, "end the copy, discard the cut"},
    {P::kProcessing, V::kDelete, P::kCancelling,
     "end the copy, discard the cut; the deletion is noted"},
    {P::kProcessing, V::kRestart, P::kProcessing, "copy on from what is synced"},

    {P::kReady, V::kCancel, P::kReady, "nothing: it is there"},
    {P::kReady, V::kDelete, P::kDeleting, "discard the cut, remove the row"},
    {P::kReady, V::kRestart, P::kReady, ""},

    {P::kFailed, V::kCancel, P::kFailed, "nothing: it has ended"},
    {P::kFailed, V::kDelete, P::kDeleting, "discard the cut, remove the row"},
    {P::kFailed, V::kRestart, P::kFailed, "discard the cut"},

    {P::kCancelling, V::kStopped, P::kCancelled, ""},
    {P::kCancelling, V::kFail, P::kCancelling, "discard the cut later"},
    {P::kCancelling, V::kCancel, P::kCancelling, "discard the cut"},
    {P::kCancelling, V::kDelete, P::kCancelling, "note it; it is deleted once it has ended"},
    {P::kCancelling, V::kRestart, P::kCancelling, "discard the cut"},

    {P::kCancelled, V::kCancel, P::kCancelled, "nothing: it has ended"},
    {P::kCancelled, V::kDelete, P::kDeleting, "remove the row"},
    {P::kCancelled, V::kRestart, P::kCancelled, ""},

    {P::kDeleting, V::kStopped, P::kNotKnown, "the row is gone"},
    {P::kDeleting, V::kFail, P::kDeleting, "discard the cut later"},
    {P::kDeleting, V::kDelete, P::kDeleting, "discard the cut, remove the row"},
    {P::kDeleting, V::kRestart, P::kDeleting, "discard the cut, remove the row"},
});

using PhaseEvents = uint32_t;

constexpr PhaseEvents EventsOf() { return 0; }
template <typename... Rest>
constexpr PhaseEvents EventsOf(SnapshotEvent first, Rest... rest) {
  return (PhaseEvents{1} << static_cast<int>(first)) | EventsOf(rest...);
}

constexpr PhaseEvents kBegins = EventsOf(V::kFreeze, V::kCut);
constexpr PhaseEvents kCopies = EventsOf(V::kProcess, V::kProcessed);

constexpr std::string_view kNoSnapshot = "there is no snapshot";
constexpr std::string_view kNotCut = "there is no point in time yet";
constexpr std::string_view kCutOnce = "a snapshot is cut once";
constexpr std::string_view kNothingEnds = "nothing is being discarded";
constexpr std::string_view kHasEnded = "it has ended";
constexpr std::string_view kIsWhole = "nothing is left to do that could fail";
constexpr std::string_view kCopyFirst = "whoever copies has ended before";
constexpr std::string_view kGoes = "it goes anyway";

struct ImpossibleEvents {
  SnapshotPhase phase;
  PhaseEvents events;
  std::string_view reason;
};

constexpr auto kImpossibleEvents = std::to_array<ImpossibleEvents>({
    {P::kNotKnown,
     kBegins | kCopies |
         EventsOf(V::kCutDone, V::kFail, V::kCancel, V::kStopped, V::kDelete, V::kRestart),
     kNoSnapshot},
    {P::kNew, kCopies | EventsOf(V::kCutDone), kNotCut},
    {P::kNew, EventsOf(V::kStopped), kNothingEnds},
    {P::kNew, EventsOf(V::kRestart), "it is on no record yet"},
    {P::kFreezing, kBegins, kCutOnce},
    {P::kFreezing, kCopies, kNotCut},
    {P::kFreezing, EventsOf(V::kStopped), kNothingEnds},
    {P::kCutting, kBegins, kCutOnce},
    {P::kCutting, kCopies, kNotCut},
    {P::kCutting, EventsOf(V::kStopped), kNothingEnds},
    {P::kCut, kBegins | EventsOf(V::kCutDone), kCutOnce},
    {P::kCut, EventsOf(V::kStopped), kNothingEnds},
    {P::kProcessing, kBegins | EventsOf(V::kCutDone), kCutOnce},
    {P::kProcessing, EventsOf(V::kProcess), "it is being copied"},
    {P::kProcessing, EventsOf(V::kStopped), kNothingEnds},
    {P::kReady, kBegins | EventsOf(V::kCutDone), kCutOnce},
    {P::kReady, kCopies | EventsOf(V::kFail), kIsWhole},
    {P::kReady, EventsOf(V::kStopped), kNothingEnds},
    {P::kFailed, kBegins | EventsOf(V::kCutDone), "the next try is another snapshot"},
    {P::kFailed, kCopies | EventsOf(V::kFail, V::kStopped), kHasEnded},
    {P::kCancelling, kBegins | EventsOf(V::kCutDone), kCutOnce},
    {P::kCancelling, kCopies, kCopyFirst},
    {P::kCancelled, kBegins | EventsOf(V::kCutDone), "the next try is another snapshot"},
    {P::kCancelled, kCopies | EventsOf(V::kFail, V::kStopped), kHasEnded},
    {P::kDeleting, kBegins | EventsOf(V::kCutDone), kCutOnce},
    {P::kDeleting, kCopies, kCopyFirst},
    {P::kDeleting, EventsOf(V::kCancel), kGoes},
});

// How often the pair stands in the two tables; it must be once.
constexpr int RowsOf(SnapshotPhase phase, SnapshotEvent event) {
  int rows = 0;
  for (const SnapshotTransition& row : kSnapshotTransitions) {
    rows += row.from == phase && row.event == event;
  }
  for (const ImpossibleEvents& row : kImpossibleEvents) {
    rows += row.phase == phase && (row.events & EventsOf(event)) != 0;
  }
  return rows;
}

constexpr bool EachPairHasOneRow() {
  for (int phase = 0; phase < kSnapshotPhaseCount; ++phase) {
    for (int event = 0; event < kSnapshotEventCount; ++event) {
      if (RowsOf(SnapshotPhase{phase}, SnapshotEvent{event}) != 1) return false;
    }
  }
  return true;
}
static_assert(EachPairHasOneRow(), "a pair of phase and event has no row, or more than one");

std::string InItalics(SnapshotPhase phase) {
  if (phase == P::kNotKnown) return "gone";
  const std::string name(SnapshotPhaseName(phase));
  return IsAtRest(phase) ? name : "*" + name + "*";
}

std::string EventNames(PhaseEvents events) {
  std::string names;
  for (int event = 0; event < kSnapshotEventCount; ++event) {
    if ((events & EventsOf(SnapshotEvent{event})) == 0) continue;
    if (!names.empty()) names += ", ";
    names += SnapshotEventName(SnapshotEvent{event});
  }
  return names;
}

}  // namespace

std::optional<SnapshotTransition> Next(SnapshotPhase from, SnapshotEvent event) {
  for (const SnapshotTransition& row : kSnapshotTransitions) {
    if (row.from == from && row.event == event) return row;
  }
  return std::nullopt;
}

std::optional<std::string_view> WhyImpossible(SnapshotPhase from, SnapshotEvent event) {
  for (const ImpossibleEvents& row : kImpossibleEvents) {
    if (row.phase == from && (row.events & EventsOf(event)) != 0) return row.reason;
  }
  return std::nullopt;
}

std::span<const SnapshotTransition> AllSnapshotTransitions() { return kSnapshotTransitions; }

bool IsCut(SnapshotPhase phase) {
  return phase == P::kCut || phase == P::kProcessing || phase == P::kReady;
}

bool IsAtRest(SnapshotPhase phase) {
  switch (phase) {
    case P::kNotKnown:
    case P::kNew:
    case P::kReady:
    case P::kFailed:
    case P::kCancelled:
      return true;
    case P::kFreezing:
    case P::kCutting:
    case P::kCut:
    case P::kProcessing:
    case P::kCancelling:
    case P::kDeleting:
      return false;
  }
  __builtin_unreachable();
}

std::string_view SnapshotPhaseName(SnapshotPhase phase) {
  switch (phase) {
    case P::kNotKnown:
      return "";
    case P::kNew:
      return "New";
    case P::kFreezing:
      return "Freezing";
    case P::kCutting:
      return "Cutting";
    case P::kCut:
      return "Cut";
    case P::kProcessing:
      return "Processing";
    case P::kReady:
      return "Ready";
    case P::kFailed:
      return "Failed";
    case P::kCancelling:
      return "Cancelling";
    case P::kCancelled:
      return "Cancelled";
    case P::kDeleting:
      return "Deleting";
  }
  __builtin_unreachable();
}

std::string_view SnapshotEventName(SnapshotEvent event) {
  switch (event) {
    case V::kFreeze:
      return "freeze";
    case V::kCut:
      return "cut";
    case V::kCutDone:
      return "cut done";
    case V::kProcess:
      return "process";
    case V::kProcessed:
      return "processed";
    case V::kFail:
      return "failed";
    case V::kCancel:
      return "cancel";
    case V::kStopped:
      return "stopped";
    case V::kDelete:
      return "delete";
    case V::kRestart:
      return "restart";
  }
  __builtin_unreachable();
}

std::string PrintSnapshotStatesMarkdown() {
  std::string out =
      "# Phases of a snapshot\n\n"
      "Printed from the table in `src/snapshot/snapshot_state.cc`; a test compares the two.\n\n"
      "In a phase in *italics* something goes on by itself. Freezing and Cutting are on record "
      "before the effect: what an agent has left in them is no point in time, even if its file is "
      "whole. A snapshot is listed from Cut on, and ready to use in Ready. After Failed and "
      "Cancelled the same name begins anew, under a new id.\n\n"
      "| from | event | to | what is done |\n|---|---|---|---|\n";
  for (const SnapshotTransition& row : kSnapshotTransitions) {
    out += "| " + InItalics(row.from) + " | " + std::string(SnapshotEventName(row.event)) + " | " +
           InItalics(row.to) + " | " + std::string(row.step) + " |\n";
  }
  out += "\nImpossible:\n\n| phase | events | why |\n|---|---|---|\n";
  for (const ImpossibleEvents& row : kImpossibleEvents) {
    if (row.phase == P::kNotKnown) continue;
    out += "| " + InItalics(row.phase) + " | " + EventNames(row.events) + " | " +
           std::string(row.reason) + " |\n";
  }
  return out;
}

}  // namespace volumed
