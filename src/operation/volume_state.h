// VolumeState: the states of a volume as one table, and nothing else: no clock, no record, no
// effect. docs/STATES.md is printed from it. An in-call state ("the call is being made") is written
// before the effect, a resting state after it; there is no third way to change a state.
// Source: the state ladder follows mesos src/csi/state.proto@1.11.0; the inverse of a call that may
// have been applied is legal by the CSI specification ("Volume Lifecycle").
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// The numbers are stored in records: they may be added to, never changed.
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
  // The intent to make a call.
  kSetUp,
  kRemount,  // a set-up volume's content is brought up to date; it is set up all the while
  kTearDown,
  kAttach,
  kDetach,
  kMountDevice,
  kUnmountDevice,
  kExpand,
  kMapVolume,
  kUnmapVolume,
  // The answer to the call.
  kDone,
  kNotApplied,
  kMaybeApplied,
  // Something of the volume is there, and no record says how it came.
  kFound,
  // The same of a block volume.
  kFoundMapped,
  // The node was started anew: what the kernel kept in memory is gone, what lies on disk is not.
  kReboot,
};

inline constexpr int kVolumeStateCount = 15;
inline constexpr int kVolumeEventCount = 16;

// One row of the table. `uncertain`: the last call may or may not have had its effect; only the
// same call or its inverse may follow, which is what the rows of the in-call states say. A volume
// that is uncertain stays so, whatever the row says, until a call is done.
struct Transition {
  VolumeState from;
  VolumeEvent event;
  VolumeState to;
  bool uncertain;
  std::string_view step;  // the call that is made, or that answered: "SetUp"
};

// A pair of state and event that cannot meet, and why.
struct ImpossibleTransition {
  VolumeState state;
  VolumeEvent event;
  std::string_view reason;
};

// All functions are pure. Threads: any. Blocks: never.

// The row for `from` and `event`; nullopt where they cannot meet (see WhyImpossible).
//
// kNotApplied leads back to the resting state before the call, which holds only if that state was
// certain: for a volume that was uncertain before the call use AnswerEvent below, which knows.
std::optional<Transition> Next(VolumeState from, VolumeEvent event);

// The reason why the two cannot meet; nullopt exactly where Next() has a row.
std::optional<std::string_view> WhyImpossible(VolumeState from, VolumeEvent event);

enum class CallAnswer { kDone, kNotApplied, kMaybeApplied };

// The event of an answer. A call that was certainly not applied says nothing about an earlier one
// that may have been: then the volume stays where it is.
VolumeEvent AnswerEvent(CallAnswer answer, bool uncertain_before_call);

// A call is being made, or was being made when the program ended.
bool IsInCall(VolumeState state);

// Where a device begins and ends: the state in which nothing of it is on the node.
VolumeState RestingState(bool attachable);

// "SettingUp"; never empty.
std::string_view VolumeStateName(VolumeState state);
std::string_view VolumeEventName(VolumeEvent event);
// nullopt for a number that is no state.
std::optional<VolumeState> VolumeStateFromNumber(int number);

std::span<const Transition> AllTransitions();
std::vector<ImpossibleTransition> AllImpossibleTransitions();

// docs/STATES.md.
std::string PrintStatesMarkdown();

}  // namespace volumed
