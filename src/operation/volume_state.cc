#include "operation/volume_state.h"

#include <array>
#include <cstdint>

namespace volumed {
namespace {

using S = VolumeState;
using E = VolumeEvent;

constexpr bool kCertain = false;
constexpr bool kUncertain = true;

constexpr auto kTransitions = std::to_array<Transition>({
    // ---- a volume of a pod ----
    {S::kNotSetUp, E::kSetUp, S::kSettingUp, kCertain, "SetUp"},
    {S::kNotSetUp, E::kMapVolume, S::kMapping, kCertain, "MapVolume"},
    {S::kNotSetUp, E::kFound, S::kSettingUp, kUncertain, "SetUp"},
    {S::kNotSetUp, E::kFoundMapped, S::kMapping, kUncertain, "MapVolume"},
    {S::kNotSetUp, E::kReboot, S::kNotSetUp, kCertain, ""},
    {S::kSettingUp, E::kSetUp, S::kSettingUp, kCertain, "SetUp"},
    {S::kSettingUp, E::kTearDown, S::kTearingDown, kCertain, "TearDown"},
    {S::kSettingUp, E::kDone, S::kSetUp, kCertain, "SetUp"},
    {S::kSettingUp, E::kNotApplied, S::kNotSetUp, kCertain, "SetUp"},
    {S::kSettingUp, E::kMaybeApplied, S::kSettingUp, kUncertain, "SetUp"},
    {S::kSettingUp, E::kReboot, S::kSettingUp, kUncertain, "SetUp"},
    // A remount has no state of its own: whatever its result, the pod keeps its volume.
    {S::kSetUp, E::kRemount, S::kSetUp, kCertain, "SetUp"},
    {S::kSetUp, E::kDone, S::kSetUp, kCertain, "SetUp"},
    {S::kSetUp, E::kNotApplied, S::kSetUp, kCertain, "SetUp"},
    {S::kSetUp, E::kMaybeApplied, S::kSetUp, kUncertain, "SetUp"},
    // Some of the volume was found to be missing: it is set up again. If that fails, the volume
    // still counts as possibly there, since this state is uncertain.
    {S::kSetUp, E::kSetUp, S::kSettingUp, kUncertain, "SetUp"},
    {S::kSetUp, E::kTearDown, S::kTearingDown, kCertain, "TearDown"},
    // The mounts are gone, while directories and files may be there, as if a set-up had been cut
    // short.
    {S::kSetUp, E::kReboot, S::kSettingUp, kUncertain, "SetUp"},
    {S::kTearingDown, E::kTearDown, S::kTearingDown, kCertain, "TearDown"},
    {S::kTearingDown, E::kSetUp, S::kSettingUp, kCertain, "SetUp"},
    {S::kTearingDown, E::kDone, S::kNotSetUp, kCertain, "TearDown"},
    {S::kTearingDown, E::kNotApplied, S::kSetUp, kCertain, "TearDown"},
    {S::kTearingDown, E::kMaybeApplied, S::kTearingDown, kUncertain, "TearDown"},
    {S::kTearingDown, E::kReboot, S::kTearingDown, kUncertain, "TearDown"},

    // ---- a volume on the node ----
    {S::kDetached, E::kAttach, S::kAttaching, kCertain, "Attach"},
    {S::kDetached, E::kFound, S::kAttaching, kUncertain, "Attach"},
    {S::kDetached, E::kReboot, S::kDetached, kCertain, ""},
    {S::kAttaching, E::kAttach, S::kAttaching, kCertain, "Attach"},
    {S::kAttaching, E::kDetach, S::kDetaching, kCertain, "Detach"},
    {S::kAttaching, E::kDone, S::kAttached, kCertain, "Attach"},
    {S::kAttaching, E::kNotApplied, S::kDetached, kCertain, "Attach"},
    {S::kAttaching, E::kMaybeApplied, S::kAttaching, kUncertain, "Attach"},
    {S::kAttaching, E::kReboot, S::kAttaching, kUncertain, "Attach"},
    // The rest of a mount from before a reboot, after which it was to be attached again.
    {S::kAttaching, E::kFound, S::kMountingDevice, kUncertain, "MountDevice"},
    {S::kAttached, E::kMountDevice, S::kMountingDevice, kCertain, "MountDevice"},
    // After a reboot, or if the plugin says that it is missing, the volume is attached again;
    // attaching an attached volume has no effect. If that fails, the volume still counts as
    // possibly attached, since this state is uncertain.
    {S::kAttached, E::kAttach, S::kAttaching, kUncertain, "Attach"},
    {S::kAttached, E::kDetach, S::kDetaching, kCertain, "Detach"},
    // A volume that needs no attach begins in this state; if its mount, or the rest of it, is
    // found, the volume is found in this state.
    {S::kAttached, E::kFound, S::kMountingDevice, kUncertain, "MountDevice"},
    {S::kAttached, E::kReboot, S::kAttached, kUncertain, "Attach"},
    {S::kMountingDevice, E::kMountDevice, S::kMountingDevice, kCertain, "MountDevice"},
    {S::kMountingDevice, E::kUnmountDevice, S::kUnmountingDevice, kCertain, "UnmountDevice"},
    {S::kMountingDevice, E::kDone, S::kDeviceMounted, kCertain, "MountDevice"},
    {S::kMountingDevice, E::kNotApplied, S::kAttached, kCertain, "MountDevice"},
    {S::kMountingDevice, E::kMaybeApplied, S::kMountingDevice, kUncertain, "MountDevice"},
    {S::kMountingDevice, E::kReboot, S::kAttached, kUncertain, "Attach"},
    // The device was found at the start and is mounted again; mounting a mounted device has no
    // effect. If that fails, it still counts as possibly mounted, since this state is uncertain.
    {S::kDeviceMounted, E::kMountDevice, S::kMountingDevice, kUncertain, "MountDevice"},
    {S::kDeviceMounted, E::kUnmountDevice, S::kUnmountingDevice, kCertain, "UnmountDevice"},
    {S::kDeviceMounted, E::kExpand, S::kExpanding, kCertain, "NodeExpand"},
    {S::kDeviceMounted, E::kReboot, S::kAttached, kUncertain, "Attach"},
    {S::kUnmountingDevice, E::kUnmountDevice, S::kUnmountingDevice, kCertain, "UnmountDevice"},
    {S::kUnmountingDevice, E::kMountDevice, S::kMountingDevice, kCertain, "MountDevice"},
    {S::kUnmountingDevice, E::kDone, S::kAttached, kCertain, "UnmountDevice"},
    {S::kUnmountingDevice, E::kNotApplied, S::kDeviceMounted, kCertain, "UnmountDevice"},
    {S::kUnmountingDevice, E::kMaybeApplied, S::kUnmountingDevice, kUncertain, "UnmountDevice"},
    {S::kUnmountingDevice, E::kReboot, S::kAttached, kUncertain, "Attach"},
    {S::kDetaching, E::kDetach, S::kDetaching, kCertain, "Detach"},
    {S::kDetaching, E::kAttach, S::kAttaching, kCertain, "Attach"},
    {S::kDetaching, E::kDone, S::kDetached, kCertain, "Detach"},
    {S::kDetaching, E::kNotApplied, S::kAttached, kCertain, "Detach"},
    {S::kDetaching, E::kMaybeApplied, S::kDetaching, kUncertain, "Detach"},
    {S::kDetaching, E::kReboot, S::kDetaching, kUncertain, "Detach"},
    {S::kExpanding, E::kExpand, S::kExpanding, kCertain, "NodeExpand"},
    // Whatever the result of the growth, the device is still mounted. It is mounted again, which
    // verifies that, so that pods need not wait for the growth; the claim says whether it is to be
    // grown again.
    {S::kExpanding, E::kMountDevice, S::kMountingDevice, kUncertain, "MountDevice"},
    // No call shrinks a volume again. A volume that cannot be grown must still be able to leave.
    {S::kExpanding, E::kUnmountDevice, S::kUnmountingDevice, kCertain, "UnmountDevice"},
    {S::kExpanding, E::kDone, S::kDeviceMounted, kCertain, "NodeExpand"},
    {S::kExpanding, E::kNotApplied, S::kDeviceMounted, kCertain, "NodeExpand"},
    {S::kExpanding, E::kMaybeApplied, S::kExpanding, kUncertain, "NodeExpand"},
    {S::kExpanding, E::kReboot, S::kAttached, kUncertain, "Attach"},

    // ---- a block volume of a pod ----
    {S::kMapping, E::kMapVolume, S::kMapping, kCertain, "MapVolume"},
    {S::kMapping, E::kUnmapVolume, S::kUnmapping, kCertain, "UnmapVolume"},
    {S::kMapping, E::kDone, S::kMapped, kCertain, "MapVolume"},
    {S::kMapping, E::kNotApplied, S::kNotSetUp, kCertain, "MapVolume"},
    {S::kMapping, E::kMaybeApplied, S::kMapping, kUncertain, "MapVolume"},
    {S::kMapping, E::kReboot, S::kMapping, kUncertain, "MapVolume"},
    // The volume was found at the start and is mapped again; mapping a mapped volume has no effect.
    // If that fails, it still counts as possibly mapped, since this state is uncertain.
    {S::kMapped, E::kMapVolume, S::kMapping, kUncertain, "MapVolume"},
    {S::kMapped, E::kUnmapVolume, S::kUnmapping, kCertain, "UnmapVolume"},
    {S::kMapped, E::kReboot, S::kMapping, kUncertain, "MapVolume"},
    {S::kUnmapping, E::kUnmapVolume, S::kUnmapping, kCertain, "UnmapVolume"},
    {S::kUnmapping, E::kMapVolume, S::kMapping, kCertain, "MapVolume"},
    {S::kUnmapping, E::kDone, S::kNotSetUp, kCertain, "UnmapVolume"},
    {S::kUnmapping, E::kNotApplied, S::kMapped, kCertain, "UnmapVolume"},
    {S::kUnmapping, E::kMaybeApplied, S::kUnmapping, kUncertain, "UnmapVolume"},
    {S::kUnmapping, E::kReboot, S::kUnmapping, kUncertain, "UnmapVolume"},
});

// ---- what cannot be ----

using EventSet = uint32_t;

constexpr EventSet Set() { return 0; }
template <typename... Rest>
constexpr EventSet Set(VolumeEvent first, Rest... rest) {
  return (EventSet{1} << static_cast<int>(first)) | Set(rest...);
}

constexpr EventSet kPodCalls = Set(E::kSetUp, E::kRemount, E::kTearDown);
constexpr EventSet kBlockCalls = Set(E::kMapVolume, E::kUnmapVolume);
constexpr EventSet kDeviceCalls =
    Set(E::kAttach, E::kDetach, E::kMountDevice, E::kUnmountDevice, E::kExpand);
constexpr EventSet kAnswers = Set(E::kDone, E::kNotApplied, E::kMaybeApplied);

constexpr std::string_view kOther = "a call of another kind of volume";
constexpr std::string_view kIdle = "no call is being made, so none can answer";
constexpr std::string_view kAbsent = "nothing is there to take away or bring up to date";
constexpr std::string_view kThere = "already there";
constexpr std::string_view kFirst = "a neighbouring state comes first";
constexpr std::string_view kOnlySame = "only the same call or its inverse may follow";
constexpr std::string_view kKnown = "it is known already";

struct ImpossibleRow {
  VolumeState state;
  EventSet events;
  std::string_view reason;
};

constexpr auto kImpossible = std::to_array<ImpossibleRow>({
    {S::kNotSetUp, Set(E::kRemount, E::kTearDown, E::kUnmapVolume), kAbsent},
    {S::kNotSetUp, kAnswers, kIdle},
    {S::kNotSetUp, kDeviceCalls, kOther},
    {S::kSettingUp, Set(E::kRemount), kOnlySame},
    {S::kSettingUp, kDeviceCalls | kBlockCalls, kOther},
    {S::kSettingUp, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kSetUp, kDeviceCalls | kBlockCalls, kOther},
    {S::kSetUp, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kTearingDown, Set(E::kRemount), kOnlySame},
    {S::kTearingDown, kDeviceCalls | kBlockCalls, kOther},
    {S::kTearingDown, Set(E::kFound, E::kFoundMapped), kKnown},

    {S::kDetached, Set(E::kFoundMapped), kOther},
    {S::kDetached, Set(E::kDetach), kAbsent},
    {S::kDetached, Set(E::kMountDevice, E::kUnmountDevice, E::kExpand), kFirst},
    {S::kDetached, kAnswers, kIdle},
    {S::kDetached, kPodCalls | kBlockCalls, kOther},
    {S::kAttaching, Set(E::kMountDevice, E::kUnmountDevice, E::kExpand), kOnlySame},
    {S::kAttaching, kPodCalls | kBlockCalls, kOther},
    {S::kAttaching, Set(E::kFoundMapped), kKnown},
    {S::kAttached, Set(E::kFoundMapped), kOther},
    {S::kAttached, Set(E::kUnmountDevice), kAbsent},
    {S::kAttached, Set(E::kExpand), kFirst},
    {S::kAttached, kAnswers, kIdle},
    {S::kAttached, kPodCalls | kBlockCalls, kOther},
    {S::kMountingDevice, Set(E::kAttach, E::kDetach, E::kExpand), kOnlySame},
    {S::kMountingDevice, kPodCalls | kBlockCalls, kOther},
    {S::kMountingDevice, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kDeviceMounted, Set(E::kAttach), kThere},
    {S::kDeviceMounted, Set(E::kDetach), kFirst},
    {S::kDeviceMounted, kAnswers, kIdle},
    {S::kDeviceMounted, kPodCalls | kBlockCalls, kOther},
    {S::kDeviceMounted, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kUnmountingDevice, Set(E::kAttach, E::kDetach, E::kExpand), kOnlySame},
    {S::kUnmountingDevice, kPodCalls | kBlockCalls, kOther},
    {S::kUnmountingDevice, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kDetaching, Set(E::kMountDevice, E::kUnmountDevice, E::kExpand), kOnlySame},
    {S::kDetaching, kPodCalls | kBlockCalls, kOther},
    {S::kDetaching, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kExpanding, Set(E::kAttach, E::kDetach), kOnlySame},
    {S::kExpanding, kPodCalls | kBlockCalls, kOther},
    {S::kExpanding, Set(E::kFound, E::kFoundMapped), kKnown},

    {S::kMapping, kPodCalls | kDeviceCalls, kOther},
    {S::kMapping, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kMapped, kAnswers, kIdle},
    {S::kMapped, kPodCalls | kDeviceCalls, kOther},
    {S::kMapped, Set(E::kFound, E::kFoundMapped), kKnown},
    {S::kUnmapping, kPodCalls | kDeviceCalls, kOther},
    {S::kUnmapping, Set(E::kFound, E::kFoundMapped), kKnown},
});

// How often the pair stands in the two tables; it must be once.
constexpr int Entries(VolumeState state, VolumeEvent event) {
  int entries = 0;
  for (const Transition& row : kTransitions) entries += row.from == state && row.event == event;
  for (const ImpossibleRow& row : kImpossible) {
    entries += row.state == state && (row.events & Set(event)) != 0;
  }
  return entries;
}

constexpr bool EveryPairOnce() {
  for (int state = 0; state < kVolumeStateCount; ++state) {
    for (int event = 0; event < kVolumeEventCount; ++event) {
      if (Entries(VolumeState{state}, VolumeEvent{event}) != 1) return false;
    }
  }
  return true;
}
static_assert(EveryPairOnce(), "a pair of state and event has no entry, or more than one");

std::string Decorated(VolumeState state) {
  const std::string name(VolumeStateName(state));
  return IsInCall(state) ? "*" + name + "*" : name;
}

struct Ladder {
  std::string_view title;
  std::string_view text;
  VolumeState first;
  VolumeState last;
};

constexpr auto kLadders = std::to_array<Ladder>({
    {"A volume of a pod",
     "Kept per pod and volume. A remount brings the content of a set-up volume up to date and has "
     "no state of its own: whatever becomes of it, the pod keeps its volume.",
     S::kNotSetUp, S::kTearingDown},
    {"A volume on the node",
     "Kept per volume. A restart of the node leaves it attached at most: what the kernel kept in "
     "memory is gone. A volume that needs no attach (local) starts and ends as Attached.",
     S::kDetached, S::kExpanding},
    {"A block volume of a pod", "Kept per pod and volume; it starts and ends as NotSetUp.",
     S::kMapping, S::kUnmapping},
});

}  // namespace

std::optional<Transition> Next(VolumeState from, VolumeEvent event) {
  for (const Transition& row : kTransitions) {
    if (row.from == from && row.event == event) return row;
  }
  return std::nullopt;
}

std::optional<std::string_view> WhyImpossible(VolumeState from, VolumeEvent event) {
  for (const ImpossibleRow& row : kImpossible) {
    if (row.state == from && (row.events & Set(event)) != 0) return row.reason;
  }
  return std::nullopt;
}

VolumeEvent AnswerEvent(CallAnswer answer, bool uncertain_before_call) {
  switch (answer) {
    case CallAnswer::kDone:
      return VolumeEvent::kDone;
    case CallAnswer::kNotApplied:
      return uncertain_before_call ? VolumeEvent::kMaybeApplied : VolumeEvent::kNotApplied;
    case CallAnswer::kMaybeApplied:
      return VolumeEvent::kMaybeApplied;
  }
  __builtin_unreachable();
}

bool IsInCall(VolumeState state) {
  switch (state) {
    case S::kNotSetUp:
    case S::kSetUp:
    case S::kDetached:
    case S::kAttached:
    case S::kDeviceMounted:
    case S::kMapped:
      return false;
    case S::kSettingUp:
    case S::kTearingDown:
    case S::kAttaching:
    case S::kMountingDevice:
    case S::kUnmountingDevice:
    case S::kDetaching:
    case S::kExpanding:
    case S::kMapping:
    case S::kUnmapping:
      return true;
  }
  __builtin_unreachable();
}

bool MayBeAtPlace(VolumeState state) {
  return state == VolumeState::kMountingDevice || state == VolumeState::kDeviceMounted ||
         state == VolumeState::kUnmountingDevice || state == VolumeState::kExpanding;
}

VolumeState RestingState(bool attachable) { return attachable ? S::kDetached : S::kAttached; }

std::string_view VolumeStateName(VolumeState state) {
  switch (state) {
    case S::kNotSetUp:
      return "NotSetUp";
    case S::kSettingUp:
      return "SettingUp";
    case S::kSetUp:
      return "SetUp";
    case S::kTearingDown:
      return "TearingDown";
    case S::kDetached:
      return "Detached";
    case S::kAttaching:
      return "Attaching";
    case S::kAttached:
      return "Attached";
    case S::kMountingDevice:
      return "MountingDevice";
    case S::kDeviceMounted:
      return "DeviceMounted";
    case S::kUnmountingDevice:
      return "UnmountingDevice";
    case S::kDetaching:
      return "Detaching";
    case S::kExpanding:
      return "Expanding";
    case S::kMapping:
      return "Mapping";
    case S::kMapped:
      return "Mapped";
    case S::kUnmapping:
      return "Unmapping";
  }
  __builtin_unreachable();
}

std::string_view VolumeEventName(VolumeEvent event) {
  switch (event) {
    case E::kSetUp:
      return "SetUp";
    case E::kRemount:
      return "Remount";
    case E::kTearDown:
      return "TearDown";
    case E::kAttach:
      return "Attach";
    case E::kDetach:
      return "Detach";
    case E::kMountDevice:
      return "MountDevice";
    case E::kUnmountDevice:
      return "UnmountDevice";
    case E::kExpand:
      return "Expand";
    case E::kMapVolume:
      return "MapVolume";
    case E::kUnmapVolume:
      return "UnmapVolume";
    case E::kDone:
      return "done";
    case E::kNotApplied:
      return "not applied";
    case E::kMaybeApplied:
      return "maybe applied";
    case E::kFound:
      return "found";
    case E::kFoundMapped:
      return "found mapped";
    case E::kReboot:
      return "reboot";
  }
  __builtin_unreachable();
}

std::optional<VolumeState> VolumeStateFromNumber(int number) {
  if (number < 0 || number >= kVolumeStateCount) return std::nullopt;
  return VolumeState{number};
}

std::span<const Transition> AllTransitions() { return kTransitions; }

std::vector<ImpossibleTransition> AllImpossibleTransitions() {
  std::vector<ImpossibleTransition> all;
  for (const ImpossibleRow& row : kImpossible) {
    for (int event = 0; event < kVolumeEventCount; ++event) {
      if ((row.events & Set(VolumeEvent{event})) == 0) continue;
      all.push_back({row.state, VolumeEvent{event}, row.reason});
    }
  }
  return all;
}

std::string PrintStatesMarkdown() {
  std::string out =
      "# States of a volume\n\n"
      "Printed from the table in `src/operation/volume_state.cc`; a test compares the two.\n\n"
      "A state in *italics* is in call: it is recorded before the call is made, and the state that "
      "follows after it has answered. `*` after a state: uncertain, the call may or may not have "
      "had its effect; only the same call or its inverse may follow. A call that was not applied "
      "leads back only if the volume was certain before; else it counts as maybe applied. "
      "Uncertainty stays until a call is done. A pair "
      "of state and event that is not listed cannot meet, for the reason given.\n";
  for (const Ladder& ladder : kLadders) {
    out += "\n## " + std::string(ladder.title) + "\n\n" + std::string(ladder.text) +
           "\n\n| from | event | to | call |\n|---|---|---|---|\n";
    for (const Transition& row : kTransitions) {
      if (row.from < ladder.first || row.from > ladder.last) continue;
      out += "| " + Decorated(row.from) + " | " + std::string(VolumeEventName(row.event)) + " | " +
             Decorated(row.to) + (row.uncertain ? " `*`" : "") + " | " + std::string(row.step) +
             " |\n";
    }
    out += "\nImpossible:\n\n| state | events | why |\n|---|---|---|\n";
    for (const ImpossibleRow& row : kImpossible) {
      if (row.state < ladder.first || row.state > ladder.last) continue;
      std::string events;
      for (int event = 0; event < kVolumeEventCount; ++event) {
        if ((row.events & Set(VolumeEvent{event})) == 0) continue;
        if (!events.empty()) events += ", ";
        events += VolumeEventName(VolumeEvent{event});
      }
      out +=
          "| " + Decorated(row.state) + " | " + events + " | " + std::string(row.reason) + " |\n";
    }
  }
  return out;
}

}  // namespace volumed
