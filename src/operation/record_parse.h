// How a row of the record store becomes a message. For the operation layer's records alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "records/record_store.h"

namespace volumed {

inline Error UnreadableRecord(const Record& row, const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, "record " + row.kind + " \"" + row.key + "\" " + why);
}

// Errors, not applied: InvalidArgument for another kind, FailedPrecondition for a version later
// than `known_version`, DataLoss for what is no such message.
template <typename Message>
Result<Message> ParseRecord(const Record& row, const std::string& kind, uint32_t known_version) {
  if (row.kind != kind) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "record of kind " + row.kind + " where " + kind + " is expected");
  }
  if (row.version > known_version) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "record " + row.kind + " \"" + row.key + "\" has version " +
                                 std::to_string(row.version) + "; this program knows up to " +
                                 std::to_string(known_version));
  }
  Message message;
  if (!message.ParseFromString(row.bytes)) return UnreadableRecord(row, "is no valid message");
  return message;
}

}  // namespace volumed
