// The refusals of the snapshot engine; private to its files.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "snapshot/snapshot_record.h"

namespace volumed {

inline constexpr size_t kShownSnapshotBytes = 128;  // of a caller's text in a message

inline Error SnapshotRefusal(const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition, why);
}

// Another call has it: the same call may be made again.
inline Error SnapshotIsBusy(const std::string& why) {
  return Error::NotApplied(Code::kAborted, why);
}

// Why a snapshot failed, as it is told to a caller.
inline Error WhyFailed(const SnapshotRecord& failed) {
  const bool has_code = failed.error_code > 0;
  return Error::NotApplied(has_code ? Code{failed.error_code} : Code::kInternal, failed.error);
}

}  // namespace volumed
