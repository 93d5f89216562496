// The CallOptions that every effect of an operation gets; the step adds its deadline.
#pragma once

#include <string>
#include <utility>

#include "operation/operation_executor.h"
#include "os/kernel.h"

namespace volumed {

// `key` is the text of the operation's key, which a worker locks for as long as it is busy;
// `domain` is what the volume may hang with (CallOptions::domain). `progress` outlives the calls,
// and is told of the entries that an effect has done.
inline CallOptions OperationCall(std::string key, std::string domain, OperationProgress& progress) {
  CallOptions call;
  call.key = std::move(key);
  call.domain = std::move(domain);
  call.progress = [&progress](int64_t done) { progress.SetDone(done); };
  return call;
}

// The same options for an effect on the agent's own filesystem, which cannot hang with the volume.
inline CallOptions OnOwnFilesystem(CallOptions call) {
  call.domain.clear();
  return call;
}

}  // namespace volumed
