// The CallOptions that every effect of an operation gets; the step adds its deadline.
#pragma once

#include <string>
#include <utility>

#include "operation/operation_executor.h"
#include "os/kernel.h"
#include "os/place_names.h"
#include "os/safe_path.h"
#include "volume/driver_domain.h"

namespace volumed {

// `key` is the text of the operation's key, which a worker locks for as long as it is busy;
// `domain` is what the volume may hang with, and `path` where its filesystem is on the node
// (EffectDomain); it is empty for a block volume, and if nothing of the volume is there. `progress`
// outlives the calls, and is told of the entries that an effect has done, and of whom a call
// awaits.
inline CallOptions OperationCall(std::string key, const std::string& domain,
                                 const std::string& path, OperationProgress& progress) {
  CallOptions call;
  call.key = std::move(key);
  call.domain = EffectDomain(domain, path);
  call.progress = [&progress](int64_t done) { progress.SetDone(done); };
  call.awaits = [&progress](const std::string& whom) { progress.SetAwaited(whom); };
  return call;
}

// The same options for an effect on the agent's own filesystem, which cannot hang with the volume.
inline CallOptions OnOwnFilesystem(CallOptions call) {
  call.domain.clear();
  return call;
}

// The same options for an effect on what is at a path that a CO gave (given_place.h). That may lie
// on any filesystem, and it is this one that hangs, whatever the volume's is.
inline CallOptions OnPath(CallOptions call, const SafePath& path) {
  call.domain = path.Display();
  return call;
}

// The same options for an effect on the place that a CO gave: one that makes or removes its entry
// in its directory, or what is mounted there. What writes back what the volume holds is none, as
// that waits for the volume.
inline CallOptions OnPlace(CallOptions call, const SafePath& place) {
  return OnPath(std::move(call), ParentOf(place));
}

// The same options for an effect that names its device. If the volume's domain is a driver's, the
// device hangs for itself, also once nothing is mounted at the path that the other effects have.
inline CallOptions OnDevice(CallOptions call, const std::string& domain) {
  if (IsDriverDomain(domain)) call.domain.clear();
  return call;
}

}  // namespace volumed
