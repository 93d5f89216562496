#include "csidriver/csi_snapshot_wish.h"

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/printable_text.h"
#include "pool/pool_parameters.h"

namespace volumed {
namespace {

constexpr size_t kShownParameter = 128;  // bytes of a parameter's key, in a message

google::protobuf::Timestamp TimestampOf(int64_t unix_ms) {
  constexpr int64_t kMillisPerSecond = 1000;
  constexpr int64_t kNanosPerMilli = 1000000;
  google::protobuf::Timestamp time;
  time.set_seconds(unix_ms / kMillisPerSecond);
  time.set_nanos(static_cast<int32_t>(unix_ms % kMillisPerSecond * kNanosPerMilli));
  return time;
}

// How a volume is cut follows from the volume, so there is nothing to be chosen.
Status CheckSnapshotParameters(const google::protobuf::Map<std::string, std::string>& given) {
  for (const auto& [key, value] : given) {
    if (IsSidecarParameter(key)) continue;
    return Error::NotApplied(Code::kInvalidArgument,
                             "parameter " + Quoted(key, kShownParameter) +
                                 " is not known: snapshots of this driver have none");
  }
  return OkStatus();
}

}  // namespace

Result<SnapshotWish> ParseCsiSnapshotWish(const ::csi::v1::CreateSnapshotRequest& request,
                                          const CsiPlaces& places) {
  RETURN_IF_ERROR(CheckSnapshotParameters(request.parameters()));
  RETURN_IF_ERROR(CheckReachable(request.accessibility_requirements(), places));
  SnapshotWish wish;
  wish.name = PoolNameOfCsi(request.name());
  wish.volume = request.source_volume_id();
  return wish;
}

Result<SnapshotEngine::GroupWish> ParseCsiGroupWish(
    const ::csi::v1::CreateVolumeGroupSnapshotRequest& request) {
  RETURN_IF_ERROR(CheckSnapshotParameters(request.parameters()));
  const auto& volumes = request.source_volume_ids();
  return SnapshotEngine::GroupWish{.name = PoolNameOfCsi(request.name()),
                                   .volumes = {volumes.begin(), volumes.end()}};
}

::csi::v1::Snapshot CsiSnapshotOf(const SnapshotRecord& record, const CsiPlaces& places) {
  ::csi::v1::Snapshot snapshot;
  snapshot.set_snapshot_id(record.id);
  snapshot.set_source_volume_id(record.volume);
  snapshot.set_size_bytes(record.size_bytes);
  *snapshot.mutable_creation_time() = TimestampOf(record.cut_unix_ms);
  snapshot.set_ready_to_use(record.phase == SnapshotPhase::kReady);
  snapshot.set_group_snapshot_id(record.group);
  *snapshot.mutable_accessible_topology() = CsiTopologyOf(places);
  return snapshot;
}

::csi::v1::VolumeGroupSnapshot CsiGroupOf(const SnapshotGroupView& view, const CsiPlaces& places) {
  ::csi::v1::VolumeGroupSnapshot group;
  group.set_group_snapshot_id(view.group.id);
  bool is_ready = !view.snapshots.empty();
  int64_t cut_unix_ms = 0;
  for (const SnapshotRecord& record : view.snapshots) {
    *group.add_snapshots() = CsiSnapshotOf(record, places);
    is_ready = is_ready && record.phase == SnapshotPhase::kReady;
    cut_unix_ms = std::max(cut_unix_ms, record.cut_unix_ms);
  }
  group.set_ready_to_use(is_ready);
  *group.mutable_creation_time() = TimestampOf(cut_unix_ms);
  return group;
}

}  // namespace volumed
