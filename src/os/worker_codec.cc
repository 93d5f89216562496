#include "os/worker_codec.h"

#include <memory>
#include <utility>

#include "base/wire_reader.h"
#include "base/wire_writer.h"

namespace volumed {
namespace {

// A WorkerRequest whose request stays where it is.
struct OutgoingRequest {
  const AnyRequest& request;
  bool wants_progress = false;
  std::optional<Duration> time_left = {};
  static void WireFields(auto& v, auto& m) { WorkerRequest::WireFields(v, m); }
};

// Likewise of a BatchItemAnswer, which is what any answer is on the wire.
struct OutgoingAnswer {
  const Result<AnyAnswer>& result;
  static void WireFields(auto& v, auto& m) { BatchItemAnswer::WireFields(v, m); }
};

}  // namespace

std::string EncodeRequest(const AnyRequest& request, const CallOptions& options,
                          std::optional<Duration> time_left) {
  return EncodeWire(OutgoingRequest{request, options.progress != nullptr, time_left});
}

Result<WorkerRequest> DecodeRequest(std::string_view bytes) {
  WorkerRequest request{};
  switch (DecodeWire(bytes, request)) {
    case WireOutcome::kRead:
      return request;
    case WireOutcome::kMalformed:
      return Error::NotApplied(Code::kDataLoss, "a message to the worker is malformed");
    case WireOutcome::kIncomplete:
      break;
  }
  return Error::NotApplied(Code::kDataLoss, "a message to the worker holds no request");
}

std::string EncodeAnswer(const Result<AnyAnswer>& answer) {
  return EncodeWire(OutgoingAnswer{answer});
}

int DescriptorOf(const Result<AnyAnswer>& answer) {
  if (!answer.ok()) return -1;
  const std::shared_ptr<const Descriptor> pin = std::visit(
      [](const auto& kind) -> std::shared_ptr<const Descriptor> {
        if constexpr (requires { kind.pin; }) return kind.pin;
        return nullptr;
      },
      *answer);
  return pin == nullptr ? -1 : pin->get();
}

Result<AnyAnswer> DecodeAnswer(std::string_view bytes, Descriptor descriptor) {
  BatchItemAnswer answer;
  if (DecodeWire(bytes, answer) != WireOutcome::kRead) {
    return Error::MaybeApplied(Code::kDataLoss, "the worker's answer is malformed");
  }
  if (!answer.result.ok()) return std::move(answer.result);
  std::visit(
      [&descriptor](auto& kind) {
        if constexpr (requires { kind.pin; }) {
          if (!descriptor.valid()) return;
          kind.pin = std::make_shared<const Descriptor>(std::move(descriptor));
        }
      },
      *answer.result);
  // Without its descriptor a lock is none: the receiver had no room for one more.
  const auto* lock = std::get_if<FileLock>(&*answer.result);
  if (lock != nullptr && lock->pin == nullptr) {
    return Error::MaybeApplied(Code::kDataLoss, "the worker's lock came without its descriptor");
  }
  return std::move(answer.result);
}

}  // namespace volumed
