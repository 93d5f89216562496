#include "agent/node_snapshots.h"

#include <utility>

namespace volumed {

SnapshotSettings SnapshotSettingsOf(const Config& config) {
  SnapshotSettings settings;
  settings.limits.longest = config.freeze_limit;
  // A freeze that holds up the agent's own records would be ended by nobody but its watch.
  settings.limits.never_frozen = {{config.root, ""}};
  settings.copy_bytes_per_second = config.copy_bandwidth;
  return settings;
}

NodeSnapshots::NodeSnapshots(SnapshotEngine::Parts parts, SnapshotSettings settings)
    : engine_(parts, std::move(settings)) {
  parts.volumes.SetContentHolder(&contents_);
  // It is told on the thread that makes or deletes a volume.
  parts.volumes.SetChanged([this, &scheduler = parts.scheduler, watch = alive_.watch()] {
    scheduler.Post([this, watch] {
      if (watch.alive()) engine_.VolumesChanged();
    });
  });
}

std::vector<OtherRecordKind> NodeSnapshots::RecordKinds() {
  return {{kSnapshotRecordKind,
           [](const Record& row) -> Status {
             RETURN_IF_ERROR(DecodeSnapshotRecord(row));
             return OkStatus();
           }},
          {kSnapshotGroupRecordKind, [](const Record& row) -> Status {
             RETURN_IF_ERROR(DecodeSnapshotGroupRecord(row));
             return OkStatus();
           }}};
}

bool NodeSnapshots::IsKindOf(const std::string& kind) {
  return kind == kSnapshotRecordKind || kind == kSnapshotGroupRecordKind;
}

}  // namespace volumed
