// SnapshotPhase: the phases of a snapshot as one table, without clock, record or effect;
// docs/SNAPSHOT_STATES.md is printed from it. Freezing and Cutting are intents: each is on record
// before the effect, and what an agent has left in them counts for nothing.
//
// All functions are pure. Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/wire_enum.h"

namespace volumed {

// The numbers are stored in records. kNotKnown stands for no snapshot.
enum class SnapshotPhase {
  kNotKnown,
  kNew,
  kFreezing,
  kCutting,
  kCut,
  kProcessing,
  kReady,
  kFailed,
  kCancelling,
  kCancelled,
  kDeleting
};
constexpr WireEnum<SnapshotPhase> WireEnumOf(SnapshotPhase) {
  return {SnapshotPhase::kDeleting, SnapshotPhase::kNotKnown};
}
enum class SnapshotEvent {
  kFreeze,     // the cut begins, of a filesystem that is mounted for writing
  kCut,        // likewise of anything else
  kCutDone,    // the point in time exists
  kProcess,    // what is left to copy is being copied
  kProcessed,  // nothing is left to copy
  kFail,
  kCancel,
  kStopped,  // what was begun is discarded
  kDelete,
  kRestart  // of the agent
};
inline constexpr int kSnapshotPhaseCount = 11;
inline constexpr int kSnapshotEventCount = 10;

struct SnapshotTransition {
  SnapshotPhase from;
  SnapshotEvent event;
  SnapshotPhase to;
  std::string_view step;  // what is done: "thaw and discard the part"
};

// Nullopt if the two cannot meet; WhyImpossible() says why exactly then.
std::optional<SnapshotTransition> Next(SnapshotPhase from, SnapshotEvent event);
std::optional<std::string_view> WhyImpossible(SnapshotPhase from, SnapshotEvent event);
std::span<const SnapshotTransition> AllSnapshotTransitions();

// The point in time exists, and nobody has given it up.
bool IsCut(SnapshotPhase phase);
// Nothing goes on any more by itself.
bool IsAtRest(SnapshotPhase phase);
std::string_view SnapshotPhaseName(SnapshotPhase phase);  // "Processing"
std::string_view SnapshotEventName(SnapshotEvent event);  // "cut done"
// The content of docs/SNAPSHOT_STATES.md.
std::string PrintSnapshotStatesMarkdown();

}  // namespace volumed
