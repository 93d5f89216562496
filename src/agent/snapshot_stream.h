// SnapshotStream: one WatchSnapshot call. It shows how far a snapshot is until nothing goes on any
// more.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "agent/snapshot_view.h"

namespace volumed {

// Threads: as ControlStream. Errors, not applied: InvalidArgument for an interval that is not
// allowed; NotFound for a snapshot that is not there; Unavailable without snapshots.
class SnapshotStream final : public ControlStream<v1::WatchSnapshotResponse> {
 public:
  SnapshotStream(ControlBackend& backend, v1::WatchSnapshotRequest request)
      : ControlStream(backend), request_(std::move(request)) {}

 private:
  Status Begin() override;
  Result<Next> Fill(v1::WatchSnapshotResponse* response) override;
  void Unsubscribe() override;

  const v1::WatchSnapshotRequest request_;
  Duration interval_{};
  uint64_t observer_ = 0;
  TimerId timer_ = 0;
  v1::Snapshot shown_;               // as it was shown last
  std::optional<CopySample> first_;  // since when the pace is measured
};

}  // namespace volumed
