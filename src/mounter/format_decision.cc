#include "mounter/format_decision.h"

#include <utility>

namespace volumed {
namespace {

FormatDecision Refuse(MountErrorType type, std::string reason) {
  FormatDecision decision;
  decision.error_type = type;
  decision.reason = std::move(reason);
  return decision;
}

FormatDecision Act(FormatAction action) {
  FormatDecision decision;
  decision.action = action;
  return decision;
}

bool IsUnfinished(const std::optional<FormatIntent>& intent) {
  return intent.has_value() && !intent->finished;
}

// A filesystem that has the UUID which was drawn for this volume proves itself, whether or not the
// disk has an identity.
bool IsOfUnfinishedIntent(const DeviceProbe& probe, const std::optional<FormatIntent>& intent) {
  return IsUnfinished(intent) && probe.partition_table.empty() && probe.usage == "filesystem" &&
         probe.identity.uuid == intent->fs_uuid;
}

// Whether the disk holds what an interrupted mkfs of this volume has certainly left, and nothing
// else can have left.
bool IsOurUnfinished(const FormatQuestion& question, const DeviceProbe& probe,
                     const std::optional<FormatIntent>& intent) {
  return IsOfUnfinishedIntent(probe, intent) && probe.unfinished && !probe.was_mounted &&
         probe.fs_type == question.fs_type && probe.fs_type == intent->fs_type &&
         probe.identity.size_bytes == intent->device.size_bytes;
}

// The reasons for which nothing is written to the device at all.
std::optional<FormatDecision> RefuseToFormat(const FormatQuestion& question,
                                             const DeviceProbe& probe,
                                             const std::optional<FormatIntent>& intent) {
  if (question.read_only || question.for_readers || probe.read_only) {
    // Source: kubernetes mount-utils mount_linux.go@v1.36.2 (formatAndMountSensitive).
    std::string reason = "cannot mount unformatted disk " + question.device +
                         " as we are manipulating it in read-only mode";
    if (probe.read_only) {
      reason += " (the device is read-only)";
    } else if (!question.read_only) {
      reason += " (no pod is to write to it)";
    }
    return Refuse(MountErrorType::kUnformattedReadOnly, std::move(reason));
  }
  if (question.format_policy == FormatPolicy::kNever) {
    return Refuse(MountErrorType::kFormatFailed,
                  "disk " + question.device + " is unformatted, and its formatPolicy is never");
  }
  if (intent.has_value() && intent->finished) {
    return Refuse(MountErrorType::kFormatFailed,
                  "disk " + question.device +
                      " is blank, but this volume had a filesystem before (" + intent->fs_type +
                      ", UUID " + intent->fs_uuid +
                      "): it is another disk, or its data is lost; it is not formatted again");
  }
  return std::nullopt;
}

// Whether the volume's filesystem is on record and the disk has another one: then another disk has
// come to this path.
bool IsAnotherFilesystem(const DeviceProbe& probe, const std::optional<FormatIntent>& intent) {
  return intent.has_value() && intent->finished && intent->fs_uuid != probe.identity.uuid;
}

FormatDecision RefuseAnother(const FormatQuestion& question, const DeviceProbe& probe,
                             const FormatIntent& intent) {
  return Refuse(MountErrorType::kFilesystemMismatch,
                "disk " + question.device + " has a filesystem with UUID " + probe.identity.uuid +
                    ", and this volume's has " + intent.fs_uuid +
                    ": it is neither checked nor mounted; if it is meant, remove the volume and "
                    "make it anew");
}

// Before mkfs has written a superblock, nothing distinguishes what it left from somebody's data.
FormatDecision RefuseUnknownData(const FormatQuestion& question, const DeviceProbe& probe,
                                 const std::optional<FormatIntent>& intent) {
  std::string reason =
      "disk " + question.device + " has unknown data and is not formatted: " + probe.why_not_blank;
  if (IsUnfinished(intent)) {
    reason += "; a format of this volume was begun (" + intent->fs_type + ", UUID " +
              intent->fs_uuid +
              ") and did not end: if nothing else can be on the disk, wipe it (blkdiscard -z), or "
              "make the filesystem by hand with this UUID";
  }
  return Refuse(MountErrorType::kFormatFailed, std::move(reason));
}

// Decides about a disk with a signature: a filesystem, or something else that has a name.
FormatDecision DecideSignature(const FormatQuestion& question, const DeviceProbe& probe) {
  const std::string wanted = "\"" + question.fs_type + "\" is wanted";
  if (!probe.partition_table.empty()) {
    return Refuse(MountErrorType::kFilesystemMismatch,
                  "disk " + question.device + " has unknown data, probably partitions (" +
                      probe.partition_table + " partition table), where " + wanted);
  }
  if (probe.fs_type == "ambivalent") {
    return Refuse(MountErrorType::kFilesystemMismatch,
                  "disk " + question.device + " has " + probe.why_not_blank + ", where " + wanted);
  }
  if (probe.fs_type != question.fs_type) {
    return Refuse(MountErrorType::kFilesystemMismatch, "disk " + question.device +
                                                           " is already formatted with \"" +
                                                           probe.fs_type + "\", where " + wanted);
  }
  if (probe.unfinished) {
    return Refuse(MountErrorType::kFormatFailed,
                  "disk " + question.device + " has an unfinished " + probe.fs_type + " (UUID " +
                      probe.identity.uuid +
                      "): its mkfs did not end, and was not this volume's; it is neither mounted "
                      "nor formatted");
  }
  if (question.needs_whole && probe.spans_devices) {
    return Refuse(MountErrorType::kUnknownMountError,
                  "a part of the " + probe.fs_type + " on disk " + question.device +
                      " is on another device, which is nobody's to write to by this volume");
  }
  if (!probe.duplicate.empty() && probe.fs_type == "btrfs") {
    return Refuse(MountErrorType::kUnknownMountError,
                  "disk " + question.device + " is btrfs with the UUID " + probe.identity.uuid +
                      " of a mounted filesystem (" + probe.duplicate +
                      "): the kernel would take one for the other");
  }
  if (probe.read_only && !question.read_only) {
    return Refuse(MountErrorType::kUnknownMountError,
                  "disk " + question.device + " is read-only and can only be mounted read-only");
  }
  FormatDecision decision = Act(FormatAction::kMount);
  switch (question.fsck_policy) {
    case FsckPolicy::kNever:
      break;
    case FsckPolicy::kPreen:
      if (!question.read_only) decision.check = CheckMode::kPreen;
      break;
    case FsckPolicy::kReport:
      decision.check = CheckMode::kReport;
      break;
  }
  return decision;
}

}  // namespace

Result<FormatPolicy> ParseFormatPolicy(std::string_view text) {
  if (text == "never") return FormatPolicy::kNever;
  if (text == "blank") return FormatPolicy::kBlank;
  if (text == "full-scan") return FormatPolicy::kFullScan;
  return Error::NotApplied(Code::kInvalidArgument, "formatPolicy \"" + std::string(text) +
                                                       "\" is none of never, blank, full-scan");
}

Result<FsckPolicy> ParseFsckPolicy(std::string_view text) {
  if (text == "never") return FsckPolicy::kNever;
  if (text == "preen") return FsckPolicy::kPreen;
  if (text == "report") return FsckPolicy::kReport;
  return Error::NotApplied(Code::kInvalidArgument, "fsckPolicy \"" + std::string(text) +
                                                       "\" is none of never, preen, report");
}

std::string_view MountErrorTypeName(MountErrorType type) {
  switch (type) {
    case MountErrorType::kFilesystemMismatch:
      return "FilesystemMismatch";
    case MountErrorType::kHasFilesystemErrors:
      return "HasFilesystemErrors";
    case MountErrorType::kUnformattedReadOnly:
      return "UnformattedReadOnly";
    case MountErrorType::kFormatFailed:
      return "FormatFailed";
    case MountErrorType::kGetDiskFormatFailed:
      return "GetDiskFormatFailed";
    case MountErrorType::kUnknownMountError:
      return "UnknownMountError";
  }
  return "UnknownMountError";
}

FormatDecision DecideFormat(const FormatQuestion& question, const DeviceProbe& probe,
                            const std::optional<FormatIntent>& intent) {
  const bool has_signature = !probe.fs_type.empty() || !probe.partition_table.empty();
  const bool ours = IsOurUnfinished(question, probe, intent);
  if (has_signature && !ours) {
    FormatDecision decision = DecideSignature(question, probe);
    if (decision.action != FormatAction::kMount) return decision;
    if (IsAnotherFilesystem(probe, intent)) return RefuseAnother(question, probe, *intent);
    // A filesystem that was mounted is in use, so nothing has to be proven.
    const bool is_unproven = IsOfUnfinishedIntent(probe, intent) && !probe.was_mounted;
    return is_unproven ? Act(FormatAction::kProveFinished) : decision;
  }
  if (!probe.blank && !ours) return RefuseUnknownData(question, probe, intent);
  if (std::optional<FormatDecision> refusal = RefuseToFormat(question, probe, intent)) {
    return *std::move(refusal);
  }
  if (ours) return Act(FormatAction::kRepeatFormat);
  if (question.format_policy == FormatPolicy::kFullScan && !probe.read_whole) {
    return Act(FormatAction::kFullScan);
  }
  return Act(FormatAction::kFormat);
}

}  // namespace volumed
