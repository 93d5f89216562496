// Converts rows to protobuf messages and back; for the files that know the message of a kind.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "records/record_store.h"

namespace volumed {

// The version of the messages; a row of a later version is refused, since its meaning could only be
// guessed.
inline constexpr uint32_t kVolumeRecordVersion = 1;

inline Error UnreadableRow(const Record& row, const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, "record " + row.kind + " \"" + row.key + "\" " + why);
}

template <typename Message>
Result<Message> ParseRow(const Record& row, const std::string& kind,
                         uint32_t known_version = kVolumeRecordVersion) {
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
  if (!message.ParseFromString(row.bytes)) return UnreadableRow(row, "is no valid message");
  return message;
}

template <typename Message>
Record EncodeRow(const char* kind, std::string key, const Message& message,
                 uint32_t version = kVolumeRecordVersion) {
  return {kind, std::move(key), version, message.SerializeAsString()};
}

}  // namespace volumed
