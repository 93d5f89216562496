// How operations change the state of a volume or a device: both go through the table of
// operation/volume_state.h. Only actual_state_of_world.cc and actual_devices.cc include this
// header.
#pragma once

#include <optional>

#include "base/clock.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"
#include "volumemanager/failure_history.h"

namespace volumed {

// Threads: the control thread. Blocks: never. `Thing` is ActualVolume or ActualDevice.

// The only place where a state is assigned. An impossible transition is a fault of this program;
// to do no harm, the state then stays as it is and is marked uncertain.
template <typename Thing>
void ApplyEvent(Thing& thing, VolumeEvent event, const Clock& clock) {
  const std::optional<Transition> row = Next(thing.state, event);
  if (!row) {
    thing.uncertain = true;
    return;
  }
  if (row->to != thing.state) thing.since_unix_ms = clock.WallUnixMillis();
  thing.state = row->to;
  thing.uncertain = row->uncertain;
}

// Notes that an operation on `thing` begins. What was uncertain before decides later what an answer
// "not applied" means (AnswerEvent).
template <typename Thing>
void StartCall(Thing& thing, VolumeEvent call, const Clock& clock) {
  thing.in_flight = true;
  thing.uncertain_before = thing.uncertain;
  ApplyEvent(thing, call, clock);
}

// Notes that the operation has failed. Without a failure it counts as maybe applied, and nothing is
// added to the failures that are shown.
template <typename Thing>
void CallFailed(Thing& thing, const std::optional<OperationFailure>& failure, const Clock& clock) {
  thing.in_flight = false;
  const bool maybe_applied = !failure || failure->error.maybe_applied();
  ApplyEvent(thing,
             AnswerEvent(maybe_applied ? CallAnswer::kMaybeApplied : CallAnswer::kNotApplied,
                         thing.uncertain_before),
             clock);
  if (failure) NoteFailure(thing.failure, *failure, clock);
}

}  // namespace volumed
