// SafeFormatAndMount: brings a block device's filesystem to a place: probe, format if it is proven
// blank, check, mount, each on the device that was probed. What may be done is decided by
// DecideFormat alone; this class carries it out by Kernel effects.
//
// Differences from kubelet's, on purpose: docs/FORMATTING.md.
// Source: kubernetes mount-utils mount_linux.go@v1.36.2 (SafeFormatAndMount).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mounter/format_decision.h"
#include "mounter/format_intents.h"
#include "os/kernel.h"
#include "volumehost/irreversible_steps.h"

namespace volumed {

// Which device is to be mounted where, and what may be done to it for that.
struct SafeMountRequest {
  std::string key;     // of the volume, for its format intent
  std::string volume;  // its name for IrreversibleSteps
  std::string device;  // a path
  // What the path must lead to, if that was found out before: without a UUID. Another device is
  // refused (FailedPrecondition, not applied) before anything is done to it.
  std::optional<DeviceIdentity> expected_device = std::nullopt;
  SafePath target;      // an existing directory
  std::string fs_type;  // empty: ext4
  // The UUID of the filesystem that must be there: what has another one, or none, is neither
  // formatted nor mounted. Empty: any.
  std::string fs_uuid = {};
  std::vector<std::string> options;  // "ro" alone makes it read-only
  // A device that takes no writes is mounted read-only; else it is refused.
  bool read_only_if_protected = false;
  // Nobody is going to write to it: what is blank stays so, and is refused.
  bool for_readers = false;
  bool needs_whole = false;  // see FormatQuestion
  std::vector<std::string> format_options;
  FormatPolicy format_policy = FormatPolicy::kBlank;
  FsckPolicy fsck_policy = FsckPolicy::kPreen;
  // An ext3 or ext4 that is smaller than its device is grown before it is mounted, when no
  // capability is needed for it. That it cannot be is a notice, not a failure.
  bool grow = false;
};

// What happened that somebody should hear of, failed or not: for events.
struct SafeMountNotice {
  bool warning = false;
  std::string reason;  // "FilesystemFormatted", "FilesystemFixed", "FilesystemHasErrors", ...
  std::string message;
};

// What came of a request. What a failure left undone is at its default.
struct SafeMountReport {
  Status status;  // ok: it is mounted
  // The kind of a failure, if it is one of kubelet's: nullopt also if the device is somebody
  // else's, or a record could not be written. kubelet tells FilesystemMismatch to the
  // PersistentVolume (FailedMountOnFilesystemMismatch), the rest to the pod (FailedMount).
  std::optional<MountErrorType> error_type;
  // Of the device that was mounted, with the filesystem's UUID: what later effects must find.
  DeviceIdentity device;
  std::string fs_type;
  bool read_only = false;  // so it is, or would have been, mounted
  bool formatted = false;
  std::optional<FilesystemCheck> check;
  std::optional<FilesystemGrowth> growth;  // of one that was grown, or measured for it
  std::vector<SafeMountNotice> notices;
};

// What a long call is doing, for live progress. Bytes, or none for mounting.
enum class SafeMountStage { kProbing, kFormatting, kChecking, kGrowing, kMounting };
std::string_view SafeMountStageName(SafeMountStage stage);

// Threads: any, but one call per key at a time. Blocks: until call.deadline, but for mkfs, fsck and
// a growth, which are never ended half way (MustFinish): then until they are done.
// Errors (report.status): those of the effects. Maybe applied = a format or a mount may have been
// made, so only the same call or an unmount may follow.
class SafeFormatAndMount {
 public:
  using Progress = std::function<void(SafeMountStage stage, int64_t bytes)>;

  // All outlive this.
  SafeFormatAndMount(Kernel& kernel, FormatIntents& intents, IrreversibleSteps& irreversible)
      : kernel_(kernel), intents_(intents), irreversible_(irreversible) {}

  // `call.domain` empty: the device has one of its own. `call.progress` is not used.
  SafeMountReport FormatAndMount(const SafeMountRequest& request, const CallOptions& call,
                                 const Progress& progress = nullptr);

 private:
  struct Run;  // one call

  void Prepare(Run& run);
  Status Decide(Run& run);
  Result<FormatDecision> DecideByProbe(Run& run, bool full_scan);
  Status Format(Run& run, bool repeat);
  Status ProveFinished(Run& run);
  Status Check(Run& run, CheckMode mode);
  Status Grow(Run& run);
  Status RecordFound(Run& run);
  Status MountIt(Run& run);
  Status MountWithNouuid(Run& run, Mount mount, const Error& refused);

  Kernel& kernel_;
  FormatIntents& intents_;
  IrreversibleSteps& irreversible_;
};

}  // namespace volumed
