// Converts rows to records and back, by the fields that the records declare (base/wire_fields.h);
// for the files that know what a row of each kind must say.
//
// The numbers of the fields are on the disks of nodes: fields are only ever added, and a number is
// never used again. No field holds, or may ever hold, a secret.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/wire_reader.h"
#include "base/wire_writer.h"
#include "records/record_store.h"

namespace volumed {

// The version of most rows; a row of a later version is refused, since its meaning could only be
// guessed.
inline constexpr uint32_t kVolumeRecordVersion = 1;

// The error, DataLoss and not applied, for a row that says nothing sensible; `why` goes on after
// "record KIND KEY".
inline Error UnreadableRow(const Record& row, const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, "record " + row.kind + " \"" + row.key + "\" " + why);
}

// A row under another key than its content's would be found by neither name; nor is one found that
// names nothing. Errors: DataLoss, not applied. `is_named` is false if the content lacks what it is
// called by.
inline Status BelongsUnder(const std::string& key, const Record& row, bool is_named = true) {
  if (is_named && key == row.key) return OkStatus();
  return UnreadableRow(row, "belongs under the key \"" + key + "\"");
}

// What the row says, whatever that is: values are not judged. Errors: as those of
// DecodePodVolumeRecord, except for the key.
template <typename T>
Result<T> ParseRow(const Record& row, const std::string& kind,
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
  T content{};
  if (DecodeWire(row.bytes, content) != WireOutcome::kRead) {
    return UnreadableRow(row, "is no valid message");
  }
  return content;
}

// The row under this key; ParseRow of it gives `content` back.
template <typename T>
Record EncodeRow(const char* kind, std::string key, const T& content,
                 uint32_t version = kVolumeRecordVersion) {
  return {kind, std::move(key), version, EncodeWire(content)};
}

}  // namespace volumed
