#include "agent/snapshot_stream.h"

#include "agent/snapshot_backend.h"

namespace volumed {
namespace {

constexpr int64_t kDefaultWatchMs = 1000;
constexpr int64_t kLeastWatchMs = 100;
constexpr int64_t kMostWatchMs = 60'000;

}  // namespace

Status SnapshotStream::Begin() {
  if (backend().snapshots == nullptr) {
    return Error::NotApplied(Code::kUnavailable, "this agent has no snapshots");
  }
  const int64_t asked = request_.interval_ms() == 0 ? kDefaultWatchMs : request_.interval_ms();
  if (asked < kLeastWatchMs || asked > kMostWatchMs) {
    return Error::NotApplied(Code::kInvalidArgument, "interval_ms must be between " +
                                                         std::to_string(kLeastWatchMs) + " and " +
                                                         std::to_string(kMostWatchMs));
  }
  interval_ = std::chrono::milliseconds(asked);
  if (!backend().snapshots->maker.Find(request_.id())) {
    return NoSuchSnapshot(backend().snapshots->maker, request_.id());
  }
  observer_ = backend().snapshots->observers.Add([this](const std::string& id) {
    if (id == request_.id()) Send();
  });
  return OkStatus();
}

void SnapshotStream::Unsubscribe() {
  if (observer_ != 0) backend().snapshots->observers.Remove(observer_);
  backend().scheduler.Cancel(std::exchange(timer_, 0));
}

Result<SnapshotStream::Next> SnapshotStream::Fill(v1::WatchSnapshotResponse* response) {
  const int64_t now = backend().scheduler.clock().WallUnixMillis();
  response->set_now_unix_ms(now);
  const std::optional<SnapshotRecord> record = backend().snapshots->maker.Find(request_.id());
  if (!record) {
    *response->mutable_snapshot() = shown_;
    response->set_gone(true);
    return Next::kLast;
  }
  EncodeSnapshot(*record, response->mutable_snapshot());
  shown_ = response->snapshot();
  if (!first_) first_ = CopySample{record->bytes_done, now};
  const CopyPace pace = PaceOf(*record, *first_, now);
  response->set_bytes_per_second(pace.bytes_per_second);
  if (pace.left_ms) response->set_left_ms(*pace.left_ms);
  if (IsAtRest(record->phase)) return Next::kLast;
  backend().scheduler.Cancel(timer_);
  timer_ = backend().scheduler.PostAfter(interval_, [weak = this->weak_from_this()] {
    if (const auto self = weak.lock()) static_cast<SnapshotStream&>(*self).Send();
  });
  return Next::kMore;
}

}  // namespace volumed
