// What the agent and a volumed-worker say to each other, as bytes: protobuf messages, whose fields
// each request and answer declares (base/wire_fields.h). Both ends are built from one source tree
// and started together; still, numbers are never used again. Paths and names are bytes: a file name
// need not be UTF-8. Pure. Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

struct WorkerRequest {
  AnyRequest request;
  bool wants_progress = false;
  // Until the deadline, counted from now. Nothing: the request is never killed.
  std::optional<Duration> time_left = {};
  // The numbers of requests begin at 10; 1 and 4 were fields of this, 38 was a request.
  static void WireFields(auto& v, auto& m) {
    v(2, m.wants_progress);
    v(3, m.time_left);
    v.OneOf(m.request);
  }
};

// Of `options`, whether there is somebody to be told of progress.
std::string EncodeRequest(const AnyRequest& request, const CallOptions& options,
                          std::optional<Duration> time_left);
// Errors: DataLoss, not applied, for bytes that are no request.
Result<WorkerRequest> DecodeRequest(std::string_view bytes);

// Answer and error alike.
std::string EncodeAnswer(const Result<AnyAnswer>& answer);
// What is sent beside the answer's bytes; -1: nothing. The answer keeps it.
int DescriptorOf(const Result<AnyAnswer>& answer);
// `descriptor` came beside the bytes, if it is valid. Bytes that are no answer give DataLoss, maybe
// applied, and so does a FileLock without its descriptor.
Result<AnyAnswer> DecodeAnswer(std::string_view bytes, Descriptor descriptor = Descriptor());

}  // namespace volumed
