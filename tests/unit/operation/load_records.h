// What a start gets from the store.
#pragma once

#include <vector>

#include "operation/volume_record.h"
#include "records/record_store.h"

namespace volumed {

inline std::vector<PodVolumeRecord> LoadPodVolumeRecords(RecordStore& store) {
  const LoadedRecords loaded = store.Load(kPodVolumeRecordKind).value();
  std::vector<PodVolumeRecord> records;
  for (const Record& row : loaded.records) records.push_back(DecodePodVolumeRecord(row).value());
  return records;
}

inline std::vector<DeviceRecord> LoadDeviceRecords(RecordStore& store) {
  const LoadedRecords loaded = store.Load(kDeviceRecordKind).value();
  std::vector<DeviceRecord> records;
  for (const Record& row : loaded.records) records.push_back(DecodeDeviceRecord(row).value());
  return records;
}

}  // namespace volumed
