#include "volumemanager/found_at_start.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/printable_text.h"
#include "operation/given_place.h"
#include "operation/load_rows.h"
#include "operation/storage_record.h"

namespace volumed {
namespace {

template <typename T>
Status LoadKind(RecordStore& store, const char* kind, Result<T> (*decode)(const Record&),
                std::vector<T>& out, std::vector<QuarantinedRecord>& quarantined) {
  ASSIGN_OR_RETURN(DecodedRows<T> loaded, LoadRows(store, kind, decode));
  out = std::move(loaded.rows);
  for (QuarantinedRecord& row : loaded.quarantined) quarantined.push_back(std::move(row));
  return OkStatus();
}

// Takes what is at places that COs gave out of the rows.
template <typename T>
void SplitTargets(std::vector<T>& rows, std::vector<T>& targets) {
  const auto begin = std::stable_partition(
      rows.begin(), rows.end(), [](const T& row) { return !GivenPlaceOf(row).has_value(); });
  targets.assign(std::make_move_iterator(begin), std::make_move_iterator(rows.end()));
  rows.erase(begin, rows.end());
}

// The StorageGuard loads these rows once it needs them, but what is being deleted is known from the
// start on. What cannot be read of them holds irreversible steps back from then on, too.
Status LoadStorageRows(RecordStore& store, FoundAtStart& found) {
  std::vector<StorageOwnerRecord> owners;
  RETURN_IF_ERROR(LoadKind(store, kStorageOwnerRecordKind, &DecodeStorageOwnerRecord, owners,
                           found.quarantined));
  return LoadKind(store, kStorageReservationRecordKind, &DecodeStorageReservationRecord,
                  found.reservations, found.quarantined);
}

Status LoadOthers(RecordStore& store, const OtherRecordKind& kind, FoundAtStart& found) {
  ASSIGN_OR_RETURN(LoadedRecords loaded, store.Load(kind.kind));
  LoadedRecords& kept = found.others[kind.kind];
  for (Record& row : loaded.records) {
    if (const Status fits = kind.check(row); fits.ok()) {
      kept.records.push_back(std::move(row));
    } else {
      kept.quarantined.push_back(QuarantineOf(row, fits.error()));
    }
  }
  if (!kept.quarantined.empty()) RETURN_IF_ERROR(store.QuarantineInPlace(kept.quarantined));
  for (QuarantinedRecord& row : loaded.quarantined) kept.quarantined.push_back(std::move(row));
  found.quarantined.insert(found.quarantined.end(), kept.quarantined.begin(),
                           kept.quarantined.end());
  return OkStatus();
}

}  // namespace

ObjectPtr FoundAtStart::ObjectOf(const PodUid& pod) const {
  const auto object = pod_objects.find(pod);
  const bool holds_pod = object != pod_objects.end() && object->second != nullptr &&
                         std::holds_alternative<Pod>(*object->second);
  return holds_pod ? object->second : nullptr;
}

Result<FoundAtStart> LoadRecordsAtStart(RecordStore& store,
                                        const std::vector<OtherRecordKind>& other_kinds) {
  FoundAtStart found;
  RETURN_IF_ERROR(LoadKind(store, kPodRecordKind, &DecodePodRecord, found.pods, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kPodVolumeRecordKind, &DecodePodVolumeRecord, found.volumes,
                           found.quarantined));
  RETURN_IF_ERROR(
      LoadKind(store, kDeviceRecordKind, &DecodeDeviceRecord, found.devices, found.quarantined));
  SplitTargets(found.volumes, found.target_volumes);
  SplitTargets(found.devices, found.target_devices);
  RETURN_IF_ERROR(
      LoadKind(store, kHoldRecordKind, &DecodeHoldRecord, found.holds, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kClaimBindingRecordKind, &DecodeClaimBindingRecord,
                           found.bindings, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kProvisionRecordKind, &DecodeProvisionRecord, found.provisioned,
                           found.quarantined));
  RETURN_IF_ERROR(
      LoadKind(store, kObjectUidRecordKind, &DecodeObjectUidRecord, found.uids, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kKnownObjectRecordKind, &DecodeKnownObjectRecord, found.objects,
                           found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kObjectSourceRecordKind, &DecodeObjectSourceRecord, found.sources,
                           found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kDeletedObjectRecordKind, &DecodeDeletedObjectRecord,
                           found.deleted, found.quarantined));
  RETURN_IF_ERROR(LoadKind(store, kCommandNumberRecordKind, &DecodeCommandNumberRecord,
                           found.command_numbers, found.quarantined));
  ASSIGN_OR_RETURN(const LoadedRecords lost, store.Load(kLostRowsRecordKind));
  for (const QuarantinedRecord& row : lost.quarantined) found.quarantined.push_back(row);
  RETURN_IF_ERROR(LoadStorageRows(store, found));
  for (const OtherRecordKind& kind : other_kinds) RETURN_IF_ERROR(LoadOthers(store, kind, found));
  // What is damaged may be no text, and is shown to people.
  for (QuarantinedRecord& row : found.quarantined) {
    row = {PrintableText(row.kind), PrintableText(row.key), PrintableText(row.reason)};
  }
  return found;
}

void DropOnlyPodsOfNobody(FoundAtStart& found) {
  std::set<PodUid> known;
  for (const PodRecord& pod : found.pods) known.insert(pod.uid);
  for (const PodVolumeRecord& volume : found.volumes) known.insert(volume.key.pod);
  for (const PodVolumeRecord& volume : found.target_volumes) known.insert(volume.key.pod);
  for (const QuarantinedRecord& row : found.quarantined) {
    const bool is_of_pod = row.kind == kPodRecordKind || row.kind == kPodVolumeRecordKind;
    // A bit of the row's key may have turned: it may be any pod's.
    if (is_of_pod && !row.key_is_right) return;
    if (is_of_pod) known.insert(PodUid(row.key.substr(0, row.key.find('/'))));
  }
  for (auto* devices : {&found.devices, &found.target_devices}) {
    for (DeviceRecord& device : *devices) {
      if (!known.contains(device.only_pod)) device.only_pod = PodUid();
    }
  }
}

void DecodePodObjects(FoundAtStart& found) {
  for (const PodRecord& pod : found.pods) {
    found.pod_objects.emplace(pod.uid, DecodeRecordedObject(pod.pod_json));
  }
}

}  // namespace volumed
