// FormatIntents: the two-phase record of formats. A format is recorded before the tool starts and
// after it has ended; a volume that was ever recorded as formatted is never formatted again.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "os/device_requests.h"

namespace volumed {

struct FormatIntent {
  DeviceIdentity device;  // as it was probed, without UUID
  std::string fs_type;
  std::string fs_uuid;  // chosen for this volume's first format, and kept for a repetition
  // The tool ended well, or the volume was about to be mounted for another reason. Never reset.
  bool finished = false;
  // Begun since the node's last boot; filled in by Find().
  bool in_this_boot = false;
};

// Records, one per volume key. Threads: any. Blocks: until the record is synced to disk.
// Errors: not applied when nothing was written, which ends the operation before its effect.
class FormatIntents {
 public:
  virtual ~FormatIntents() = default;
  virtual Result<std::optional<FormatIntent>> Find(const std::string& key) = 0;
  // Before the tool starts. Replaces an unfinished one. Must survive a power loss.
  virtual Status Begin(const std::string& key, const FormatIntent& intent) = 0;
  // After the tool has ended well, and before anything is mounted. Must survive a power loss.
  virtual Status Finish(const std::string& key) = 0;
  // The tool certainly did not start: the record is as if Begin() had not been called.
  virtual Status Withdraw(const std::string& key) = 0;
};

}  // namespace volumed
