// Bytes that a worker takes for a request. What it makes of them it would say in the same words.
#include "fuzz/fuzz.h"
#include "os/worker_codec.h"

namespace volumed::worker_request_fuzz {
namespace {

std::string Encode(const WorkerRequest& request) {
  CallOptions options;
  if (request.wants_progress) options.progress = [](int64_t) {};
  return EncodeRequest(request.request, options, request.time_left);
}

}  // namespace

FUZZ_TARGET(worker_request)(const uint8_t* data, size_t size) {
  const Result<WorkerRequest> decoded = DecodeRequest(fuzz::TextOf(data, size));
  if (!decoded.ok()) {
    fuzz::CheckError(decoded.error());
    FUZZ_CHECK(!decoded.error().maybe_applied());
    return 0;
  }
  const std::string bytes = Encode(*decoded);
  const Result<WorkerRequest> again = DecodeRequest(bytes);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(again->request.index() == decoded->request.index());
  FUZZ_CHECK(again->wants_progress == decoded->wants_progress);
  FUZZ_CHECK(again->time_left == decoded->time_left);
  FUZZ_CHECK(bytes == Encode(*again));
  return 0;
}

}  // namespace volumed::worker_request_fuzz
