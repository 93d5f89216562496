// VolumeState: the states of a volume as one table, without clock, record or effect. docs/STATES.md
// is printed from the table. An in-call state ("the call is being made") is written before the
// effect, and a resting state after it; there is no third way to change a state.
// Source: the state ladder follows mesos src/csi/state.proto@1.11.0; the inverse of a call that may
// have been applied is legal by the CSI specification ("Volume Lifecycle").
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// The numbers are stored in records: numbers may be added, but never changed.
enum class VolumeState : int {
  // A volume of a pod.
  kNotSetUp = 0,
  kSettingUp = 1,  // in call
  kSetUp = 2,
  kTearingDown = 3,  // in call
  // A volume on the node.
  kDetached = 4,
  kAttaching = 5,  // in call
  kAttached = 6,
  kMountingDevice = 7,  // in call
  kDeviceMounted = 8,
  kUnmountingDevice = 9,  // in call
  kDetaching = 10,        // in call
  kExpanding = 11,        // in call
  // A block volume of a pod; it starts and ends as kNotSetUp.
  kMapping = 12,  // in call
  kMapped = 13,
  kUnmapping = 14,  // in call
};

enum class VolumeEvent : int {
  // These are intents to make a call.
  kSetUp,
  // Brings the content of a set-up volume up to date; it stays set up.
  kRemount,
  kTearDown,
  kAttach,
  kDetach,
  kMountDevice,
  kUnmountDevice,
  kExpand,
  kMapVolume,
  kUnmapVolume,
  // These are answers to the call.
  kDone,
  kNotApplied,
  kMaybeApplied,
  // Some of the volume is there, although no record says so for certain.
  kFound,
  // The same for a block volume.
  kFoundMapped,
  // The node was booted: what the kernel kept in memory is gone, what lies on disk is not.
  kReboot,
};

inline constexpr int kVolumeStateCount = 15;
inline constexpr int kVolumeEventCount = 16;

// One row of the table. `uncertain` means that the last call may or may not have had its effect.
// Only the same call or its inverse may follow, which the rows of the in-call states say; for
// Expand, which has no inverse, that is MountDevice or UnmountDevice. A volume that is uncertain
// stays so, whatever the row says, until a call is done.
struct Transition {
  VolumeState from;
  VolumeEvent event;
  VolumeState to;
  bool uncertain;
  std::string_view step;  // the call that is made, or that answered: "SetUp"
};

// A pair of state and event that cannot meet, and the reason.
struct ImpossibleTransition {
  VolumeState state;
  VolumeEvent event;
  std::string_view reason;
};

// All functions are pure. Threads: any. Blocks: never.

// The row for `from` and `event`; nullopt if they cannot meet (see WhyImpossible).
//
// kNotApplied leads back to the resting state before the call. That is right only if that state was
// certain; AnswerEvent below takes account of a volume that was uncertain before the call.
std::optional<Transition> Next(VolumeState from, VolumeEvent event);

// The reason why the two cannot meet; nullopt exactly if Next() has a row.
std::optional<std::string_view> WhyImpossible(VolumeState from, VolumeEvent event);

enum class CallAnswer { kDone, kNotApplied, kMaybeApplied };

// The event of an answer. A call that was certainly not applied says nothing about an earlier one
// that may have been: the volume then stays in its state.
VolumeEvent AnswerEvent(CallAnswer answer, bool uncertain_before_call);

// Whether a call is being made, or was being made when the program ended.
bool IsInCall(VolumeState state);

// Whether a device in this state is mounted, or set up, at the place that its record has, or may
// be.
bool MayBeAtPlace(VolumeState state);

// The state in which a device begins and ends: nothing of it is on the node.
VolumeState RestingState(bool attachable);

// "SettingUp"; never empty.
std::string_view VolumeStateName(VolumeState state);
std::string_view VolumeEventName(VolumeEvent event);
// nullopt if the number is not that of a state.
std::optional<VolumeState> VolumeStateFromNumber(int number);

std::span<const Transition> AllTransitions();
std::vector<ImpossibleTransition> AllImpossibleTransitions();

// The content of docs/STATES.md.
std::string PrintStatesMarkdown();

}  // namespace volumed
