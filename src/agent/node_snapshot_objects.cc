#include "agent/node_snapshot_objects.h"

#include <string>
#include <utility>

namespace volumed {

NodeSnapshotObjects::NodeSnapshotObjects(const Parts& parts,
                                         std::function<VolumeManager&()> manager)
    : manager_(std::move(manager)),
      maker_(parts.engine),
      records_(parts.scheduler, parts.store),
      objects_(
          SnapshotObjects::Parts{
              {parts.scheduler, records_, parts.log}, parts.catalog, maker_, parts.events},
          MakeHooks()),
      observers_(maker_),
      contents_(parts.catalog, maker_,
                [this](const VolumeSnapshot& snapshot) { return objects_.Shown(snapshot); }),
      backend_{{parts.volumes, maker_.driver()}, maker_, objects_, observers_, parts.operations} {}

OtherRecordKind NodeSnapshotObjects::RecordKind() {
  return {kSnapshotBindingRecordKind, [](const Record& row) -> Status {
            RETURN_IF_ERROR(DecodeSnapshotBindingRecord(row));
            return OkStatus();
          }};
}

SnapshotObjects::Hooks NodeSnapshotObjects::MakeHooks() const {
  SnapshotObjects::Hooks hooks;
  hooks.volume_of = [this](const ObjectKey& claim) -> std::string {
    const StorageViews& storage = manager_().storage();
    if (!storage.IsBound(claim)) return "";
    const std::optional<StorageStatus> status = storage.StatusOf(claim);
    return status ? status->other : "";
  };
  hooks.why_not_yet = [this] { return manager_().WhyUnseen(); };
  hooks.uid_on_record = [this](const ObjectKey& object) {
    return manager_().object_commands().IsOnRecord(object);
  };
  hooks.deleted_since = [this](const ObjectKey& object) {
    return manager_().object_commands().DeletedSince(object);
  };
  hooks.let_go = [this](const ObjectKey& object, const std::string& uid) {
    manager_().object_commands().LetGo({object, uid});
  };
  // If it cannot be recorded it is asked for again.
  hooks.delete_object = [this](const ObjectKey& object) {
    manager_().object_commands().Delete(object, [](const Status&) {});
  };
  return hooks;
}

}  // namespace volumed
