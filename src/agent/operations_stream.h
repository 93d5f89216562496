// OperationsStream: one WatchOperations call. It shows what runs now and how far it is, and what is
// stuck.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "agent.pb.h"
#include "agent/control_stream.h"

namespace volumed {

// Threads: as ControlStream. Answers keep the interval of the request between them. While nothing
// runs and nothing is stuck, the stream only waits for a change. An answer has 200 operations at
// most, the oldest first, and 200 stuck calls, and says how many it left out. Errors, not applied:
// InvalidArgument for an interval that is not allowed.
class OperationsStream final : public ControlStream<v1::WatchOperationsResponse> {
 public:
  OperationsStream(ControlBackend& backend, v1::WatchOperationsRequest request)
      : ControlStream(backend), request_(std::move(request)) {}

 private:
  // What the answer before this one said of an operation.
  struct Sample {
    std::string step;
    int64_t done = 0;
    int64_t at_unix_ms = 0;
  };
  using Samples = std::map<std::string, Sample>;

  Status Begin() override;
  Result<Next> Fill(v1::WatchOperationsResponse* response) override;
  void Unsubscribe() override;

  void Changed();
  void TimerFired();
  void AddOperation(const RunningOperation& running, int64_t now, Samples& samples,
                    v1::RunningOperation* out) const;
  double Rate(const RunningOperation& running, const std::string& key, int64_t now) const;

  const v1::WatchOperationsRequest request_;
  Duration interval_{};
  uint64_t observer_ = 0;
  TimerId timer_ = 0;     // set: no answer is sent, since answers keep an interval between them
  bool changed_ = false;  // something changed since the last answer
  bool busy_ = false;     // something ran or was stuck in the last answer
  Samples samples_;
};

}  // namespace volumed
