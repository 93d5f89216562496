// FormatIntents: the two-phase record of formats. A format is recorded before the tool starts and
// after it has ended; a volume that is recorded to have a filesystem is never formatted again.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

struct FormatIntent {
  DeviceIdentity device;  // as it was probed, without UUID
  std::string fs_type;
  std::string fs_uuid;  // chosen for this volume's format, and kept for a repetition; or found
  // The tool ended well, or a filesystem was found there and is about to be mounted.
  bool finished = false;
};

// Records, one per volume key. Threads: any. Blocks: until the record is synced to disk.
// Errors: not applied when nothing was written, which ends the operation before its effect.
class FormatIntents {
 public:
  virtual ~FormatIntents() = default;
  virtual Result<std::optional<FormatIntent>> Find(const std::string& key) = 0;
  // Before the device is looked at: nobody else may change what it is from now on, until its mount
  // is gone. FailedPrecondition, not applied, naming who has it.
  virtual Status Reserve(const std::string& key, const std::string& device,
                         const CallOptions& call) = 0;
  // Before the tool starts. From now on nobody shares the device (FailedPrecondition, not applied,
  // naming who has it). Replaces an unfinished one. Must survive a power loss. `finished` of
  // the intent is not looked at.
  virtual Status Begin(const std::string& key, const FormatIntent& intent) = 0;
  // From now on the volume has a filesystem: after the tool has ended well, or is proven to have,
  // or a filesystem was found, and before anything is mounted. Must survive a power loss.
  virtual Status Finish(const std::string& key, const FormatIntent& intent) = 0;
  // The tool certainly did not start, on a disk that was blank: there is no record any more.
  virtual Status Withdraw(const std::string& key) = 0;
};

}  // namespace volumed
