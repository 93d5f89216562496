// The answer that a flexVolume driver prints: one JSON object, on stdout or stderr.
// Source: kubernetes pkg/volume/flexvolume/driver-call.go@v1.36.2 (DriverStatus,
// DriverCapabilities, handleCmdResponse).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

// What the driver can do, as its answer to `init` says. It can do everything that it does not
// mention, except metrics.
struct FlexCapabilities {
  bool attach = true;
  bool selinux_relabel = true;
  bool supports_metrics = false;
  bool fs_group = true;
  bool requires_fs_resize = true;
  friend bool operator==(const FlexCapabilities&, const FlexCapabilities&) = default;
};

// By the status "Success" and "Not supported", letter for letter; any other status is a failure.
enum class FlexOutcome { kSuccess, kNotSupported, kFailure };

// What one call answered. Of a text that the driver leaves out the member is empty.
struct FlexStatus {
  FlexOutcome outcome = FlexOutcome::kFailure;
  std::string status;  // in the driver's words: "Success", "Not supported", ...
  std::string message;
  std::string device;       // of attach and waitforattach
  std::string volume_name;  // of getvolumename
  bool attached = false;    // of isattached
  FlexCapabilities capabilities = {};
  int64_t new_size_bytes = 0;  // of expandvolume
  friend bool operator==(const FlexStatus&, const FlexStatus&) = default;
};

// Threads: any. Blocks: never. As in Go's decoder, the case of keys does not count, and unknown
// keys are skipped. Errors: Internal, not applied, saying what is wrong with the text (empty, no
// JSON object, a value of another type), but never what it holds. A status that says "Failure" is
// no error of this function.
Result<FlexStatus> ParseFlexStatus(std::string_view output);

}  // namespace volumed
