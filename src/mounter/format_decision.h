// DecideFormat: what may be done with a device before it is mounted. Pure; threads: any.
//
// The rule above all: only what is proven blank is formatted, and only once. A format that this
// program began and that is not recorded as finished is repeated only over what nothing but its
// interrupted mkfs leaves: the mark of an unfinished filesystem of the wanted type, with the UUID
// that was drawn for this volume. Nothing else is formatted, ever.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "mounter/format_intents.h"
#include "os/device_requests.h"

namespace volumed {

enum class FormatPolicy {
  kNever,     // the device must have a filesystem
  kBlank,     // zero in every region of os/blank_regions.h
  kFullScan,  // every byte zero
};
enum class FsckPolicy { kNever, kPreen, kReport };

// "never", "blank", "full-scan"; "never", "preen", "report". Errors: InvalidArgument, not applied.
Result<FormatPolicy> ParseFormatPolicy(std::string_view text);
Result<FsckPolicy> ParseFsckPolicy(std::string_view text);

// Kubelet's classes of failure. Source: kubernetes mount-utils mount.go@v1.36.2 (MountErrorType).
enum class MountErrorType {
  kFilesystemMismatch,
  kHasFilesystemErrors,
  kUnformattedReadOnly,
  kFormatFailed,
  kGetDiskFormatFailed,
  kUnknownMountError,
};
std::string_view MountErrorTypeName(MountErrorType type);  // "FilesystemMismatch"

struct FormatQuestion {
  std::string device;   // for texts
  std::string fs_type;  // never empty
  bool read_only = false;
  bool for_readers = false;  // mounted for writing, perhaps, but nobody is going to write
  // A filesystem with a part on another device is refused: that may be anybody's, and whatever
  // checks or mounts the filesystem writes to it.
  bool needs_whole = false;
  FormatPolicy format_policy = FormatPolicy::kBlank;
  FsckPolicy fsck_policy = FsckPolicy::kPreen;
};

enum class FormatAction {
  kMount,         // there is a filesystem of the wanted type
  kFullScan,      // blank as far as it was read; read the rest
  kFormat,        // blank
  kRepeatFormat,  // our own unfinished format
  // A filesystem with the UUID of our unfinished format, not marked as unfinished. Its checker
  // tells: if it is clean, the format is finished, and is recorded so; else it is refused.
  kProveFinished,
  kRefuse,
};

struct FormatDecision {
  FormatAction action = FormatAction::kRefuse;
  // With kMount: how it is to be checked before.
  std::optional<CheckMode> check = std::nullopt;
  // With kRefuse.
  MountErrorType error_type = MountErrorType::kUnknownMountError;
  std::string reason;
};

FormatDecision DecideFormat(const FormatQuestion& question, const DeviceProbe& probe,
                            const std::optional<FormatIntent>& intent);

}  // namespace volumed
