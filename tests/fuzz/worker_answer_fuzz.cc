// Bytes that the agent takes for a worker's answer. Of what it cannot read it says that the request
// may have been carried out; the rest it would say in the same words.
#include "base/wire_reader.h"
#include "fuzz/fuzz.h"
#include "os/worker_codec.h"

namespace volumed::worker_answer_fuzz {

FUZZ_TARGET(worker_answer)(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::TextOf(data, size);
  const Result<AnyAnswer> decoded = DecodeAnswer(input);
  if (!decoded.ok()) {
    FUZZ_CHECK(!decoded.error().ToString().empty());
    BatchItemAnswer message;
    const bool is_answer = DecodeWire(input, message) == WireOutcome::kRead;
    FUZZ_CHECK(is_answer || decoded.error().maybe_applied());
  }
  FUZZ_CHECK(DescriptorOf(decoded) == -1);
  const std::string bytes = EncodeAnswer(decoded);
  const Result<AnyAnswer> again = DecodeAnswer(bytes);
  FUZZ_CHECK(again.ok() == decoded.ok());
  if (decoded.ok()) FUZZ_CHECK(again->index() == decoded->index());
  if (!decoded.ok()) FUZZ_CHECK(again.error() == decoded.error());
  FUZZ_CHECK(bytes == EncodeAnswer(again));
  return 0;
}

}  // namespace volumed::worker_answer_fuzz
