// What every effect of an operation gets; its deadline comes with the step.
#pragma once

#include <string>
#include <utility>

#include "operation/operation_executor.h"
#include "os/kernel.h"

namespace volumed {

// `progress` outlives the calls.
inline CallOptions OperationCall(std::string key, std::string domain, OperationProgress& progress) {
  CallOptions call;
  call.key = std::move(key);
  call.domain = std::move(domain);
  call.progress = [&progress](int64_t done) { progress.SetDone(done); };
  return call;
}

}  // namespace volumed
