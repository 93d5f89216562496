// Loads the rows of one kind as what they say. A row that this program cannot decode, for a newer
// one has written it or a part of it is gone, is never taken for one that was not written: the
// store is told of it, and leaves it alone from then on.
#pragma once

#include <utility>
#include <vector>

#include "base/result.h"
#include "operation/volume_record.h"
#include "records/record_store.h"

namespace volumed {

// What the store has of one kind. A row that cannot be read is in `quarantined` and in no other
// place: whoever uses `rows` has to decide what its absence means.
template <typename T>
struct DecodedRows {
  std::vector<T> rows;                         // in the order of their keys
  std::vector<QuarantinedRecord> quarantined;  // by this program or by the store
};

// Threads: any. Blocks: on the store. Errors: the store's, not applied; among them that it could
// not be told which rows cannot be decoded.
template <typename T>
Result<DecodedRows<T>> LoadRows(RecordStore& store, const char* kind,
                                Result<T> (*decode)(const Record&)) {
  ASSIGN_OR_RETURN(LoadedRecords loaded, store.Load(kind));
  DecodedRows<T> decoded;
  for (const Record& row : loaded.records) {
    Result<T> content = decode(row);
    if (content.ok()) {
      decoded.rows.push_back(*std::move(content));
    } else {
      decoded.quarantined.push_back(QuarantineOf(row, content.error()));
    }
  }
  if (!decoded.quarantined.empty()) {
    RETURN_IF_ERROR(store.QuarantineInPlace(decoded.quarantined));
  }
  for (QuarantinedRecord& row : loaded.quarantined) decoded.quarantined.push_back(std::move(row));
  return decoded;
}

}  // namespace volumed
